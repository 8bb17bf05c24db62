package server

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// configPush tells the client of the configuration: at first, and again when something changed.
type configPush struct {
	begun chan struct{} // closed when the client was told first
	once  sync.Once

	mu    sync.Mutex                    // guards what follows; held while the client is told, so that states come in order
	chat  protocol.ChatConfig           // as told
	tools protocol.ToolServerUpdated    // as told
	mcp   map[string]protocol.MCPServer // as told, by name
	shown map[protocol.ShowMessage]bool // what there was to show at the last push

	providers map[string]protocol.ProviderStatus // as the client may know them, by ID; nil before the first push

	asking   sync.Mutex      // guards what follows: who asks must not wait for the client
	again    map[string]bool // MCP servers that the client asked for something since the last push
	selected pickedModel     // what the user chose in chats that the daemon does not know yet
	trust    *bool           // as the user switched it last; nil: as configured
}

// pickedModel is a choice of model or variant that belongs to the session.
type pickedModel struct {
	defaultModel string // at the time; another one ends the selection
	model        string // empty: the default
	variants     *[]string
	variant      json.RawMessage
}

func (c *configPush) selectModel(sel pickedModel) {
	c.asking.Lock()
	defer c.asking.Unlock()
	c.selected = sel
}

func (c *configPush) switchTrust(on bool) {
	c.asking.Lock()
	defer c.asking.Unlock()
	c.trust = &on
}

// withSelection returns the configuration with what the user chose instead of the defaults:
// repeating a default would undo the choice. mu is held.
func (c *configPush) withSelection(now protocol.ChatConfig, trust bool) protocol.ChatConfig {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.selected.variants != nil && c.selected.defaultModel == now.DefaultModel {
		now.SelectModel = cmp.Or(c.selected.model, now.SelectModel)
		now.Variants, now.SelectVariant = c.selected.variants, c.selected.variant
	}
	if trust || c.chat.SelectTrust != nil {
		now.SelectTrust = cmp.Or(c.trust, &trust)
	}
	return now
}

// askAgain has the client told of a server's next status, also if it is the one it knows.
func (c *configPush) askAgain(name string) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.again == nil {
		c.again = map[string]bool{}
	}
	c.again[name] = true
}

// takeAgain returns the servers of which the client is told in any case.
func (c *configPush) takeAgain() map[string]bool {
	c.asking.Lock()
	defer c.asking.Unlock()
	again := c.again
	c.again = nil
	return again
}

// watchConfig tells the client of changes of the configuration while it is connected
// (eca-protocol 8.10). They take effect also when it stops reading.
func (s *Server) watchConfig() {
	select {
	case <-s.configPush.begun:
	case <-s.ctx.Done():
		return
	}
	changed := make(chan struct{}, 1)
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() {
		s.host.Watch(s.ctx, func() {
			select {
			case changed <- struct{}{}:
			default:
			}
		})
	})
	for {
		select {
		case <-changed:
			s.push(s.ctx)
		case <-s.ctx.Done():
			return
		}
	}
}

// push tells the client what it does not know yet of the configuration.
func (s *Server) push(ctx context.Context) {
	s.pushConfig(ctx, false)
	s.pushTools(ctx, false)
	s.pushMCP(ctx, false)
	s.pushProviders(ctx)
	s.pushMessages(ctx)
	s.configPush.once.Do(func() {
		if s.host.Config().Env != config.EnvTest { // suites wait for the first change of a job
			// A client that survived its last daemon may still show that one's jobs.
			s.notify(ctx, "jobs/updated", s.jobs())
		}
		close(s.configPush.begun)
	})
}

// pushAgain tells a client everything that it shows outside of chats once more, if it was
// told before: its page was opened again and knows nothing.
func (s *Server) pushAgain(ctx context.Context) {
	select {
	case <-s.configPush.begun:
	default:
		return
	}
	s.pushConfig(ctx, true)
	s.pushTools(ctx, true)
	s.pushMCP(ctx, true)
	s.configPush.forgetProviders()
	s.pushProviders(ctx)
	s.notify(ctx, "jobs/updated", s.jobs())
}

// pushMessages shows the problems and notices that were not there at the last push.
func (s *Server) pushMessages(ctx context.Context) {
	s.configPush.mu.Lock()
	defer s.configPush.mu.Unlock()
	var now []protocol.ShowMessage
	for _, p := range s.host.Config().Problems {
		now = append(now, protocol.ShowMessage{Type: "warning", Message: "Configuration: " + p.String()})
	}
	for _, n := range s.host.Notices() {
		now = append(now, protocol.ShowMessage{Type: "info", Message: n})
	}
	shown := map[protocol.ShowMessage]bool{}
	for _, m := range now {
		if !s.configPush.shown[m] {
			s.notify(ctx, "$/showMessage", m)
		}
		shown[m] = true
	}
	s.configPush.shown = shown
}

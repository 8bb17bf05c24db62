package server

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// configPush sends the client the configuration: once at first, and again when it changes.
type configPush struct {
	begun chan struct{} // closed when the client was first sent the configuration
	once  sync.Once

	mu    sync.Mutex                    // guards the fields below; held while sending, so that states arrive in order
	chat  protocol.ChatConfig           // as sent
	tools protocol.ToolServerUpdated    // as sent
	mcp   map[string]protocol.MCPServer // as sent, by name
	shown map[protocol.ShowMessage]bool // the messages that were current at the last push

	providers map[string]protocol.ProviderStatus // as the client may know them, by ID; nil before the first push

	asking    sync.Mutex      // guards the fields below, so that their callers do not wait for the client
	requested map[string]bool // MCP servers that the client sent a request for since the last push
	selected  pickedModel     // the user's selection in chats that the daemon does not know yet
	trust     *bool           // as the user last set it; nil: as configured
}

// pickedModel is a selection of model or variant that belongs to the session.
type pickedModel struct {
	defaultModel string // at the time; a different default ends the selection
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

// withSelection returns the configuration with the user's selection in place of the defaults:
// sending a default again would undo the selection. mu is held.
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

// askAgain makes the next push send a server's status, even if it has not changed.
func (c *configPush) askAgain(name string) {
	c.asking.Lock()
	defer c.asking.Unlock()
	if c.requested == nil {
		c.requested = map[string]bool{}
	}
	c.requested[name] = true
}

// takeRequested returns the servers whose status has to be sent even if it has not changed.
func (c *configPush) takeRequested() map[string]bool {
	c.asking.Lock()
	defer c.asking.Unlock()
	requested := c.requested
	c.requested = nil
	return requested
}

// watchConfig notifies the client of changes of the configuration while it is connected
// (eca-protocol 8.10). Changes take effect even if the client stops reading.
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

// push sends the client the parts of the configuration that it does not know yet.
func (s *Server) push(ctx context.Context) {
	s.pushConfig(ctx, false)
	s.pushTools(ctx, false)
	s.pushMCP(ctx, false)
	s.pushProviders(ctx)
	s.pushMessages(ctx)
	s.configPush.once.Do(func() {
		if s.host.Config().Env != config.EnvTest { // suites wait for the first change of a job
			// A client that survived its last daemon may still show that daemon's jobs.
			s.notify(ctx, "jobs/updated", s.jobs())
		}
		close(s.configPush.begun)
	})
}

// pushAgain sends everything that the client shows outside of chats once more, unless it has not
// been sent yet: the client's page was reopened and has no state.
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

// maxMistakes is how many mistakes in the configuration are shown at the same time.
const maxMistakes = 10

// pushMessages shows the mistakes and notices that are new since the last push.
func (s *Server) pushMessages(ctx context.Context) {
	var missing []protocol.ShowMessage
	for _, root := range s.host.Roots() {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			missing = append(missing, protocol.ShowMessage{Type: "warning", Message: fmt.Sprintf("There is no directory %s, which the editor names as a workspace folder: tools and commands cannot work in it", root)})
		}
	}
	s.configPush.mu.Lock()
	defer s.configPush.mu.Unlock()
	var now []protocol.ShowMessage
	mistakes := s.host.Config().Mistakes()
	for _, f := range mistakes[:min(len(mistakes), maxMistakes)] {
		now = append(now, protocol.ShowMessage{Type: "warning", Message: "Configuration: " + f.Place() + ": " + f.Message})
	}
	if more := len(mistakes) - maxMistakes; more > 0 {
		now = append(now, protocol.ShowMessage{Type: "warning", Message: fmt.Sprintf("Configuration: %d more mistakes; `eca config check` lists them", more)})
	}
	now = append(now, missing...)
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

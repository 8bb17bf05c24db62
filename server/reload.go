package server

import (
	"context"
	"sync"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// configPush tells the client of the configuration: at first all, then what changed.
type configPush struct {
	begun chan struct{} // closed when the client was told first
	once  sync.Once

	mu     sync.Mutex                    // guards what follows; held while the client is told, so that states come in order
	chat   protocol.ChatConfig           // what the configuration said at the last push
	picked protocol.ChatConfig           // the variants the client was told of last: its own pick's, or the default's
	tools  protocol.ToolServerUpdated    // as told
	mcp    map[string]protocol.MCPServer // as told, by name
	shown  map[protocol.ShowMessage]bool // what there was to show at the last push

	providers map[string]protocol.ProviderStatus // as the client may know them, by ID; nil before the first push

	asking sync.Mutex      // guards again: who asks must not wait for the client
	again  map[string]bool // MCP servers that the client asked for something since the last push
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

// difference takes what the configuration says now and returns what of it is news. The
// variants of a model that the client picked stay until the model is news. mu is held.
func (c *configPush) difference(now protocol.ChatConfig) (news protocol.ChatConfig, changed bool) {
	news, changed = difference(c.chat, now)
	c.chat = now
	if news.SelectModel != "" {
		told, _ := difference(c.picked, now)
		news.Variants, news.SelectVariant = told.Variants, told.SelectVariant
	}
	if news.Variants != nil {
		c.picked.Variants = news.Variants
	}
	if news.SelectVariant != nil {
		c.picked.SelectVariant = news.SelectVariant
	}
	return news, changed
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
	s.pushConfig(ctx)
	s.pushTools(ctx, false)
	s.pushMCP(ctx, false)
	s.pushProviders(ctx)
	s.pushMessages(ctx)
	s.configPush.once.Do(func() { close(s.configPush.begun) })
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

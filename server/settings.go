package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// settings sends the client what it shows outside chats: the configuration, tools, MCP servers,
// providers and messages. It sends everything once, and then each change.
type settings struct {
	*connection
	host Host
	jobs *jobs

	firstPushed chan struct{} // closed when the client has been sent the configuration for the first time
	once        sync.Once

	mu            sync.Mutex                    // guards the fields below; held while sending, so that states arrive in order
	chat          protocol.ChatConfig           // as sent
	tools         [sha256.Size]byte             // the hash of what was sent: there may be dozens of clients
	mcp           map[string]protocol.MCPServer // as sent, by name
	shownMessages map[protocol.ShowMessage]bool // the messages that were current at the last push

	providers map[string]protocol.ProviderStatus // as the client may know them, by ID; nil before the first push

	selectionMu sync.Mutex      // guards the fields below, so that their callers do not wait for the client
	requested   map[string]bool // MCP servers that the client sent a request for since the last push
	selected    pickedModel     // the user's selection in chats that the daemon does not know yet
	trust       *bool           // as the user last set it; nil: as configured
	agent       string          // for chats that do not exist yet; empty: the default
	// The agent whose tools the client shows: the one that was last selected, in any chat. Empty
	// means the default.
	toolsAgent string
}

// pickedModel is a selection of a model or variant that does not belong to a stored chat.
type pickedModel struct {
	defaultModel string // when the model was selected; if the default changes, the selection ends
	model        string // empty: the default
	variants     *[]string
	variant      json.RawMessage
}

// selectAgent selects the agent whose tools are shown. With newChats, it also becomes the agent of
// chats that do not exist yet.
func (s *settings) selectAgent(agent string, newChats bool) {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	s.toolsAgent = agent
	if newChats {
		s.agent = agent
	}
}

func (s *settings) selectModel(sel pickedModel) {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	s.selected = sel
}

func (s *settings) switchTrust(on bool) {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	s.trust = &on
}

// withSelection returns the configuration with the user's selection in place of the defaults:
// sending a default again would undo the selection. mu is held.
func (s *settings) withSelection(now protocol.ChatConfig, trust bool) protocol.ChatConfig {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	if s.selected.variants != nil && s.selected.defaultModel == now.DefaultModel {
		now.SelectModel = cmp.Or(s.selected.model, now.SelectModel)
		now.Variants, now.SelectVariant = s.selected.variants, s.selected.variant
	}
	if trust || s.chat.SelectTrust != nil {
		now.SelectTrust = cmp.Or(s.trust, &trust)
	}
	return now
}

// resendServer makes the next push send a server's status, even if it has not changed.
func (s *settings) resendServer(name string) {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	if s.requested == nil {
		s.requested = map[string]bool{}
	}
	s.requested[name] = true
}

// takeRequested returns the servers whose status has to be sent even if it has not changed.
func (s *settings) takeRequested() map[string]bool {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	requested := s.requested
	s.requested = nil
	return requested
}

// watch notifies the client of changes of the configuration while it is connected
// (eca-protocol.md 8.10). Changes take effect even if the client stops reading.
func (s *settings) watch() {
	select {
	case <-s.firstPushed:
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

// push sends the client everything that has changed since it was last sent.
func (s *settings) push(ctx context.Context) {
	first := false
	s.once.Do(func() {
		first = true
		close(s.firstPushed) // before anything is sent: a page that is opened meanwhile may miss it
	})
	s.pushConfig(ctx, false)
	s.pushTools(ctx, false)
	s.pushMCP(ctx, false)
	s.pushProviders(ctx)
	s.pushMessages(ctx)
	if first && !s.host.Config().Conformance().ReferenceContent {
		// A client that survived its last daemon may still show that daemon's jobs.
		s.notify(ctx, "jobs/updated", s.jobs.list())
	}
}

// pushAgain sends everything that the client shows outside chats again, because the client's
// page was reopened and has no state. It does nothing before the first push.
func (s *settings) pushAgain(ctx context.Context) {
	select {
	case <-s.firstPushed:
	default:
		return
	}
	s.pushConfig(ctx, true)
	s.pushTools(ctx, true)
	s.pushMCP(ctx, true)
	s.resendProviders()
	s.pushProviders(ctx)
	s.notify(ctx, "jobs/updated", s.jobs.list())
}

// maxMistakes is how many mistakes in the configuration are shown at the same time.
const maxMistakes = 10

// missingFolders are messages about workspace folders that do not exist.
func (s *settings) missingFolders() (out []protocol.ShowMessage) {
	for _, root := range s.host.Roots() {
		if info, err := os.Stat(root); err != nil || !info.IsDir() {
			out = append(out, protocol.ShowMessage{Type: "warning", Message: fmt.Sprintf("There is no directory %s, which the editor names as a workspace folder: tools and commands cannot work in it", root)})
		}
	}
	return out
}

// pushMessages shows the mistakes and notices that are new since the last push.
func (s *settings) pushMessages(ctx context.Context) {
	missing := s.missingFolders()
	s.mu.Lock()
	defer s.mu.Unlock()
	notices := s.host.Notices() // they read the files of extensions, in which there may be mistakes
	shown := map[protocol.ShowMessage]bool{}
	show := func(kind, text string) {
		m := protocol.ShowMessage{Type: kind, Message: text}
		if !s.shownMessages[m] && !shown[m] {
			s.notify(ctx, "$/showMessage", m)
		}
		shown[m] = true
	}
	mistakes := s.host.Config().Mistakes()
	for _, f := range mistakes[:min(len(mistakes), maxMistakes)] {
		show("warning", "Configuration: "+f.Place()+": "+f.Message)
	}
	if more := len(mistakes) - maxMistakes; more > 0 {
		show("warning", fmt.Sprintf("Configuration: %d more mistakes; `eca config check` lists them", more))
	}
	for _, m := range missing {
		show(m.Type, m.Message)
	}
	for _, n := range notices {
		show("info", n)
	}
	s.shownMessages = shown
}

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// Initialize implements protocol.Server. It answers without network access: clients
// give up after seconds (eca-protocol 1.2, 3.1).
func (s *Server) Initialize(_ context.Context, req protocol.Request[protocol.InitializeParams]) (protocol.Later[protocol.InitializeResult], error) {
	p := req.Params
	roots := folders(p.WorkspaceFolders)
	if len(roots) == 0 {
		// One old client names no folders; its directory is the project.
		if wd, err := os.Getwd(); err == nil {
			roots = []string{wd}
		}
	}
	s.host.Connect(s.editorClient(p.Capabilities), s.asker(p.Capabilities))
	s.host.Configure(p.InitializationOptions, roots)
	if p.ProcessID > 0 {
		s.watchParent(int(p.ProcessID))
	}
	s.advance(initializing)
	s.log.Debug("initialize", "client", p.ClientInfo.Name, "version", p.ClientInfo.Version, "roots", roots)
	cfg, models, agents := s.host.Config(), s.host.ModelChoice(), s.primaryAgents()
	agent := cfg.AgentOrDefault("")
	ids, _ := fitting(models)
	return protocol.Now(protocol.InitializeResult{
		ChatWelcomeMessage: cfg.WelcomeMessage,
		ServerInfo:         protocol.ServerInfo{Name: "eca", Version: s.version},
		Models:             ids, ChatDefaultModel: models.Default,
		ChatAgents: agents, ChatDefaultAgent: agent,
		ChatBehaviors: agents, ChatDefaultBehavior: agent,
	}), nil
}

// Initialized implements protocol.Server: it starts what may take time, and tells the
// client what there is (3.2).
func (s *Server) Initialized(context.Context, protocol.None) error {
	s.advance(initialized)
	s.host.Engine().Begin()
	s.background(func() {
		tasks := s.host.Tasks()
		// All starts come first: a client counts as ready when all that it has heard of ended.
		for _, t := range tasks {
			s.notify(s.ctx, "$/progress", protocol.Progress{Type: "start", TaskID: t.ID, Title: t.Title})
		}
		s.push(s.ctx)
		for _, t := range tasks {
			s.background(func() { s.runTask(t) })
		}
	})
	return nil
}

// runTask does a task, tells what it changed, and that it is done, whatever happens.
func (s *Server) runTask(t chat.Task) {
	defer s.notify(s.ctx, "$/progress", protocol.Progress{Type: "finish", TaskID: t.ID, Title: t.Title})
	t.Run(s.ctx)
	s.push(s.ctx)
}

// primaryAgents lists the agents a user can choose, sorted.
func (s *Server) primaryAgents() []string {
	var out []string
	for name, a := range s.host.Config().Agents {
		if a.Primary() {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// pushConfig sends what the client does not know yet (5.1).
func (s *Server) pushConfig(ctx context.Context) {
	s.configPush.mu.Lock()
	defer s.configPush.mu.Unlock()
	cfg, models, agents := s.host.Config(), s.host.ModelChoice(), s.primaryAgents()
	agent := s.currentAgent()
	ids, cut := fitting(models)
	variants, _ := s.host.Variants(models.Default)
	now := protocol.ChatConfig{
		Models: list(ids), Agents: list(agents), Behaviors: list(agents), Variants: list(variants),
		SelectModel: models.Default, DefaultModel: models.Default,
		SelectAgent: agent, DefaultAgent: agent, SelectBehavior: agent, DefaultBehavior: agent,
		SelectVariant:  json.RawMessage("null"),
		WelcomeMessage: cfg.WelcomeMessage,
	}
	if cfg.Chat.DefaultTrust || s.configPush.chat.SelectTrust != nil {
		now.SelectTrust = &cfg.Chat.DefaultTrust
	}
	if news, changed := s.configPush.difference(now); changed {
		s.notify(ctx, "config/updated", protocol.ConfigUpdated{Chat: &news})
		if news.Models != nil && cut > 0 {
			s.notify(ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: fmt.Sprintf(
				"%d models are left out of the list because some editors lose long messages. They can still be used by name.", cut)})
		}
	}
}

// currentAgent is the agent of chats that are not known yet.
func (s *Server) currentAgent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host.Config().AgentOrDefault(s.agent)
}

// shownAgent is the agent whose tools are sent.
func (s *Server) shownAgent() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.host.Config().AgentOrDefault(s.toolsAgent)
}

// pushVariants tells the variants of a model that the client picked for a chat that is
// not known yet. The model itself is not told: that would be news to other chats.
func (s *Server) pushVariants(ctx context.Context, update protocol.ChatConfig) {
	s.configPush.mu.Lock()
	defer s.configPush.mu.Unlock()
	now := s.configPush.picked
	now.Variants, now.SelectVariant = update.Variants, update.SelectVariant
	news, changed := difference(s.configPush.picked, now)
	s.configPush.picked = now
	if changed {
		s.notify(ctx, "config/updated", protocol.ConfigUpdated{Chat: &news})
	}
}

// maxModelBytes keeps config/updated below the 60 KB that one client loses messages
// above (1.3).
const maxModelBytes = 50 << 10

// fitting returns the models that fit, the default among them, and how many do not.
func fitting(c chat.ModelChoice) (ids []string, cut int) {
	size := len(c.Default) + 3
	for _, id := range c.IDs {
		if id == c.Default {
			ids = append(ids, id)
			continue
		}
		if size+len(id)+3 > maxModelBytes {
			cut++
			continue
		}
		size += len(id) + 3
		ids = append(ids, id)
	}
	return ids, cut
}

func list(s []string) *[]string {
	if s == nil {
		s = []string{}
	}
	return &s
}

// difference returns the fields of now that differ from before. That one is empty now can
// not be told: an absent key means unchanged.
func difference(before, now protocol.ChatConfig) (news protocol.ChatConfig, changed bool) {
	b, n, out := reflect.ValueOf(before), reflect.ValueOf(now), reflect.ValueOf(&news).Elem()
	for i := range n.NumField() {
		if !n.Field(i).IsZero() && !reflect.DeepEqual(b.Field(i).Interface(), n.Field(i).Interface()) {
			out.Field(i).Set(n.Field(i))
			changed = true
		}
	}
	return news, changed
}

// pushTools sends the native tools (5.2), if they changed or also if not.
func (s *Server) pushTools(ctx context.Context, always bool) {
	s.configPush.mu.Lock()
	defer s.configPush.mu.Unlock()
	msg := protocol.ToolServerUpdated{Type: "native", Name: "ECA", Status: "running", Tools: []protocol.ServerTool{}}
	for _, t := range s.host.ToolChoices(s.shownAgent()) {
		msg.Tools = append(msg.Tools, protocol.ServerTool{
			Name: t.Name, Description: t.Description, Parameters: t.Schema, Disabled: t.Disabled,
		})
	}
	if always || !reflect.DeepEqual(s.configPush.tools, msg) {
		s.configPush.tools = msg
		s.notify(ctx, "tool/serverUpdated", msg)
	}
}

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/workspace"
)

// initialize answers without network access: clients give up after seconds
// (eca-protocol 1.2, 3.1).
func (s *Server) initialize(_ context.Context, req *jsonrpc.Request) (any, error) {
	var p protocol.InitializeParams
	if err := decode(req, &p); err != nil {
		return nil, err
	}
	var roots []string
	for _, f := range p.WorkspaceFolders {
		if f.URI != "" {
			roots = append(roots, workspace.FromURI(f.URI))
		}
	}
	if len(roots) == 0 {
		// One old client names no folders; its directory is the project.
		if wd, err := os.Getwd(); err == nil {
			roots = []string{wd}
		}
	}
	s.host.Configure(p.InitializationOptions, roots)
	if p.ProcessID > 0 {
		s.watchParent(int(p.ProcessID))
	}
	s.advance(initializing)
	s.log.Debug("initialize", "client", p.ClientInfo.Name, "version", p.ClientInfo.Version, "roots", roots)
	cfg, models, agents := s.host.Config(), s.host.ModelChoice(), s.primaryAgents()
	agent := cfg.AgentOrDefault("")
	ids, _ := fitting(models)
	return protocol.InitializeResult{
		ChatWelcomeMessage: cfg.WelcomeMessage,
		ServerInfo:         protocol.ServerInfo{Name: "eca", Version: s.version},
		Models:             ids, ChatDefaultModel: models.Default,
		ChatAgents: agents, ChatDefaultAgent: agent,
		ChatBehaviors: agents, ChatDefaultBehavior: agent,
	}, nil
}

// initialized starts what may take time, and tells the client what there is (3.2).
func (s *Server) initialized(context.Context, *jsonrpc.Request) (any, error) {
	s.advance(initialized)
	return jsonrpc.Later(func(context.Context) (any, error) {
		task := protocol.Progress{Type: "start", TaskID: "models", Title: "Syncing models"}
		s.notify(s.ctx, "$/progress", task)
		s.pushConfig(s.ctx)
		s.pushTools(s.ctx)
		for _, p := range s.host.Config().Problems {
			s.notify(s.ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: "Configuration: " + p.String()})
		}
		for _, n := range s.host.Notices() {
			s.notify(s.ctx, "$/showMessage", protocol.ShowMessage{Type: "info", Message: n})
		}
		s.host.SyncModels(s.ctx)
		s.pushConfig(s.ctx)
		task.Type = "finish"
		s.notify(s.ctx, "$/progress", task)
		return nil, nil
	}), nil
}

// primaryAgents lists the agents a user can choose, sorted.
func (s *Server) primaryAgents() []string {
	var out []string
	for name, a := range s.host.Config().Agents {
		if a.Mode != "subagent" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// pushConfig sends what the client does not know yet (5.1).
func (s *Server) pushConfig(ctx context.Context) {
	cfg, models, agents := s.host.Config(), s.host.ModelChoice(), s.primaryAgents()
	agent := cfg.AgentOrDefault("")
	ids, cut := fitting(models)
	now := protocol.ChatConfig{
		Models: list(ids), Agents: list(agents), Behaviors: list(agents), Variants: list(models.Variants),
		SelectModel: models.Default, DefaultModel: models.Default,
		SelectAgent: agent, DefaultAgent: agent, SelectBehavior: agent, DefaultBehavior: agent,
		SelectVariant:  json.RawMessage("null"),
		WelcomeMessage: cfg.WelcomeMessage,
	}
	if cfg.Chat.DefaultTrust {
		now.SelectTrust = &cfg.Chat.DefaultTrust
	}
	s.mu.Lock()
	news, changed := difference(s.sent, now)
	s.sent = now
	s.mu.Unlock()
	if changed {
		s.notify(ctx, "config/updated", protocol.ConfigUpdated{Chat: &news})
	}
	if news.Models != nil && cut > 0 {
		s.notify(ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: fmt.Sprintf(
			"%d models are left out of the list because some editors lose long messages. They can still be used by name.", cut)})
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

// difference returns the fields of now that differ from before.
func difference(before, now protocol.ChatConfig) (news protocol.ChatConfig, changed bool) {
	b, n, out := reflect.ValueOf(before), reflect.ValueOf(now), reflect.ValueOf(&news).Elem()
	for i := range n.NumField() {
		if !reflect.DeepEqual(b.Field(i).Interface(), n.Field(i).Interface()) {
			out.Field(i).Set(n.Field(i))
			changed = true
		}
	}
	return news, changed
}

// pushTools sends the native tools (5.2).
func (s *Server) pushTools(ctx context.Context) {
	msg := protocol.ToolServerUpdated{Type: "native", Name: "ECA", Status: "running", Tools: []protocol.ServerTool{}}
	for _, t := range s.host.ToolChoices(s.host.Config().AgentOrDefault("")) {
		msg.Tools = append(msg.Tools, protocol.ServerTool{
			Name: t.Name, Description: t.Description, Parameters: t.Schema, Disabled: t.Disabled,
		})
	}
	s.notify(ctx, "tool/serverUpdated", msg)
}

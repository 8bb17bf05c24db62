package server

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// Initialize implements protocol.Server. It answers without using the network, because clients give
// up after a few seconds (eca-protocol.md 1.2, 3.1).
func (s *Server) Initialize(_ context.Context, req protocol.Request[protocol.InitializeParams]) (protocol.AsyncResult[protocol.InitializeResult], error) {
	p := req.Params
	roots := folders(p.WorkspaceFolders)
	if len(roots) == 0 {
		// One old client sends no folders; its working directory is the project.
		if wd, err := os.Getwd(); err == nil {
			roots = []string{wd}
		}
	}
	s.name.Store(new(client(strings.ToLower(string(p.ClientInfo.Name)))))
	s.capabilities.Store(&p.Capabilities)
	var questionClient ask.Client // nil without the capability: such clients never answer
	if p.Capabilities.AskQuestion {
		questionClient = questions{s.connection, s.views}
	}
	leave := s.host.Join(editorRequests{s.connection}.client(p.Capabilities), questionClient)
	if before := s.leaveDaemon.Swap(&leave); before != nil {
		(*before)()
	}
	if !s.shared {
		s.host.Configure(p.InitializationOptions, roots)
		if p.ProcessID > 0 {
			s.watchParent(int(p.ProcessID))
		}
	}
	s.advance(initializing)
	s.log.Debug("initialize", "client", p.ClientInfo.Name, "version", p.ClientInfo.Version, "roots", roots)
	cfg, models, agents := s.host.Config(), s.host.ModelChoice(), s.host.Config().PrimaryAgents()
	agent := cfg.AgentOrDefault("")
	ids, _ := fittingModels(models)
	return protocol.Immediate(protocol.InitializeResult{
		ChatWelcomeMessage: welcome(cfg.WelcomeMessage, models),
		ServerInfo:         protocol.ServerInfo{Name: "eca", Version: s.version},
		Models:             ids, ChatDefaultModel: models.Default,
		ChatAgents: agents, ChatDefaultAgent: agent,
		ChatBehaviors: agents, ChatDefaultBehavior: agent,
	}), nil
}

// Initialized implements protocol.Server: it starts the slow tasks and sends the client its initial
// state (eca-protocol.md 3).
func (s *Server) Initialized(context.Context, protocol.None) error {
	s.advance(initialized)
	if s.shared {
		s.background(func() { s.settings.push(s.ctx) })
		return nil
	}
	s.host.Engine().Begin()
	s.background(func() {
		tasks := s.host.StartupTasks()
		// All starts come first: a client counts as ready when all tasks that it knows have ended.
		for _, t := range tasks {
			s.notify(s.ctx, "$/progress", protocol.Progress{Type: "start", TaskID: t.ID, Title: t.Title})
		}
		if s.host.Config().Conformance().FixedOrder {
			s.host.AskLocalModels(s.ctx) // they are in the first list
		}
		s.settings.push(s.ctx)
		for _, t := range tasks {
			s.background(func() { s.runStartupTask(t) })
		}
	})
	return nil
}

// runStartupTask runs a task, sends what it changed, and reports that it is finished even if it fails.
func (s *Server) runStartupTask(t chat.StartupTask) {
	defer s.notify(s.ctx, "$/progress", protocol.Progress{Type: "finish", TaskID: t.ID, Title: t.Title})
	t.Run(s.ctx)
	s.settings.push(s.ctx)
}

// pushConfig sends the whole configuration (eca-protocol.md 5.1) if any of it changed or if always
// is set. One client replays only the last message when its page is opened, so every message has
// all keys that this client cannot get elsewhere.
func (s *settings) pushConfig(ctx context.Context, always bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cfg, models, agents := s.host.Config(), s.host.ModelChoice(), s.host.Config().PrimaryAgents()
	agent := s.currentAgent()
	ids, omitted := fittingModels(models)
	variants, _ := s.host.Variants(models.Default)
	now := s.withSelection(protocol.ChatConfig{
		Models: pointerToList(ids), Agents: pointerToList(agents), Behaviors: pointerToList(agents), Variants: pointerToList(variants),
		SelectModel: models.Default, DefaultModel: models.Default,
		SelectAgent: agent, DefaultAgent: agent, SelectBehavior: agent, DefaultBehavior: agent,
		SelectVariant:  json.RawMessage("null"),
		WelcomeMessage: welcome(cfg.WelcomeMessage, models),
	}, cfg.Chat.DefaultTrust)
	changes, changed := changedFields(s.chat, now)
	if !changed && !always {
		return
	}
	s.chat = now
	s.notify(ctx, "config/updated", protocol.ConfigUpdated{Chat: new(s.client().config(now, changes))})
	if changes.Models != nil && omitted > 0 {
		s.notify(ctx, "$/showMessage", protocol.ShowMessage{Type: "warning", Message: fmt.Sprintf(
			"%d models are left out of the list because some editors lose long messages. They can still be used by name.", omitted)})
	}
}

// welcome is the text of a new chat. Some clients show no messages, so it tells a user without a
// provider what to do.
func welcome(text string, models chat.ModelChoice) string {
	why := "No model can be used."
	switch {
	case strings.HasPrefix(models.Default, "demo/"):
		why = "No provider is connected, so the demo model answers."
	case len(models.IDs) > 0:
		return text
	}
	return strings.TrimRight(text, "\n") + "\n\n" + why + " Type `/login` to connect a provider, or run `eca login` in a terminal.\n"
}

// currentAgent is the agent of chats that do not exist yet.
func (s *settings) currentAgent() string {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	return s.host.Config().AgentOrDefault(s.agent)
}

// shownAgent is the agent whose tools are sent to the client.
func (s *settings) shownAgent() string {
	s.selectionMu.Lock()
	defer s.selectionMu.Unlock()
	return s.host.Config().AgentOrDefault(s.toolsAgent)
}

// maxModelBytes keeps config/updated below 60 KB; one client loses longer messages (eca-protocol.md
// 1.3).
const maxModelBytes = 50 << 10

// fittingModels returns the models that fit into a message, including the default, and how many do not
// fit.
func fittingModels(c chat.ModelChoice) (ids []string, omitted int) {
	size := len(c.Default) + 3
	for _, id := range c.IDs {
		if id == c.Default {
			ids = append(ids, id)
			continue
		}
		if size+len(id)+3 > maxModelBytes {
			omitted++
			continue
		}
		size += len(id) + 3
		ids = append(ids, id)
	}
	return ids, omitted
}

func pointerToList(s []string) *[]string {
	if s == nil {
		s = []string{}
	}
	return &s
}

// pushTools sends the native tools (eca-protocol.md 5.2) if they changed or if always is set.
func (s *settings) pushTools(ctx context.Context, always bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	msg := protocol.ToolServerUpdated{Type: "native", Name: "ECA", Status: "running", Tools: []protocol.ServerTool{}}
	for _, t := range s.host.ToolChoices(s.shownAgent()) {
		msg.Tools = append(msg.Tools, protocol.ServerTool{
			Name: t.Name, Description: t.Description, Parameters: t.Schema, Disabled: t.Disabled,
		})
	}
	text, err := json.Marshal(msg)
	if sum := sha256.Sum256(text); err != nil || always || s.tools != sum {
		s.tools = sum
		s.notify(ctx, "tool/serverUpdated", msg)
	}
}

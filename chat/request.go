package chat

import (
	"cmp"
	"runtime"

	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
)

// requests makes what the model of a turn is sent.
type requests struct {
	*setting
	images  *images
	preview bool    // the request is not sent, and nothing is recorded
	sys     *system // the system prompt, once it is known; see systemPrompt
}

// build makes the request from the history.
func (r *requests) build() llm.Request {
	sys := r.systemPrompt()
	messages := read(r.rec, (*history.History).Messages)
	variant := r.s.log.Meta().Variant
	req := llm.Request{
		Purpose:    llm.PurposeTurn,
		Model:      r.model.Name,
		System:     sys.text(),
		SystemTail: sys.tail,
		Messages:   r.images.visible(messages),
		Server:     r.model.Server,
		MaxOutput:  r.model.Limit.Output,
		Context:    r.model.Limit.Context,
		Reasoning:  r.model.Reasoning,
		CacheKey:   r.s.id,
		Headers:    r.model.Headers,
		Extra:      r.model.Payload(variant),
		Origin:     r.origin(),
		Patience:   r.fallbacks.patience(),
	}
	vars := template.Vars{
		"workspaceRoots": r.Roots, "readFileMaxLines": r.Config.ToolCall.ReadFile.MaxLines,
		"fullModel": r.model.ID, "variant": variant,
	}
	for _, tool := range r.offered() {
		s := tool.Spec()
		description := s.Description
		if s.For != nil {
			description, _ = s.For(r.agent)
		}
		if own := cmp.Or(r.Config.Agents[r.agent].Prompts.Tools[s.FullName()], r.Config.Prompts.Tools[s.FullName()]); own != "" {
			description, _ = template.Text(own, vars) // config reports what is wrong with it
		}
		req.Tools = append(req.Tools, llm.ToolSpec{Name: s.FullName(), Description: description, Schema: s.Schema})
	}
	return req
}

// Machine is what prompts say about where eca runs.
type Machine struct {
	OS    string // Linux, macOS, Windows; empty: as Go calls it
	Shell string // that runs commands unless toolCall.shellCommand.path says another
	User  string
	Home  string
}

// PromptVars are the variables that prompts have outside of chats too. shell is the
// configured one, or empty.
func PromptVars(m Machine, shell string, roots []string) template.Vars {
	return template.Vars{
		"workspaceRoots": roots, "osName": cmp.Or(m.OS, runtime.GOOS), "shell": cmp.Or(shell, m.Shell),
		"userName": m.User, "homeDir": m.Home,
	}
}

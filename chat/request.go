package chat

import (
	"cmp"
	"runtime"

	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
)

// requestBuilder builds the requests to the model of a turn.
type requestBuilder struct {
	*turnContext
	images  *imageFilter
	preview bool    // the request is not sent, and no events are emitted
	sys     *system // cached by systemPrompt
}

// build returns the next request, from the history.
func (r *requestBuilder) build() llm.Request {
	sys := r.systemPrompt()
	messages := read(r.rec, (*history.History).Messages)
	variant := r.session.log.Meta().Variant
	req := llm.Request{
		Purpose:     llm.PurposeTurn,
		Model:       r.model.Name,
		System:      sys.text(),
		SystemTail:  sys.tail,
		Messages:    r.images.visible(messages),
		ServerTools: r.model.ServerTools,
		MaxOutput:   r.model.Limit.Output,
		Context:     r.model.Limit.Context,
		Reasoning:   r.model.Reasoning,
		CacheKey:    r.session.id,
		Headers:     r.model.Headers,
		Extra:       r.model.Payload(variant),
		Origin:      r.origin(),
		Patience:    r.fallbacks.patience(),
	}
	vars := template.Vars{
		"workspaceRoots": r.Roots, "readFileMaxLines": r.Config.ToolCall.ReadFile.MaxLines,
		"fullModel": r.model.ID, "variant": variant,
	}
	for _, tool := range r.offeredTools() {
		s := tool.Spec()
		description := s.Description
		if s.For != nil {
			description, _ = s.For(r.agent)
		}
		if own := cmp.Or(r.Config.Agents[r.agent].Prompts.Tools[s.FullName()], r.Config.Prompts.Tools[s.FullName()]); own != "" {
			description, _ = template.Text(own, vars) // package config reports errors in the template
		}
		req.Tools = append(req.Tools, llm.ToolSpec{Name: s.FullName(), Description: description, Schema: s.Schema})
	}
	return req
}

// Machine describes the machine that eca runs on, for prompts.
type Machine struct {
	OS    string // Linux, macOS or Windows; empty: runtime.GOOS
	Shell string // default shell; toolCall.shellCommand.path overrides it
	User  string
	Home  string
}

// PromptVars returns the variables that are available in all prompts, including those outside
// chats. shell is the configured shell, or "".
func PromptVars(m Machine, shell string, roots []string) template.Vars {
	return template.Vars{
		"workspaceRoots": roots, "osName": cmp.Or(m.OS, runtime.GOOS), "shell": cmp.Or(shell, m.Shell),
		"userName": m.User, "homeDir": m.Home,
	}
}

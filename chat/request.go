package chat

import (
	"cmp"
	"runtime"

	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// build makes the request from the history.
func (t *turn) build() llm.Request {
	sys := t.systemPrompt()
	t.mu.Lock()
	messages := t.history.messages()
	t.mu.Unlock()
	variant := t.s.log.Meta().Variant
	req := llm.Request{
		Purpose:    llm.PurposeTurn,
		Model:      t.model.Name,
		System:     sys.text(),
		SystemTail: sys.tail,
		Messages:   t.visible(messages),
		MaxOutput:  t.model.Limit.Output,
		Context:    t.model.Limit.Context,
		Reasoning:  t.model.Reasoning,
		CacheKey:   t.s.id,
		Headers:    t.model.Headers,
		Extra:      t.model.Payload(variant),
		Origin:     t.origin(),
	}
	vars := template.Vars{
		"workspaceRoots": t.roots, "readFileMaxLines": t.cfg.ToolCall.ReadFile.MaxLines,
		"fullModel": t.model.ID, "variant": variant,
	}
	for _, tool := range t.offered() {
		s := tool.Spec()
		description := s.Description
		if s.For != nil {
			description, _ = s.For(t.agent)
		}
		if own := cmp.Or(t.cfg.Agents[t.agent].Prompts.Tools[s.FullName()], t.cfg.Prompts.Tools[s.FullName()]); own != "" {
			description, _ = template.Text(own, vars) // config reports what is wrong with it
		}
		req.Tools = append(req.Tools, llm.ToolSpec{Name: s.FullName(), Description: description, Schema: s.Schema})
	}
	return req
}

// origin says for whom the turn asks.
func (t *turn) origin() llm.Origin {
	return llm.Origin{Chat: t.s.id, Parent: t.prompt.Parent, Turn: t.id, Agent: t.agent}
}

// offered lists the tools that the model may call.
func (t *turn) offered() []tools.Tool {
	if t.model.NoTools {
		return nil
	}
	var out []tools.Tool
	for _, tool := range t.tools.All() {
		if !t.hidden(tool.Spec()) {
			out = append(out, tool)
		}
	}
	return out
}

// Machine is what prompts say about where eca runs.
type Machine struct {
	OS    string // Linux, macOS, Windows; empty: as Go calls it
	Shell string // that runs commands unless toolCall.shellCommand.path says another
	User  string
	Home  string
}

// promptVars are the variables of prompts (eca-features 10).
func (t *turn) promptVars() template.Vars {
	vars := PromptVars(t.s.eng.deps.Machine, t.cfg.ToolCall.ShellCommand.Path, t.roots)
	vars["isSubagent"] = t.subagent()
	for _, tool := range t.offered() {
		vars["toolEnabled_"+tool.Spec().FullName()] = true
	}
	return vars
}

// subagent says whether the agent works for another one.
func (t *turn) subagent() bool {
	return t.prompt.Parent != "" || !t.cfg.Agents[t.agent].Primary()
}

// PromptVars are the variables that prompts have outside of chats too. shell is the
// configured one, or empty.
func PromptVars(m Machine, shell string, roots []string) template.Vars {
	return template.Vars{
		"workspaceRoots": roots, "osName": cmp.Or(m.OS, runtime.GOOS), "shell": cmp.Or(shell, m.Shell),
		"userName": m.User, "homeDir": m.Home,
	}
}

// render fills in a prompt. One that is no valid template is sent as it was written; the
// configuration's problems say so.
func (t *turn) render(prompt string) string {
	text, _ := template.Text(prompt, t.vars())
	return text
}

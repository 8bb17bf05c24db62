package chat

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// turnContext is shared by the parts of a turn: the chat, the agent, the model, the policy and the record
// of events. It does not change, except for model, fallbacks and tools, which the turn's own goroutine
// sets between requests.
type turnContext struct {
	Snapshot
	session *Session
	id      string // id of the turn
	ctx     context.Context
	rec     *turnRecord
	ids     *idRegistry

	parent     string      // id of the parent chat; set only in the chat of a subagent
	assignment *assignment // set in a child turn; nil if the turn answers the user
	agent      string
	model      Model
	fallbacks  fallbacks
	tools      *tools.Registry // updated after calls of MCP tools

	vars func() template.Vars // variables of prompts
}

// idRegistry makes the ids of calls and reasoning blocks unique across a turn and its subagents. Some
// clients send every decision with the id of the parent chat (eca-protocol.md 4.2), and keep the calls
// of all chats in one list, so they would confuse equal ids.
type idRegistry struct {
	mu     sync.Mutex             // guards owners
	owners map[string]*turnRecord // by id: record of the turn that uses it
}

// claim reserves an id for a turn; ok is false if another turn uses it.
func (g *idRegistry) claim(id string, r *turnRecord) (ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if owner, taken := g.owners[id]; taken {
		return owner == r
	}
	g.owners[id] = r
	return true
}

// newID returns a unique id for a call or block of reasoning, derived from the provider's id. Ids are
// unique within a chat, while providers repeat theirs in later responses.
func (t *turnContext) newID(id string) string {
	if id == "" {
		return t.session.eng.deps.NewID()
	}
	unique := id
	for n := 2; t.hasID(unique) || !t.ids.claim(unique, t.rec); n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	return unique
}

// hasID reports whether the chat or its parent has a call or a block of reasoning with this id.
func (t *turnContext) hasID(id string) bool {
	has := func(h *history.History) bool { return h.Has(id) }
	return read(t.rec, has) || t.assignment != nil && read(t.assignment.parentTurn.rec, has)
}

// millisSince returns the milliseconds since start.
func (t *turnContext) millisSince(start time.Time) int64 {
	return t.session.eng.deps.Now().Sub(start).Milliseconds()
}

// origin identifies the turn in requests.
func (t *turnContext) origin() llm.Origin {
	return llm.Origin{Chat: t.session.id, Parent: t.parent, Turn: t.id, Agent: t.agent}
}

// isSubagent reports whether the agent runs as a subagent, or is only for subagents.
func (t *turnContext) isSubagent() bool {
	return t.parent != "" || !t.Config.Agents[t.agent].Primary()
}

// autoApproves reports whether auto-approve is on, in the chat or in the parent chat of a subagent. Users
// can change it at any time.
func (t *turnContext) autoApproves() bool {
	return t.session.log.Meta().Trust || t.assignment != nil && t.assignment.parentTurn.session.log.Meta().Trust
}

// canAskUser reports whether the user can be asked about a call.
func (t *turnContext) canAskUser() bool {
	return t.assignment == nil || !t.assignment.subagent.Background
}

// changeOwner returns the turn and the call to which the log attributes changes of files. It attributes
// changes by a subagent to the parent's call, so that undoing that call undoes them too.
func (t *turnContext) changeOwner(callID string) (*turnContext, string) {
	if t.assignment != nil {
		return t.assignment.parentTurn, t.id
	}
	return t, callID
}

// judge returns the policy's verdict about a call. For a subagent, it returns the stricter of two
// verdicts: for the subagent's agent and for the parent's agent.
func (t *turnContext) judge(tc tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	v := t.Policy.Judge(tc, spec, plan)
	if t.assignment != nil {
		tc.Agent = t.assignment.parentTurn.agent
		v = v.Stricter(t.Policy.Judge(tc, spec, plan))
	}
	return v
}

// hidden reports whether the model cannot call a tool.
func (t *turnContext) hidden(spec tools.Spec) bool {
	if spec.For != nil {
		if _, ok := spec.For(t.agent); !ok {
			return true
		}
	}
	return spec.PrimaryOnly && t.parent != "" || t.hiddenBy(spec) != ""
}

// hiddenBy returns the setting because of which the agent, or the parent's agent, may not use a tool.
// It is empty if both may.
func (t *turnContext) hiddenBy(spec tools.Spec) (rule string) {
	rule = t.Policy.HiddenBy(t.agent, spec)
	if rule == "" && t.assignment != nil {
		rule = t.Policy.HiddenBy(t.assignment.parentTurn.agent, spec)
	}
	return rule
}

// offeredTools returns the tools that the model may call.
func (t *turnContext) offeredTools() []tools.Tool {
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

// promptVars returns the variables of prompts (eca-features.md 10).
func (t *turnContext) promptVars() template.Vars {
	vars := PromptVars(t.session.eng.deps.Machine, t.Config.ToolCall.ShellCommand.Path, t.Roots)
	vars["isSubagent"] = t.isSubagent()
	for _, tool := range t.offeredTools() {
		vars["toolEnabled_"+tool.Spec().FullName()] = true
	}
	return vars
}

// render fills in the variables of a prompt. An invalid template is sent unchanged; the configuration
// reports it as a problem.
func (t *turnContext) render(prompt string) string {
	text, _ := template.Text(prompt, t.vars())
	return text
}

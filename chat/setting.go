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

// setting is what the parts of a turn share: the chat, the agent, the model, the rules and the record
// of events. It does not change, except for model, fallbacks and tools, which the turn's own goroutine
// sets between requests.
type setting struct {
	Snapshot
	s     *Session
	id    string // of the turn
	ctx   context.Context
	rec   *turnRecord
	names *names

	parent     string      // the chat that a subagent's chat works for
	assignment *assignment // of a child turn; nil if the turn answers the user
	agent      string
	model      Model
	fallbacks  fallbacks
	tools      *tools.Registry // those of the snapshot, as of now

	vars func() template.Vars // of prompts
}

// names are ids of calls and reasoning, which a turn and its subagents, that end with it, never
// share: some clients name the parent's chat for every call (eca-protocol 4.2), so that their
// decision about one call would count for another's, and keep calls of all chats in one list.
type names struct {
	mu     sync.Mutex             // guards owners
	owners map[string]*turnRecord // of the turns that have them
}

// claim gives a name to a turn; ok is false if another one has it.
func (n *names) claim(name string, r *turnRecord) (ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if owner, taken := n.owners[name]; taken {
		return owner == r
	}
	n.owners[name] = r
	return true
}

// newID returns an id for what the provider named id: ids are unique within a chat, and
// providers repeat them in later responses.
func (t *setting) newID(id string) string {
	if id == "" {
		return t.s.eng.deps.NewID()
	}
	unique := id
	for n := 2; t.knows(unique) || !t.names.claim(unique, t.rec); n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	return unique
}

// knows says whether the chat, or the one that it works for, has a call or reasoning with this id.
func (t *setting) knows(id string) bool {
	has := func(h *history.History) bool { return h.Has(id) }
	return read(t.rec, has) || t.assignment != nil && read(t.assignment.parentTurn.rec, has)
}

// since returns how many milliseconds have gone by.
func (t *setting) since(start time.Time) int64 {
	return t.s.eng.deps.Now().Sub(start).Milliseconds()
}

// origin says for whom the turn asks.
func (t *setting) origin() llm.Origin {
	return llm.Origin{Chat: t.s.id, Parent: t.parent, Turn: t.id, Agent: t.agent}
}

// subagent says whether the agent works for another one.
func (t *setting) subagent() bool {
	return t.parent != "" || !t.Config.Agents[t.agent].Primary()
}

// trusted says whether what would ask runs without: a subagent's parent can say so too,
// at any moment.
func (t *setting) trusted() bool {
	return t.s.log.Meta().Trust || t.assignment != nil && t.assignment.parentTurn.s.log.Meta().Trust
}

// asks says whether the user can be asked about a call.
func (t *setting) asks() bool { return t.assignment == nil || !t.assignment.sub.Background }

// charged returns the turn, and the call of it, that changes of files are recorded with: what a
// subagent does is undone with the call that it works for.
func (t *setting) charged(callID string) (*setting, string) {
	if t.assignment != nil {
		return t.assignment.parentTurn, t.id
	}
	return t, callID
}

// judge asks the policy; what the parent's agent may not, its subagent may not either.
func (t *setting) judge(tc tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	v := t.Policy.Judge(tc, spec, plan)
	if t.assignment != nil {
		tc.Agent = t.assignment.parentTurn.agent
		v = v.Stricter(t.Policy.Judge(tc, spec, plan))
	}
	return v
}

// hidden says that the model cannot call a tool.
func (t *setting) hidden(spec tools.Spec) bool {
	if spec.For != nil {
		if _, ok := spec.For(t.agent); !ok {
			return true
		}
	}
	return spec.PrimaryOnly && t.parent != "" || t.disabled(spec)
}

// disabled says that the agent, or the one that it works for, may not use a tool.
func (t *setting) disabled(spec tools.Spec) bool {
	return t.Policy.Hidden(t.agent, spec) || t.assignment != nil && t.Policy.Hidden(t.assignment.parentTurn.agent, spec)
}

// offered lists the tools that the model may call.
func (t *setting) offered() []tools.Tool {
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

// promptVars are the variables of prompts (eca-features 10).
func (t *setting) promptVars() template.Vars {
	vars := PromptVars(t.s.eng.deps.Machine, t.Config.ToolCall.ShellCommand.Path, t.Roots)
	vars["isSubagent"] = t.subagent()
	for _, tool := range t.offered() {
		vars["toolEnabled_"+tool.Spec().FullName()] = true
	}
	return vars
}

// render fills in a prompt. An invalid template is sent as it was written; the
// configuration's problems say so.
func (t *setting) render(prompt string) string {
	text, _ := template.Text(prompt, t.vars())
	return text
}

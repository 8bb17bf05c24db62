package permission

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/lockedfile"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Memory is what users chose to remember: for the session as long as the process lives,
// for all chats; for a workspace and globally in a file (remembered.go).
type Memory struct {
	kept *kept // nil: sessions only

	mu        sync.Mutex // guards what follows
	keys      map[string]bool
	approvals map[string]int // by workspace: of commands that could run in its sandbox
}

// NewMemory returns an empty memory that keeps what outlives the process in the file at
// path; an empty path keeps nothing.
func NewMemory(path string) *Memory {
	m := &Memory{keys: map[string]bool{}}
	if path != "" {
		m.kept = &kept{file: lockedfile.New(path, documentVersion)}
	}
	return m
}

// keysOf lists what can be remembered of a call, and says whether that is all of it: only
// then does remembering it allow the call. Commands are remembered by what they run, what
// asks the web by its host; other tools by name, and outside the workspace by path too.
func (j *judgment) keysOf(spec tools.Spec, plan tools.Plan) (keys []string, all bool) {
	name := spec.FullName()
	if plan.Address != "" {
		u, err := url.Parse(plan.Address)
		if err != nil || u.Host == "" {
			return nil, false
		}
		return []string{name + " " + u.Host}, true
	}
	if plan.Command == nil {
		keys = []string{name}
		for _, path := range plan.Paths {
			if real := j.leads(path); !j.contains(real) {
				keys = append(keys, name+" "+filepath.ToSlash(real))
			}
		}
		if len(keys) > 1 {
			keys = keys[1:]
		}
		return keys, true
	}
	if plan.Command.Outside != "" { // asked about each time
		return nil, false
	}
	if plan.Command.Given != nil { // a line of the user's
		return []string{name}, !j.namesOutside(cmdline.Command{Args: plan.Command.Given}, j.newPlaces(plan.Command.Dir))
	}
	program := plan.Command.Program
	if program.Unresolved != "" || program.Computed != "" || len(program.Writes) > 0 || len(program.Commands) == 0 {
		return nil, false
	}
	all = true
	places := j.newPlaces(plan.Command.Dir)
	known := true // where it runs
	for _, c := range program.Commands {
		known = known && j.enter(places, c)
		// The others of its chain are remembered, as clients say. What a wrapper runs is not,
		// nor what names files outside of the workspace.
		if c.Key == "" || len(c.Demands) > 0 || !known || j.namesOutside(c, places) {
			all = false
			continue
		}
		keys = append(keys, name+" "+c.Key)
	}
	if dir := j.leads(plan.Command.Dir); len(keys) > 0 && !j.contains(dir) { // elsewhere, a word stands for another program
		keys = append(keys, name+" in "+filepath.ToSlash(dir))
	}
	return keys, all
}

// namesOutside says whether a word of a command may name something outside of the workspace.
func (j *judgment) namesOutside(c cmdline.Command, l *places) bool {
	if c.Effect == cmdline.Reads {
		return j.pathsInside(c, l) != ""
	}
	return j.nameOutside(c, l, j.inside) != ""
}

// nameOutside returns the first word of a command that may name something that is not inside.
func (j *judgment) nameOutside(c cmdline.Command, l *places, inside func(string) bool) string {
	for _, word := range c.Args {
		name := expandHome(afterOption(word))
		if name != os.DevNull && slices.ContainsFunc(l.dirs, func(dir string) bool { return !inside(under(dir, name)) }) {
			return name
		}
	}
	return ""
}

// workspaceOf names the workspace of a call.
func workspaceOf(call tools.Call, links *workspace.Resolver) string {
	if len(call.Roots) == 0 {
		return ""
	}
	return links.Resolve(call.Roots[0])
}

// remembers returns how far the memory of a key reaches; Once if there is none.
func (m *Memory) remembers(j *judgment, call tools.Call, key string) tools.Scope {
	m.mu.Lock()
	session := m.keys[key]
	m.mu.Unlock()
	if session {
		return tools.ForSession
	}
	if m.kept == nil {
		return tools.Once
	}
	return m.kept.remembers(workspaceOf(call, j.links), key)
}

// allows says whether all of a call is remembered, and how far.
func (m *Memory) allows(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan) tools.Scope {
	scope := tools.Once
	keys, all := j.keysOf(spec, plan)
	if !all {
		return tools.Once
	}
	for _, k := range keys {
		if scope = m.remembers(j, call, k); scope == tools.Once {
			return tools.Once
		}
	}
	return scope
}

// AsksAgain says whether what a rule asks about is asked again, whatever is remembered of it.
func AsksAgain(rule string) bool {
	return slices.Contains([]string{RuleProtected, RuleIrreversible, ruleLeaves, ruleChanged, ruleTwoReadings, ruleNoText}, rule) || strings.HasSuffix(rule, ".readOnly")
}

func (m *Memory) remember(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan, scope tools.Scope) error {
	keys, _ := j.keysOf(spec, plan)
	m.mu.Lock()
	for _, k := range keys { // for the session in any case, should the rest fail
		m.keys[k] = m.keys[k] || scope != tools.Once
	}
	m.mu.Unlock()
	switch scope {
	case tools.ForWorkspace:
		return m.kept.add(workspaceOf(call, j.links), keys)
	case tools.Everywhere:
		return m.kept.add("", keys)
	}
	return nil
}

// inSandboxKey lets commands run in the sandbox of a workspace without a question.
const inSandboxKey = "sandbox: commands of this workspace may run without a question"

// offeredKey says that this was offered to the user.
const offeredKey = "sandbox: offered to run commands without a question"

// inSandbox says whether the user chose that.
func (m *Memory) inSandbox(j *judgment, call tools.Call) bool { return m.isKept(j, call, inSandboxKey) }

func (m *Memory) isKept(j *judgment, call tools.Call, key string) bool {
	return slices.Contains(m.kept.ofWorkspace(workspaceOf(call, j.links)), key)
}

// countApproval counts a command that the user approved and that could run in the sandbox. The
// one with which the sandbox was offered is the last.
func (m *Memory) countApproval(j *judgment, call tools.Call) error {
	offered := m.offer(j, call)
	place := workspaceOf(call, j.links)
	m.mu.Lock()
	if m.approvals == nil {
		m.approvals = map[string]int{}
	}
	m.approvals[place]++
	m.mu.Unlock()
	if !offered || m.kept == nil {
		return nil
	}
	return m.Keep(call, []string{offeredKey})
}

// approvalsBeforeOffer is how many commands the user approves before the sandbox is offered.
const approvalsBeforeOffer = 2

// offer says whether the sandbox is offered now.
func (m *Memory) offer(j *judgment, call tools.Call) bool {
	if len(call.Roots) == 0 {
		return false
	}
	place := workspaceOf(call, j.links)
	m.mu.Lock()
	count := m.approvals[place]
	m.mu.Unlock()
	return count == approvalsBeforeOffer && !m.isKept(j, call, offeredKey) && !m.inSandbox(j, call)
}

// Begin returns what is remembered for the workspace of a call under keys that begin with a
// prefix, without it.
func (m *Memory) Begin(call tools.Call, prefix string) []string {
	var out []string
	for _, key := range m.kept.ofWorkspace(workspaceOf(call, workspace.NewResolver())) {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			out = append(out, rest)
		}
	}
	return out
}

// Keep remembers keys for the workspace of a call.
func (m *Memory) Keep(call tools.Call, keys []string) error {
	if len(call.Roots) == 0 {
		return errors.New("the chat has no workspace folder")
	}
	return m.kept.add(workspaceOf(call, workspace.NewResolver()), keys)
}

// annotate marks the remembered commands of a shell line for the user; nil if there are
// none.
func (m *Memory) annotate(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan) *event.Details {
	if plan.Details == nil || plan.Details.ShellCommand == nil {
		return nil
	}
	commands := slices.Clone(plan.Details.ShellCommand.Commands)
	found := false
	for i, c := range commands {
		commands[i].Remembered = c.Key != "" && m.remembers(j, call, spec.FullName()+" "+c.Key) != tools.Once
		found = found || commands[i].Remembered
	}
	if !found {
		return nil
	}
	sc := *plan.Details.ShellCommand
	sc.Commands = commands
	return &event.Details{ShellCommand: &sc}
}

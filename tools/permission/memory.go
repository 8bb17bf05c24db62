package permission

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/consent"
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
		m.kept = &kept{file: consent.File{
			Path: path, What: "remembered permissions", Lost: "until then nothing is remembered, afterwards eca asks again about all of it",
		}}
	}
	return m
}

// Path is the file; may be empty.
func (m *Memory) Path() string {
	if m.kept == nil {
		return ""
	}
	return m.kept.file.Path
}

// Check says why what is kept in the file cannot be used.
func (m *Memory) Check() error {
	if m.kept == nil {
		return nil
	}
	_, err := m.kept.read()
	return err
}

// keysOf lists what can be remembered of a call, and says why that is not all of it; empty if it
// is: only then does remembering it allow the call. Commands are remembered by what they run, what
// asks the web by its host; other tools by name, and outside the workspace by path too.
func (j *judgment) keysOf(spec tools.Spec, plan tools.Plan) (keys []string, but string) {
	if !j.keyed {
		j.keys, j.unkeyed = j.findKeys(spec, plan)
		j.keyed = true
	}
	return j.keys, j.unkeyed
}

func (j *judgment) findKeys(spec tools.Spec, plan tools.Plan) (keys []string, but string) {
	name := spec.FullName()
	if plan.Address != "" {
		u, err := url.Parse(plan.Address)
		if err != nil || u.Host == "" {
			return nil, cannotBeRemembered("an address without a host")
		}
		return []string{name + " " + u.Host}, ""
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
		return keys, ""
	}
	if plan.Command.Outside != "" {
		return nil, asksEachTime
	}
	if plan.Command.TemplateArguments != nil { // a line of the user's
		if j.namesOutside(cmdline.Command{Args: plan.Command.TemplateArguments}, j.newPlaces(plan.Command.Dir)) {
			but = cannotBeRemembered(strings.Join(plan.Command.TemplateArguments, " "))
		}
		return []string{name}, but
	}
	program := plan.Command.Program
	switch {
	case len(program.Writes) > 0:
		return nil, cannotBeRemembered("> " + program.Writes[0])
	case len(program.Demands) > 0, program.Unresolved != "" || program.Computed != "" || len(program.Commands) == 0:
		return nil, cannotBeRemembered("")
	}
	places := j.newPlaces(plan.Command.Dir)
	known := true // where it runs
	for _, c := range program.Commands {
		known = known && j.enter(places, c)
		// The others of its chain are remembered, as clients say. Commands that a wrapper
		// runs are not, nor those that name files outside of the workspace.
		if c.Key == "" || len(c.Demands) > 0 || !known || j.namesOutside(c, places) {
			but = cmp.Or(but, cannotBeRemembered(c.Source))
			continue
		}
		keys = append(keys, name+" "+c.Key)
	}
	if dir := j.leads(plan.Command.Dir); len(keys) > 0 && !j.contains(dir) { // elsewhere, a word stands for another program
		keys = append(keys, name+" in "+filepath.ToSlash(dir))
	}
	return keys, but
}

// asksEachTime is why a question cannot be answered for later calls.
const asksEachTime = "eca asks about each call of this kind"

// cannotBeRemembered says that of a command, in one line.
func cannotBeRemembered(command string) string {
	return cmp.Or(clip(command), "this command") + " cannot be remembered"
}

// notRemembered says why a call that asks would ask again although its approval was remembered;
// empty if it would not.
func (j *judgment) notRemembered(call tools.Call, spec tools.Spec, plan tools.Plan, rule string) string {
	if AsksAgain(rule) {
		return asksEachTime
	}
	keys, but := j.keysOf(spec, plan)
	if but == "" && j.memory.allowsAll(j, call, keys) != tools.Once {
		return "eca asks although this is remembered"
	}
	return but
}

// namesOutside reports whether a word of a command may name something outside of the workspace.
func (j *judgment) namesOutside(c cmdline.Command, l *places) bool {
	if c.Effect == cmdline.Reads {
		return j.pathsInside(c, l) != ""
	}
	return j.nameOutside(c, l, j.inside) != ""
}

// nameOutside returns the first word of a command that may name something that is not inside.
func (j *judgment) nameOutside(c cmdline.Command, l *places, inside func(string) bool) string {
	for _, word := range c.Args {
		name := j.expandVariable(expandHome(afterOption(word)))
		if strings.HasPrefix(name, "~") { // another user's home folder, or a folder of the shell's
			return name
		}
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

// remembers returns how far the memory of a key reaches; otherwise Once.
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

// allows reports whether all of a call is remembered, and how far.
func (m *Memory) allows(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan) tools.Scope {
	if c := plan.Command; c != nil && c.TemplateArguments == nil && slices.ContainsFunc(c.Program.Commands, func(cmd cmdline.Command) bool {
		return cmd.Key == "" || m.remembers(j, call, spec.FullName()+" "+cmd.Key) == tools.Once
	}) {
		return tools.Once // without a look at where its words lead
	}
	keys, but := j.keysOf(spec, plan)
	if but != "" {
		return tools.Once
	}
	return m.allowsAll(j, call, keys)
}

// allowsAll says how far all of some keys are remembered.
func (m *Memory) allowsAll(j *judgment, call tools.Call, keys []string) tools.Scope {
	scope := tools.Once
	for _, k := range keys {
		if scope = m.remembers(j, call, k); scope == tools.Once {
			return tools.Once
		}
	}
	return scope
}

// AsksAgain reports whether what a rule asks about is asked again, whatever is remembered of it.
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

// inSandbox reports whether the user chose that.
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

// offer reports whether the sandbox is offered now.
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

// annotate marks the remembered commands of a shell line for the user; it may return
// nil.
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

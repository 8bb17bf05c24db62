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

// Memory holds the decisions that users chose to remember: for the session in memory, for all chats of
// the process; for a workspace or globally in a file (remembered.go).
type Memory struct {
	file *permissionsFile // nil: only for sessions

	mu        sync.Mutex // guards what follows
	keys      map[string]bool
	approvals map[string]int // by workspace: number of approved commands that could run in its sandbox
}

// NewMemory returns a memory that uses the file at path. Without a path, it remembers decisions only
// for sessions.
func NewMemory(path string) *Memory {
	m := &Memory{keys: map[string]bool{}}
	if path != "" {
		m.file = &permissionsFile{file: consent.File{
			Path: path, What: "remembered permissions", Lost: "until then nothing is remembered, afterwards eca asks again about all of it",
		}}
	}
	return m
}

// Path returns the path of the file; empty if there is no file.
func (m *Memory) Path() string {
	if m.file == nil {
		return ""
	}
	return m.file.file.Path
}

// Check returns an error if the file cannot be used.
func (m *Memory) Check() error {
	if m.file == nil {
		return nil
	}
	_, err := m.file.read()
	return err
}

// keysOf returns the keys under which a call can be remembered. If they do not cover the whole call,
// whyNot is the reason, and remembering the keys does not allow the call. Commands have keys for the
// programs that they run, web requests for their host, and other tools for their name; outside the
// workspace, the path is part of the key.
func (j *judgment) keysOf(spec tools.Spec, plan tools.Plan) (keys []string, whyNot string) {
	if !j.keysFound {
		j.keys, j.whyNoKeys = j.findKeys(spec, plan)
		j.keysFound = true
	}
	return j.keys, j.whyNoKeys
}

func (j *judgment) findKeys(spec tools.Spec, plan tools.Plan) (keys []string, whyNot string) {
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
			if real := j.resolve(path); !j.contains(real) {
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
	if plan.Command.TemplateArguments != nil { // a custom tool
		if j.namesOutside(cmdline.Command{Args: plan.Command.TemplateArguments}, j.newWorkDirs(plan.Command.Dir)) {
			whyNot = cannotBeRemembered(strings.Join(plan.Command.TemplateArguments, " "))
		}
		return []string{name}, whyNot
	}
	program := plan.Command.Program
	switch {
	case len(program.Writes) > 0:
		return nil, cannotBeRemembered("> " + program.Writes[0])
	case len(program.Demands) > 0, program.Unresolved != "" || program.Computed != "" || len(program.Commands) == 0:
		return nil, cannotBeRemembered("")
	}
	dirs := j.newWorkDirs(plan.Command.Dir)
	known := true // the folder in which the command runs
	for _, c := range program.Commands {
		known = known && j.enter(dirs, c)
		// Commands that a wrapper runs, or that name files outside the workspace, have no key. The
		// other commands of the chain have.
		switch {
		case j.namesOutside(c, dirs):
			whyNot = cmp.Or(whyNot, cannotBeRemembered(c.Source)+": it concerns a path outside the workspace")
			continue
		case c.Key == "" || len(c.Demands) > 0 || !known:
			whyNot = cmp.Or(whyNot, cannotBeRemembered(c.Source))
			continue
		}
		keys = append(keys, name+" "+c.Key)
	}
	if dir := j.resolve(plan.Command.Dir); len(keys) > 0 && !j.contains(dir) { // outside the workspace, the same name may be another program
		keys = append(keys, name+" in "+filepath.ToSlash(dir))
	}
	return keys, whyNot
}

// asksEachTime is why an approval cannot be remembered for later calls.
const asksEachTime = "eca asks about each call of this kind"

// cannotBeRemembered returns the message that approvals of a command cannot be remembered.
func cannotBeRemembered(command string) string {
	return cmp.Or(shortLine(command), "this command") + " cannot be remembered"
}

// notRemembered returns why eca asks about a call again even if its approval is remembered; empty if it
// does not.
func (j *judgment) notRemembered(call tools.Call, spec tools.Spec, plan tools.Plan, rule string) string {
	if AsksAgain(rule) {
		return asksEachTime
	}
	keys, whyNot := j.keysOf(spec, plan)
	if whyNot == "" && j.memory.scopeOfKeys(j, call, keys) != tools.Once {
		return "eca asks although this is remembered"
	}
	return whyNot
}

// namesOutside reports whether an argument of a command may name a file outside the workspace.
func (j *judgment) namesOutside(c cmdline.Command, l *workDirs) bool {
	if c.Effect == cmdline.Reads {
		return j.pathOutside(c, l) != ""
	}
	return j.nameOutside(c, l, j.inside) != ""
}

// nameOutside returns the first argument of a command that may name a file for which inside returns
// false.
func (j *judgment) nameOutside(c cmdline.Command, l *workDirs, inside func(string) bool) string {
	for _, word := range c.Args {
		name := j.expandVariable(expandHome(afterOption(word)))
		if strings.HasPrefix(name, "~") { // another user's home folder, or a shell variable such as ~+
			return name
		}
		if name != os.DevNull && slices.ContainsFunc(l.possible, func(dir string) bool { return !inside(joinPath(dir, name)) }) {
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

// scopeOfKey returns the scope for which a key is remembered; Once if it is not.
func (m *Memory) scopeOfKey(j *judgment, call tools.Call, key string) tools.Scope {
	m.mu.Lock()
	session := m.keys[key]
	m.mu.Unlock()
	if session {
		return tools.ForSession
	}
	if m.file == nil {
		return tools.Once
	}
	return m.file.scopeOfKey(workspaceOf(call, j.links), key)
}

// scopeOfCall returns the scope for which a whole call is remembered; Once if it is not.
func (m *Memory) scopeOfCall(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan) tools.Scope {
	if c := plan.Command; c != nil && c.TemplateArguments == nil && slices.ContainsFunc(c.Program.Commands, func(cmd cmdline.Command) bool {
		return cmd.Key == "" || m.scopeOfKey(j, call, spec.FullName()+" "+cmd.Key) == tools.Once
	}) {
		return tools.Once // without resolving its arguments
	}
	keys, whyNot := j.keysOf(spec, plan)
	if whyNot != "" {
		return tools.Once
	}
	return m.scopeOfKeys(j, call, keys)
}

// scopeOfKeys returns the narrowest scope for which the keys are remembered; Once if one of them is not.
func (m *Memory) scopeOfKeys(j *judgment, call tools.Call, keys []string) tools.Scope {
	scope := tools.Once
	for _, k := range keys {
		if scope = m.scopeOfKey(j, call, k); scope == tools.Once {
			return tools.Once
		}
	}
	return scope
}

// IsAskRule reports whether a rule is one of the user's that ask (toolCall.approval.ask).
func IsAskRule(rule string) bool { return strings.Contains(rule, "toolCall.approval.ask.") }

// AsksAgain reports whether a rule asks about every call, whatever is remembered.
func AsksAgain(rule string) bool {
	return slices.Contains([]string{RuleProtected, RuleIrreversible, ruleOutsideSandbox, ruleChanged, ruleTwoReadings, ruleNoText}, rule) || strings.HasSuffix(rule, ".readOnly")
}

func (m *Memory) remember(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan, scope tools.Scope) error {
	keys, _ := j.keysOf(spec, plan)
	m.mu.Lock()
	for _, k := range keys { // at least for the session, if the file cannot be written
		m.keys[k] = m.keys[k] || scope != tools.Once
	}
	m.mu.Unlock()
	switch scope {
	case tools.ForWorkspace:
		return m.file.add(workspaceOf(call, j.links), keys)
	case tools.Everywhere:
		return m.file.add("", keys)
	}
	return nil
}

// inSandboxKey is remembered for a workspace in whose sandbox commands run without a question.
const inSandboxKey = "sandbox: commands of this workspace may run without a question"

// offeredKey is remembered for a workspace whose user was offered the decision inSandboxKey.
const offeredKey = "sandbox: offered to run commands without a question"

// inSandbox reports whether the user chose to run commands in the sandbox without a question.
func (m *Memory) inSandbox(j *judgment, call tools.Call) bool { return m.hasKey(j, call, inSandboxKey) }

func (m *Memory) hasKey(j *judgment, call tools.Call, key string) bool {
	return slices.Contains(m.file.ofWorkspace(workspaceOf(call, j.links)), key)
}

// countApproval counts a command that the user approved and that could run in the sandbox. If
// the question offered that, it also records the offer.
func (m *Memory) countApproval(j *judgment, call tools.Call) error {
	offered := m.offerDue(j, call)
	place := workspaceOf(call, j.links)
	m.mu.Lock()
	if m.approvals == nil {
		m.approvals = map[string]int{}
	}
	m.approvals[place]++
	m.mu.Unlock()
	if !offered || m.file == nil {
		return nil
	}
	return m.Keep(call, []string{offeredKey})
}

// approvalsBeforeOffer is the number of commands that the user approves before the sandbox is offered.
const approvalsBeforeOffer = 2

// offerDue reports whether the sandbox should be offered now.
func (m *Memory) offerDue(j *judgment, call tools.Call) bool {
	if len(call.Roots) == 0 {
		return false
	}
	place := workspaceOf(call, j.links)
	m.mu.Lock()
	count := m.approvals[place]
	m.mu.Unlock()
	return count == approvalsBeforeOffer && !m.hasKey(j, call, offeredKey) && !m.inSandbox(j, call)
}

// KeysWithPrefix returns the keys with a prefix that are remembered for the workspace of a call, without the
// prefix.
func (m *Memory) KeysWithPrefix(call tools.Call, prefix string) []string {
	var out []string
	for _, key := range m.file.ofWorkspace(workspaceOf(call, workspace.NewResolver())) {
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
	return m.file.add(workspaceOf(call, workspace.NewResolver()), keys)
}

// annotate returns details that mark the remembered commands of a shell line; it may return nil.
func (m *Memory) annotate(j *judgment, call tools.Call, spec tools.Spec, plan tools.Plan) *event.Details {
	if plan.Details == nil || plan.Details.ShellCommand == nil {
		return nil
	}
	commands := slices.Clone(plan.Details.ShellCommand.Commands)
	found := false
	for i, c := range commands {
		commands[i].Remembered = c.Key != "" && m.scopeOfKey(j, call, spec.FullName()+" "+c.Key) != tools.Once
		found = found || commands[i].Remembered
	}
	if !found {
		return nil
	}
	sc := *plan.Details.ShellCommand
	sc.Commands = commands
	return &event.Details{ShellCommand: &sc}
}

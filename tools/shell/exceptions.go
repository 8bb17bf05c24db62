package shell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// Connection is the network in which a tool call's command runs.
type Connection struct {
	Children *proc.Pool // starts processes in the network
	// Refused returns the addresses, as host:port, to which connections were refused: those that the
	// user can allow, and others.
	Refused func() (unlisted, private []string)
	Close   func()
}

// Choice is one of the answers that a question offers to the user.
type Choice struct {
	Label, Description string
	Grants             bool // the answer also counts for later calls
}

// Memory keeps the user's answers for the workspace of a call.
type Memory interface {
	// KeysWithPrefix returns the keys that begin with a prefix, without the prefix.
	KeysWithPrefix(call tools.Call, prefix string) []string
	Keep(call tools.Call, keys []string) error
}

// access is an access that the sandbox of the workspace does not allow: a connection or a path.
type access struct {
	address string // host:port
	path    string // an existing file or folder
}

func (a access) String() string {
	if a.address != "" {
		return "connect to " + a.address
	}
	return "write to " + a.path
}

// exceptions are the user's decisions about some programs.
type exceptions struct{ allowed, denied []access }

const (
	keyPrefix = "sandbox: "
	allows    = " may "
	denies    = " must not "
)

// parseAccess parses the output of access.String.
func parseAccess(text string) (access, bool) {
	if address, ok := strings.CutPrefix(text, "connect to "); ok {
		return access{address: address}, true
	}
	place, ok := strings.CutPrefix(text, "write to ")
	return access{path: place}, ok
}

// loadExceptions returns the accesses that the user allowed for all of the programs, and those denied for
// any of them.
func (o Options) loadExceptions(call tools.Call, programs []string) exceptions {
	var out exceptions
	if o.Memory == nil {
		return out
	}
	for i, program := range programs {
		read := func(verb string) (list []access) {
			for _, text := range o.Memory.KeysWithPrefix(call, keyPrefix+program+verb) {
				if a, ok := parseAccess(text); ok {
					list = append(list, a)
				}
			}
			return list
		}
		allowed := read(allows)
		if i > 0 {
			allowed = slices.DeleteFunc(allowed, func(a access) bool { return !slices.Contains(out.allowed, a) })
		}
		out.allowed, out.denied = allowed, append(out.denied, read(denies)...)
	}
	return out
}

// sandboxPrograms returns the programs that a remembered exception of a command applies to. Each is
// identified by its approval key, or else by its name. Programs that only read are omitted if there
// are others. It returns nil if the name of a program is unknown.
func sandboxPrograms(p cmdline.Program, dir string) []string {
	var out, readers []string
	for _, c := range p.Commands {
		name := c.Name
		if strings.Contains(name, "/") && !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		name = cmp.Or(c.Key, name)
		switch {
		case name == "" || strings.ContainsAny(name, "\n$`*?<>"):
			return nil
		case c.Effect == cmdline.Reads && !slices.Contains(readers, name):
			readers = append(readers, name)
		case c.Effect != cmdline.Reads && !slices.Contains(out, name):
			out = append(out, name)
		}
	}
	if len(out) == 0 {
		return readers
	}
	return out
}

// execution is the command of a tool call.
type execution struct {
	program       cmdline.Program
	dir           string
	timeout       time.Duration
	prepare       func(tools.Call) (proc.Spec, error)
	canAskOutside bool // the tool has an argument named outside
}

// attempt is one run of an execution.
type attempt struct {
	result         tools.Result
	leftProcesses  bool // its child processes were still running when it ended
	hitMemoryLimit bool // it was killed at the memory limit of the sandbox
	spec           proc.Spec
	refused        []string // addresses to which it could not connect
	private        []string // like refused, but on this machine or its network
	refusal        refusal  // the refusal that its error messages suggest
}

// execute runs a command to its end and returns its output. If the sandbox stopped it, the user is asked
// once whether it may run again with the refused access. Protected places that it created are moved
// away.
func (o Options) execute(ctx context.Context, call tools.Call, e execution, out tools.Sink) (tools.Result, error) {
	programs := sandboxPrograms(e.program, e.dir)
	known := o.loadExceptions(call, programs)
	resumed := notes(o.HeldBack.Resume(call.Roots)...)
	spec, err := prepareExecution(call, e)
	if err != nil {
		return tools.Result{}, err
	}
	search, err := o.recordSearch(spec)
	if err != nil {
		return tools.Result{}, err
	}
	first, err := o.runOnce(ctx, call, spec, e.timeout, known.allowed, out)
	last := first
	if err == nil {
		last, err = o.askAndRetry(ctx, call, e, programs, known, first, out)
	}
	note := o.moveHeldBack(ctx, call, search)
	if err != nil {
		return tools.Result{}, err
	}
	if last.leftProcesses && e.canAskOutside {
		last.result.Outputs = append(last.result.Outputs, leftProcessesNote)
	}
	if last.hitMemoryLimit && e.canAskOutside && o.approvalLiftsSandbox(call) {
		last.result.Outputs = append(last.result.Outputs, memoryLimitNote)
	}
	for _, text := range []string{note, resumed} {
		if text != "" {
			last.result.Outputs = append(last.result.Outputs, text)
		}
	}
	return last.result, nil
}

// approvalLiftsSandbox reports whether a command that the user approves runs outside the sandbox.
func (o Options) approvalLiftsSandbox(call tools.Call) bool {
	call.Authorization.Approved = true
	return o.Sandbox != nil && !o.Sandbox(call).Bounds()
}

const memoryLimitNote = `[This is the sandbox's memory limit; call again with outside: "<why>" to ask the user.]`

const leftProcessesNote = `[The command left processes running, which were killed when it ended. To keep a server or watcher running, start it with the argument background.]`

// prepareExecution returns the process specification of a command, including its sandbox.
func prepareExecution(call tools.Call, e execution) (proc.Spec, error) {
	spec, err := e.prepare(call)
	if err == nil {
		err = spec.Sandbox.Prepare()
	}
	return spec, err
}

// runOnce runs a command with some additional accesses.
func (o Options) runOnce(ctx context.Context, call tools.Call, spec proc.Spec, timeout time.Duration, allowed []access, out tools.Sink) (r attempt, err error) {
	r.spec = spec
	var addresses []string
	for _, a := range allowed {
		switch {
		case a.address != "":
			addresses = append(addresses, a.address)
		case r.spec.Sandbox.Level == sandbox.Workspace:
			r.spec.Sandbox.Write = append(r.spec.Sandbox.Write, a.path)
		}
	}
	children, connection := o.Children, (*Connection)(nil)
	if o.Network != nil {
		connection = o.Network(call, &r.spec, addresses)
	}
	if connection != nil {
		defer connection.Close()
		children = connection.Children
	}
	var exit proc.Exit
	var stderr string
	if r.result, exit, stderr, err = runToEnd(ctx, children, r.spec, timeout, out); err != nil {
		return r, err
	}
	r.leftProcesses, r.hitMemoryLimit = exit.Left, exit.OutOfMemory && exit.MemoryLimit > 0
	if connection != nil {
		r.refused, r.private = connection.Refused()
	}
	if r.spec.Sandbox.Required || o.Children.Bounds().Holds {
		r.refusal = refusalIn(r.spec.Sandbox, exit.Code, stderr)
	}
	return r, nil
}

// describeRefusal describes the access that the sandbox refused; empty if it refused none.
func (r attempt) describeRefusal() string {
	if addresses := append(slices.Clone(r.refused), r.private...); len(addresses) > 0 {
		return "connection to " + strings.Join(addresses, ", ") + " refused"
	}
	return r.refusal.what
}

// sandboxStop returns the refused access as data.
func (r attempt) sandboxStop() event.SandboxStop {
	text, _, _ := strings.Cut(r.describeRefusal(), " refused")
	s := event.SandboxStop{Text: text}
	addresses := append(slices.Clone(r.refused), r.private...)
	if len(addresses) == 0 && r.refusal.host != "" {
		addresses = []string{r.refusal.host}
	}
	for _, address := range addresses {
		if host, _, err := net.SplitHostPort(address); err == nil {
			address = host
		}
		s.Hosts = append(s.Hosts, address)
	}
	if len(addresses) == 0 {
		s.Port = r.refusal.port
		if r.refusal.path != "" {
			s.Folder = filepath.Dir(r.refusal.path)
		}
	}
	return s
}

// wantedAccesses returns the accesses that a run needs. ok is false if they cannot be allowed within the
// sandbox.
func (r attempt) wantedAccesses() (list []access, ok bool) {
	for _, address := range r.refused {
		list = append(list, access{address: address})
	}
	if place := r.deniedPath(); place != "" && len(r.private) == 0 {
		list = append(list, access{path: place})
	}
	return list, len(list) > 0
}

// deniedPath returns the file or folder that the command needs to write to; empty if there is no
// such path. It is never the home folder, a parent of it or of the workspace, or a protected path.
func (r attempt) deniedPath() string {
	p := r.spec.Sandbox
	if r.refusal.path == "" || p.Level != sandbox.Workspace || p.Guard == nil {
		return ""
	}
	at := r.refusal.path
	for {
		real, err := filepath.EvalSymlinks(at)
		if err == nil {
			at = real
			break
		}
		if !os.IsNotExist(err) || filepath.Dir(at) == at {
			return ""
		}
		at = filepath.Dir(at)
	}
	if slices.ContainsFunc(p.Guard.Own, func(dir string) bool { return sandbox.ResolvePath(at).Within(sandbox.ResolvePath(dir).Real) }) {
		return ""
	}
	home, _ := os.UserHomeDir()
	for _, dir := range append(slices.Clone(p.Write), home) {
		if real, err := filepath.EvalSymlinks(dir); err == nil && dir != "" && (at == real || strings.HasPrefix(real, strings.TrimSuffix(at, "/")+"/")) {
			return ""
		}
	}
	for dir := at; filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if p.Guard.Names.Match(dir) {
			return ""
		}
	}
	for _, dir := range p.Write { // if it should already be writable, it is a protected path
		if real, err := filepath.EvalSymlinks(dir); err == nil && strings.HasPrefix(at, real+"/") {
			return ""
		}
	}
	return at
}

// notePrefix is the prefix of the lines of a result about the sandbox.
const notePrefix = "[sandbox: "

// Answers to the question about what the sandbox refused.
const (
	answerOnce   = "Once"
	answerAlways = "Always"
	answerNever  = "Never"
	answerNo     = "No"
)

// askAndRetry asks the user about a refused access, and runs the command again if the user allows it. A
// line of the result states the outcome.
func (o Options) askAndRetry(ctx context.Context, call tools.Call, e execution, programs []string, known exceptions, first attempt, out tools.Sink) (attempt, error) {
	what := first.describeRefusal()
	if what == "" {
		return first, nil
	}
	note := func(r attempt, text string, stops ...event.SandboxStop) attempt {
		r.result.Outputs = append(r.result.Outputs, notePrefix+text+"]")
		r.result.Stops = append(r.result.Stops, stops...)
		return r
	}
	undecided := first.sandboxStop()
	decided := undecided
	decided.Decided = true
	hint := ""
	switch {
	case len(first.refused) > 0:
		hint = ": the host is not in toolCall.sandboxHosts"
	case len(first.private) > 0:
		hint = ": the host resolves to this machine or a private network; to allow it, add the IP address to toolCall.sandboxHosts"
	}
	if e.canAskOutside && (first.result.Failed || hint == "") {
		hint += `; call again with outside: "<why>" to ask the user`
	}
	wanted, within := first.wantedAccesses()
	if slices.ContainsFunc(wanted, func(a access) bool { return slices.Contains(known.denied, a) }) {
		return note(first, what+": the user has denied this permanently; continue without it", decided), nil
	}
	approved := call
	approved.Authorization.Approved = true
	outside := first.result.Failed && o.approvalLiftsSandbox(call)
	if o.Ask == nil || first.spec.Sandbox.Level != sandbox.Workspace || call.Subagent() || !within && !outside {
		return note(first, what+hint, undecided), nil
	}
	switch o.askAboutRefusal(ctx, call, programs, wanted, what) {
	case answerNever, answerNo:
		text := what + ": the user denied this; continue without it"
		if err := o.saveAnswer(call, programs, denies, wanted); err != nil {
			text += fmt.Sprintf(" (could not save this answer: %v)", err)
		}
		return note(first, text, decided), nil
	case answerAlways:
		if err := o.saveAnswer(call, programs, allows, wanted); err != nil {
			first = note(first, fmt.Sprintf("could not save this answer: %v", err))
		}
	case answerOnce:
	default:
		return note(first, what+hint, undecided), nil
	}
	if ctx.Err() != nil {
		return first, errors.New("the command was stopped")
	}
	decided.Rerun = true
	const firstRun = "the first run was stopped: "
	if !within {
		spec, err := prepareExecution(approved, e)
		if err != nil {
			return first, err
		}
		second, err := o.runOnce(ctx, approved, spec, e.timeout, nil, out)
		return note(second, firstRun+what+"; the user let it run again outside the sandbox", decided), err
	}
	spec, err := prepareExecution(call, e)
	if err != nil {
		return first, err
	}
	second, err := o.runOnce(ctx, call, spec, e.timeout, append(known.allowed, wanted...), out)
	if err != nil {
		return second, err
	}
	second = note(second, firstRun+what+"; the user allowed it, and this is the output of the second run", decided)
	if again := second.describeRefusal(); again != "" {
		second = note(second, again+hint, second.sandboxStop())
	}
	return second, nil
}

// askAboutRefusal asks the user about a refused access. It returns the answer; empty if there is no answer.
func (o Options) askAboutRefusal(ctx context.Context, call tools.Call, programs []string, wanted []access, what string) string {
	label := "the command"
	if len(programs) > 0 {
		label = strings.Join(programs, ", ")
	}
	if len(wanted) == 0 {
		return o.Ask(ctx, call, fmt.Sprintf("The sandbox stopped %s: %s. Run it again outside the sandbox, with all your permissions?", label, what), []Choice{
			{Label: answerOnce, Description: "Run it again, outside the sandbox."},
			{Label: answerNo, Description: "Leave it stopped, and tell the model."},
		})
	}
	var list []string
	for _, a := range wanted {
		list = append(list, a.String())
	}
	choices := []Choice{{Label: answerOnce, Description: "Run it again in the sandbox, with this access."}}
	if len(programs) > 0 && o.Memory != nil {
		choices = append(choices, Choice{Label: answerAlways, Description: "The same, and from now on for " + label + " in this workspace.", Grants: true})
	}
	deny := Choice{Label: answerNever, Description: "Leave it stopped, and do not ask again about this for " + label + " in this workspace."}
	if len(programs) == 0 || o.Memory == nil { // nothing can be remembered
		deny = Choice{Label: answerNo, Description: "Leave it stopped, and tell the model."}
	}
	return o.Ask(ctx, call, fmt.Sprintf("The sandbox stopped %s, which tried to %s. Run it again with this access?", label, strings.Join(list, " and to ")), append(choices, deny))
}

// saveAnswer remembers an answer for each of the programs.
func (o Options) saveAnswer(call tools.Call, programs []string, verb string, list []access) error {
	if o.Memory == nil {
		return nil
	}
	var keys []string
	for _, program := range programs {
		for _, a := range list {
			keys = append(keys, keyPrefix+program+verb+a.String())
		}
	}
	if len(keys) == 0 {
		return nil
	}
	return o.Memory.Keep(call, keys)
}

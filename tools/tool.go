// Package tools defines what a tool is to eca, and holds the registry of those the
// model may call. The tools themselves live in packages below it, one .go file with
// its description in a .md file beside it.
//
// A tool says what it is (Spec), what a call would do (Plan) and does it (Run). It
// does not ask the user: whether a call runs is decided by a Policy from the plan,
// as data, before Run (package tools/permission).
package tools

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Origins of tools: ours, and those of MCP servers.
const (
	OriginNative = "native"
	OriginMCP    = "mcp"
)

// Native is the server name of built-in tools.
const Native = "eca"

// Tool is something the model can call.
type Tool interface {
	Spec() Spec

	// Plan says what the call would do, without doing it. An error means that the
	// call cannot run; its text goes to the model.
	Plan(ctx context.Context, call Call) (Plan, error)

	// Run does it. Failures that the model should read are Results with Failed set;
	// an error is the same with the error's text. When ctx ends, Run stops what it
	// started and returns promptly.
	Run(ctx context.Context, call Call, out Sink) (Result, error)
}

// Spec describes a tool.
type Spec struct {
	Server      string          // Native or an MCP server's name
	Name        string          // bare name, e.g. read_file
	Origin      string          // native or mcp
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the arguments: an object with properties
	Preparing   string          // label while the arguments are still arriving
	Progress    string          // shown to the user while it runs; empty: nothing special

	// OwnChat says that a call touches nothing but its chat and takes no time. It is run at
	// once, before the next call of the same response is looked at, and the user is never
	// asked about it: clients cannot show that (eca-protocol 7.4, task).
	OwnChat bool

	// ReadOnly says that no call changes anything outside its chat. See Plan.ReadOnly.
	ReadOnly bool

	// Changed says, in words for the user, that the tool is not what the user agreed to. Then
	// each call is asked about. Caution says why the tool needs the user's word where nothing
	// but the default allows it.
	Changed, Caution string

	// PrimaryOnly says that the chats of subagents do not have the tool.
	PrimaryOnly bool

	// For is what the description is to an agent, if it differs between agents; ok is false
	// if the tool is nothing for it. May be nil.
	For func(agent string) (description string, ok bool)
}

// FullName is the name the model and the configuration use.
func (s Spec) FullName() string { return FullName(s.Server, s.Name) }

// Written is the name as users would write it: that of a tool whose server, or the tool
// itself, is called what no model's provider takes differs from FullName.
func (s Spec) Written() string { return s.Server + "__" + s.Name }

// maxFullName is the longest name that all providers take.
const maxFullName = 64

// FullName makes the name of a tool that all providers take: of letters, digits, _ and -,
// and not too long. Different tools keep different names.
func FullName(server, name string) string {
	written := server + "__" + name
	full := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, written)
	if full == written && len(full) <= maxFullName {
		return full
	}
	sum := sha256.Sum256([]byte(written))
	mark := "_" + hex.EncodeToString(sum[:4])
	return full[:min(len(full), maxFullName-len(mark))] + mark
}

// Call is one call of a tool.
type Call struct {
	ID            string // unique within the chat
	ChatID        string
	Agent         string
	Model         string          // full id
	Roots         []string        // workspace roots, absolute; may be empty
	Arguments     json.RawMessage // a JSON object
	Authorization Authorization   // who let it run; set when it does
	Files         FileLog         // notified of changes of files; may be nil
	// Places are where the paths of the plan led when the call was judged, links resolved,
	// in the plan's order. A path that leads elsewhere by now must not be used.
	Places []string
	// Printed is what a command runs as unless the user approved it by hand; nil: as written.
	Printed   *Printed
	Tasks     *event.Tasks // the chat's list of tasks as it is now; or nil
	Rules     []string     // ids of the path-scoped rules that the model has fetched and still knows
	Subagents Subagents    // starts chats that work for the call; nil where none can be

	// Unsaved returns the text of the file at a place as the user's client has it, and Save
	// has the client replace it; false is for the disk. They may be nil; see WithBuffers.
	Unsaved func(place string) (text string, ok bool)
	Save    func(place, text string) bool
}

// Place returns where a path leads, links resolved. It is an error if that is not where
// the path with number n of the plan led when the call was judged.
func (c Call) Place(n int, path string) (string, error) {
	real := workspace.Resolve(path)
	if n < len(c.Places) && c.Places[n] != real {
		return "", fmt.Errorf("%s leads elsewhere than when the call was judged; nothing was done", path)
	}
	return real, nil
}

// Subagent says whether the call is made by a subagent.
func (c Call) Subagent() bool { return strings.HasPrefix(c.ChatID, SubagentPrefix) }

// SubagentPrefix begins the ids of subagents' chats, and of no others (eca-protocol 2.3).
const SubagentPrefix = "subagent-"

// Subagents starts chats that work for a call.
type Subagents interface {
	// Plan says what a request would start, and where it is shown. An error says, in words
	// for the model, why it cannot be.
	Plan(r SubagentRequest) (event.Subagent, error)
	// Run starts it and waits for its end, unless it shall run in the background.
	Run(ctx context.Context, r SubagentRequest) (Result, error)
}

// SubagentRequest is what a subagent is started for.
type SubagentRequest struct {
	Agent      string
	Task       string // all that it gets
	Activity   string // the task in a few words, for the user
	Model      string // full or bare id; empty: the agent's, else the caller's
	Variant    string // of the model; empty: the agent's
	Resume     string // the chat of a subagent that shall go on; empty: a new one
	Background bool
}

// Authorization says who let a call run. The zero Authorization is a rule without a name.
type Authorization struct {
	Rule     string // as in Verdict
	Approved bool   // by the user, who saw this call
	Auto     bool   // because the chat has auto-approve: a rule wanted to ask
}

// FileLog is notified of each change of a file before it is made, so that it can be
// undone. That happens last, when everything else is ready; still a change that was announced may
// fail, so who undoes one looks first whether it was made. An error means that the
// change cannot be undone: it is made nevertheless, and the call's result says so.
//
// Paths are absolute and name what really changes: the target when content is written
// through a symbolic link, the link itself when it is moved. Where folders are links,
// one file can have two names.
type FileLog interface {
	// Writing is called before the file at path is created or gets new content.
	Writing(ctx context.Context, path string, content []byte) error
	// Moving is called before the file or folder at from is renamed to to, where there
	// is nothing.
	Moving(ctx context.Context, from, to string) error
}

// Plan is what a call would do, as data for the policy and for the user.
type Plan struct {
	Summary string         // one line for the user
	Details *event.Details // for clients that can show more
	Paths   []string       // absolute paths it names; a command may touch others
	Address string         // of the web, that it asks for: in the form that rules are held against
	// ReadOnly says that this call changes nothing, of a tool whose calls otherwise may.
	ReadOnly bool
	Command  *Command // the shell program that it runs; nil if it runs none
}

// Command is a shell program that a call runs. The policy judges it by its parts.
type Command struct {
	Text       string
	Dir        string // absolute: where it runs
	Program    cmdline.Program
	Background bool // it goes on when the call has ended
	// Outside is why the call is to run outside of the sandbox; empty if it is not. The user is
	// asked about each such call.
	Outside string
	// TemplateArguments are the values that the call puts into a command line of the user's
	// configuration; nil if all of Text comes from the call.
	TemplateArguments []string

	// OtherShell says that the shell is not bash: the command always runs as written.
	// ShellWrapper is the program of toolCall.shellCommand that starts the shell; empty if there
	// is not known.
	OtherShell   bool
	ShellWrapper string
}

// Printed is a command as it runs when the user did not approve what the model wrote: printed
// from the syntax tree that was judged.
type Printed struct {
	Text    string          // the canonical text; may be empty
	Why     string          // why it is empty
	Program cmdline.Program // Text, taken apart

	// Programs are the files that the command runs, if it may run nothing else; else nil.
	// Execute are all that it needs to execute, links resolved. Path is what PATH is set to.
	Programs []NamedProgram
	Execute  []string
	Path     string
}

// NamedProgram is a program by the name by which a command calls it.
type NamedProgram struct{ Name, Path string }

// Scope is how far the user's word reaches that calls like one may run.
type Scope string

// Scopes. A choice that is remembered for a workspace or globally outlives the process.
const (
	Once         Scope = ""
	ForSession   Scope = "session" // until this process ends, in all chats
	ForWorkspace Scope = "workspace"
	Everywhere   Scope = "global"

	// InSandbox allows, in the workspace, all commands that can run in its sandbox without a
	// question (RuleWorkspace).
	InSandbox Scope = "sandbox"
)

// Result is what a call returned.
type Result struct {
	Outputs []string
	// Images are shown to models that take them and named to others; an output says in
	// words what they are.
	Images  []event.Image
	Failed  bool
	Details *event.Details // replaces the plan's details when set
}

// Text makes a successful result of one output.
func Text(s string) Result { return Result{Outputs: []string{s}} }

// Sink receives output while a call runs, for users who watch, who are shown whole lines; the
// result has it all the same. It may be nil, is called by one goroutine or several, and does not wait.
type Sink func(chunk string)

// Decision is what a policy says about a call.
type Decision string

// Decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// Verdict is a decision with its reason. Rule names the rule that decided, in the
// configuration's terms.
type Verdict struct {
	Decision Decision
	Rule     string
	Reason   string
	// AlwaysAsk asks the user also in a chat with auto-approve.
	AlwaysAsk bool
	// Offer offers the user, with the question, to remember InSandbox.
	Offer bool
	// NotRemembered says of a question why it would be asked again although the user chose to
	// remember the approval; empty if it would not.
	NotRemembered string

	Places  []string       // see Call.Places
	Printed *Printed       // see Call.Printed
	Details *event.Details // the plan's, with what the policy knows about it; nil: as they are
}

// RuleWorkspace is the rule by which commands run that may change the workspace, without a
// question: only after an undo point was made. Without one, the user is asked.
const RuleWorkspace = "sandbox.workspace"

// Stricter returns the stricter one of two verdicts. It always asks if one of them does.
func (v Verdict) Stricter(other Verdict) Verdict {
	rank := map[Decision]int{Allow: 1, Ask: 2, Deny: 3}
	out := v
	if rank[other.Decision] > rank[v.Decision] {
		out = other
	}
	out.AlwaysAsk = v.AlwaysAsk || other.AlwaysAsk
	return out
}

// Policy decides about calls.
type Policy interface {
	// Judge decides about one call. It must be fast: it never waits for a user.
	Judge(call Call, spec Spec, plan Plan) Verdict
	// Remember is called when the user approved a call. Unless the scope is Once, it allows calls
	// like this one from now on, if that is safe. An error says that it could not be kept.
	Remember(call Call, spec Spec, plan Plan, scope Scope) error
	// Hidden says that a tool can never be called by an agent, so that it need not
	// be offered to the model.
	Hidden(agent string, spec Spec) bool
}

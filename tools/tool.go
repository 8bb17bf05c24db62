// Package tools defines the interface of tools and their registry. The tools themselves are in the
// packages below it: one .go file for each, and a .md file with its description for the model.
//
// A tool describes itself (Spec) and the effect of a call (Plan), and performs the call (Run). It
// does not ask the user: before Run, a Policy decides from the plan, which is data, whether a call
// may run (package tools/permission).
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

// Origins of tools: built in, from an MCP server, or run by the model's provider.
const (
	OriginNative = "native"
	OriginMCP    = "mcp"
	OriginServer = "server"
)

// Native is the server name of built-in tools.
const Native = "eca"

// Tool is a tool that the model can call.
type Tool interface {
	Spec() Spec

	// Plan describes the effect of the call without performing it. An error means that the call
	// cannot run; its text goes to the model.
	Plan(ctx context.Context, call Call) (Plan, error)

	// Run performs the call. Failures that the model should read are Results with Failed set; an
	// error is equivalent to such a result with the error's text. When ctx ends, Run stops
	// everything that it started and returns promptly.
	Run(ctx context.Context, call Call, out Sink) (Result, error)
}

// Spec describes a tool.
type Spec struct {
	Server      string          // Native or an MCP server's name
	Name        string          // bare name, e.g. read_file
	Origin      string          // OriginNative or OriginMCP
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the arguments: an object with properties
	Preparing   string          // label shown while the arguments are still arriving
	Progress    string          // label shown while it runs; may be empty

	// OwnChat means that a call only affects its chat and takes no time. It runs immediately,
	// before the next call of the same response is processed, and the user is never asked about it,
	// since clients cannot show that (eca-protocol.md 7.4, task).
	OwnChat bool

	// ReadOnly means that no call changes anything outside its chat. See Plan.ReadOnly.
	ReadOnly bool

	// Changed says how the tool differs from the one that the user approved; if set, each call needs
	// approval. Caution says why the tool needs approval although the default rule allows it.
	Changed, Caution string

	// PrimaryOnly means that subagents do not have the tool.
	PrimaryOnly bool

	// For returns the description for an agent, if it differs between agents; ok is false if the
	// agent does not get the tool. May be nil.
	For func(agent string) (description string, ok bool)
}

// FullName is the name that the model and the configuration use.
func (s Spec) FullName() string { return FullName(s.Server, s.Name) }

// Written is the name as users write it. It differs from FullName if the name of the server or the
// tool contains characters that providers do not accept.
func (s Spec) Written() string { return s.Server + "__" + s.Name }

// maxFullName is the longest name that all providers accept.
const maxFullName = 64

// FullName returns a tool name that all providers accept: at most maxFullName letters, digits, _
// and -. Different tools get different names.
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
	Authorization Authorization   // why it may run; set before Run
	Files         FileLog         // notified of file changes; may be nil
	// Places are the resolved targets of the plan's paths at the time of approval, in the plan's
	// order. A path that leads elsewhere now must not be used.
	Places []string
	// Printed is the form in which a command runs that the user did not approve; nil means that it
	// runs as written.
	Printed   *Printed
	Tasks     *event.Tasks // the chat's current task list; may be nil
	Rules     []string     // ids of the path-scoped rules in the model's context
	Subagents Subagents    // starts subagents for the call; nil if that is not possible

	// Unsaved returns the unsaved text that the user's client has for the file at a resolved path,
	// and Save makes the client replace the file. If they return false, or are nil, use the disk;
	// see WithBuffers.
	Unsaved func(place string) (text string, ok bool)
	Save    func(place, text string) bool
}

// Place returns the resolved target of a path. It returns an error if the target differs from the
// one at the time of approval; n is the index of the path in the plan.
func (c Call) Place(n int, path string) (string, error) {
	real := workspace.Resolve(path)
	if n < len(c.Places) && c.Places[n] != real {
		return "", fmt.Errorf("%s leads to another place than when the call was checked; nothing was done", path)
	}
	return real, nil
}

// Subagent reports whether a subagent makes the call.
func (c Call) Subagent() bool { return strings.HasPrefix(c.ChatID, SubagentPrefix) }

// SubagentPrefix is the prefix of the ids of subagents' chats, and of no others (eca-protocol.md
// 2.3).
const SubagentPrefix = "subagent-"

// Subagents starts subagents for a call.
type Subagents interface {
	// Plan describes the subagent that a request would start. An error tells the model why it
	// cannot start.
	Plan(r SubagentRequest) (event.Subagent, error)
	// Run starts the subagent and waits for it to end, unless it runs in the background.
	Run(ctx context.Context, r SubagentRequest) (Result, error)
}

// SubagentRequest is a request to start or resume a subagent.
type SubagentRequest struct {
	Agent      string
	Task       string // everything that the subagent gets
	Activity   string // the task in a few words, for the user
	Model      string // full or bare id; empty for the agent's model or else the caller's
	Variant    string // variant of the model; empty for the agent's
	Background bool
	Resume     string // the chat of a subagent to resume; empty for a new one
}

// Authorization is why a call may run. The zero value means that a rule without a name allows it.
type Authorization struct {
	Rule     string // as in Verdict
	Approved bool   // approved by the user, who saw this call
	Auto     bool   // approved by the chat's auto-approve mode instead of the user
}

// FileLog is notified of each file change before it is made, so that it can be undone. The
// notification comes last, when everything else is ready, but the change may still fail; before
// undoing it, check whether it was made. An error means that the change cannot be undone; the tool
// makes it nevertheless, and says so in the result.
//
// Paths are absolute and name the file that changes: the target when content is written through a
// symlink, the symlink itself when it is moved. If folders are symlinks, one file can have two
// paths.
type FileLog interface {
	// Writing is called before the file at path is created or gets new content.
	Writing(ctx context.Context, path string, content []byte) error
	// Moving is called before the file or folder at from is renamed to to, which does not exist.
	Moving(ctx context.Context, from, to string) error
}

// Plan describes the effect of a call for the policy and the user.
type Plan struct {
	Summary string         // one line for the user
	Details *event.Details // for clients that can show more than the summary
	Paths   []string       // absolute paths that the call names; a command may access others
	Address string         // the web address that it requests, in the form that rules are matched against
	// ReadOnly means that this call changes nothing, although other calls of the tool may.
	ReadOnly bool
	Command  *Command // the shell command that it runs; nil without a command
}

// Command is a shell command that a call runs. The policy judges it by its parts.
type Command struct {
	Text       string
	Dir        string // working directory, absolute
	Program    cmdline.Program
	Background bool // it continues after the call has ended
	// Outside is the model's reason to run outside the sandbox; empty if it did not request this. The
	// user is asked about each such call.
	Outside string
	// TemplateArguments are the values that the call fills into a command line of the user's
	// configuration; nil if the whole Text is the call's.
	TemplateArguments []string

	// OtherShell means that the shell is not bash, so the command always runs as written.
	// ShellWrapper is the program of toolCall.shellCommand that starts the shell; empty if it is
	// unknown.
	OtherShell   bool
	ShellWrapper string
}

// Printed is the form in which a command runs if the user did not approve the original text:
// printed from the syntax tree that was judged.
type Printed struct {
	Text    string          // the canonical text; empty if the command has none
	Why     string          // why Text is empty
	Program cmdline.Program // Text, parsed

	// Programs are the programs that the command runs; nil if it may run others. Execute are all files
	// that it needs to execute, with symlinks resolved. Path is the value of PATH.
	Programs []NamedProgram
	Execute  []string
	Path     string
}

// NamedProgram is a program with the name by which a command calls it.
type NamedProgram struct{ Name, Path string }

// Scope is how long and where a user's approval applies to similar calls.
type Scope string

// Scopes. An approval for a workspace or globally outlives the process.
const (
	Once         Scope = ""
	ForSession   Scope = "session" // until this process exits, in all chats
	ForWorkspace Scope = "workspace"
	Everywhere   Scope = "global"

	// InSandbox allows every command in the workspace that runs in the sandbox (RuleWorkspace).
	InSandbox Scope = "sandbox"
)

// Result is the result of a call.
type Result struct {
	Outputs []string
	// Images are shown to models that accept images; an output describes them in words for all
	// others.
	Images  []event.Image
	Failed  bool
	Details *event.Details      // replaces the plan's details if set
	Stops   []event.SandboxStop // accesses that the sandbox refused
}

// Text returns a successful result with one output.
func Text(s string) Result { return Result{Outputs: []string{s}} }

// Sink receives output while a call runs, so that users can watch it; they see whole lines. The
// result contains the output as well. A Sink may be nil. It is safe for concurrent calls and does not
// block.
type Sink func(chunk string)

// Decision is the decision of a policy about a call.
type Decision string

// Decisions.
const (
	Allow Decision = "allow"
	Ask   Decision = "ask"
	Deny  Decision = "deny"
)

// RuleDisabled is the Verdict.Rule for a tool that is in disabledTools.
const RuleDisabled = "disabledTools"

// RuleHook is the Verdict.Rule for a call that a hook requires the user to approve.
const RuleHook = "hook"

// Verdict is a decision with its reason. Rule names the rule that decided, as in the configuration.
type Verdict struct {
	Decision Decision
	Rule     string
	Reason   string
	// AlwaysAsk requires the user's approval even in a chat with auto-approve.
	AlwaysAsk bool
	// Offer means that the user can choose the scope InSandbox.
	Offer bool
	// NotRemembered is why eca asks again even if the user chooses to remember the approval; empty if
	// it does not.
	NotRemembered string

	Places  []string       // see Call.Places
	Printed *Printed       // see Call.Printed
	Details *event.Details // the plan's details, completed by the policy; nil leaves them unchanged
}

// RuleWorkspace is the rule that allows commands that may change the workspace. Before such a command
// runs, an undo point is created; if that fails, the user is asked.
const RuleWorkspace = "sandbox.workspace"

// Stricter returns the verdict with the stricter decision. AlwaysAsk is set if it is set in either.
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
	// Remember is called when the user has approved a call. Unless the scope is Once, it allows
	// similar calls from now on, if that is safe. An error means that the approval could not be
	// stored.
	Remember(call Call, spec Spec, plan Plan, scope Scope) error
	// HiddenBy returns the setting that forbids an agent every call of a tool, so that the model need
	// not get the tool. It is empty if there is no such setting.
	HiddenBy(agent string, spec Spec) (rule string)
}

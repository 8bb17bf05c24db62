package permission

import (
	"cmp"
	"slices"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
)

// RuleReads allows read-only commands under toolCall.unasked. They must run at the read-only level of
// the sandbox.
const RuleReads = "sandbox.reads"

// RuleFiles allows file tools to change files in the workspace, under toolCall.unasked.
const RuleFiles = "workspace.files"

// RuleProtected asks about calls that may write to a protected place, in every mode.
const RuleProtected = "protected"

// RuleOutside asks about a file outside the workspace.
const RuleOutside = "outside the workspace"

// RuleIrreversible asks about a command that loses work irreversibly, even with auto-approve.
const RuleIrreversible = "irreversible"

// Rules that ask about every call: a command asks to run outside the sandbox, or a server has changed
// its tool.
const (
	ruleOutsideSandbox = "outside the sandbox"
	ruleChanged        = "changed tool"
)

// Sandbox describes which restrictions this system can enforce on commands that run without asking.
type Sandbox struct {
	// ReadsUnavailable is the reason, shown to the user, why the read-only level cannot be enforced; empty
	// if it can.
	ReadsUnavailable string
	// ReadsConfined is true if commands at the read-only level cannot read files outside the workspace.
	// Then their arguments need not be known before they run (xargs, find -exec).
	ReadsConfined bool
	// WorkspaceUnavailable returns why the workspace level cannot be fully enforced; empty if it can. The
	// level needs protected paths, private processes and loopback, undo, and a trusted workspace. A nil
	// function means that it cannot.
	WorkspaceUnavailable func() (why string)
	// SearchPending reports whether the search for protected files that a command may have created has
	// not finished. Nil means that there is no search.
	SearchPending func() bool
	// Writable are the folders outside the workspace that commands may write to at the workspace level.
	Writable []string
	// Hosts is true if commands at the workspace level reach hosts that the user listed.
	Hosts bool
}

// unaskedRule applies toolCall.unasked to a call that no rule has decided. irreversible describes the
// work that the call loses. If ok is false and the setting applies, v.Reason says why the call still
// needs approval; otherwise v.Reason is empty.
func (j *judgment) unaskedRule(call tools.Call, r rules, spec namedSpec, plan tools.Plan, printed *tools.Printed, irreversible string) (v tools.Verdict, ok bool) {
	value := j.unaskedOf(call)
	// Calls that byDefault allows use the configured sandbox level. The calls of read-only agents are
	// judged by judgeReadOnlyAgent.
	if spec.Server != tools.Native || j.readOnly[call.Agent] || r.byDefault != tools.Ask || value == config.UnaskedOff {
		return tools.Verdict{}, false
	}
	if j.sandbox.SearchPending != nil && j.sandbox.SearchPending() {
		return tools.Verdict{Reason: "an earlier command may have left files in the workspace that other programs run or read as configuration, such as git hooks, and eca has not found or moved all of them"}, false
	}
	command := plan.Command
	if command == nil {
		// File tools do not need the sandbox. They do need a trusted workspace and undo. Their paths are in
		// the workspace.
		if value == config.UnaskedWorkspace && len(plan.Paths) > 0 && !spec.ReadOnly && j.whyNoWorkspace() == "" {
			return tools.Verdict{Decision: tools.Allow, Rule: RuleFiles, Reason: "it changes files in the workspace, and a rollback undoes it"}, true
		}
		return tools.Verdict{}, false
	}
	reads, why := j.commandOnlyReads(r, spec, command, printed)
	switch {
	case !reads:
		why = "it may do more than read in the workspace: " + why
	case command.Background:
		why = "it continues in the background"
	case j.sandbox.ReadsUnavailable != "":
		why = j.sandbox.ReadsUnavailable
	default:
		return tools.Verdict{Decision: tools.Allow, Rule: RuleReads, Reason: "the command only reads files in the workspace, and the sandbox enforces this"}, true
	}
	if value == config.UnaskedWorkspace {
		if irreversible != "" {
			return tools.Verdict{}, false
		}
		if why = j.whyAsk(r, spec, command); why == "" {
			return tools.Verdict{Decision: tools.Allow, Rule: tools.RuleWorkspace, Reason: "the command runs in the sandbox of the workspace, without network access"}, true
		}
	}
	return tools.Verdict{Reason: why}, false
}

// WithUnasked returns the policy with another toolCall.unasked for all agents.
func (p *Policy) WithUnasked(value string) *Policy {
	other := *p
	other.unasked = map[string]string{"": value}
	return &other
}

// unaskedOf returns the value of toolCall.unasked for a call. It is "workspace" instead of "reads" if the
// user chose the sandbox for this workspace.
func (j *judgment) unaskedOf(call tools.Call) string {
	value, known := j.unasked[call.Agent]
	if !known {
		value = j.unasked[""]
	}
	if value == config.UnaskedReads && j.memory.inSandbox(j, call) {
		return config.UnaskedWorkspace
	}
	return value
}

// offersSandbox reports whether the question about a command should also offer workspace mode, in which such
// commands run without asking. eca offers it once, after the user has approved some commands that
// could have run in that mode.
func (j *judgment) offersSandbox(call tools.Call, spec namedSpec, plan tools.Plan) bool {
	return j.memory.offerDue(j, call) && j.couldBeUnasked(call, spec, plan)
}

// couldBeUnasked reports whether a command would run without a question if toolCall.unasked were
// workspace.
func (j *judgment) couldBeUnasked(call tools.Call, spec namedSpec, plan tools.Plan) bool {
	r := j.rulesFor(call.Agent)
	return plan.Command != nil && spec.Server == tools.Native && !j.readOnly[call.Agent] && r.byDefault == tools.Ask &&
		j.unaskedOf(call) == config.UnaskedReads && j.whyAsk(r, spec, plan.Command) == ""
}

// whyNoWorkspace returns why the workspace level cannot be enforced completely; empty if it can.
func (p *Policy) whyNoWorkspace() string {
	if p.sandbox.WorkspaceUnavailable == nil {
		return "the sandbox of the workspace is not available here"
	}
	return p.sandbox.WorkspaceUnavailable()
}

// whyAsk returns why eca must ask about a command in workspace mode; empty if it need not.
func (j *judgment) whyAsk(r rules, spec namedSpec, c *tools.Command) (why string) {
	switch {
	case c.TemplateArguments != nil:
		return "it is a custom tool, which may need more than the sandbox allows"
	case len(c.Program.Commands) == 0:
		return cmp.Or(c.Program.Unresolved, "it runs nothing")
	case c.Program.Unresolved != "" && r.mayRestrict(spec):
		return "one of your rules may apply to commands that its text does not show: " + c.Program.Unresolved
	case c.Program.Data && r.mayRestrict(spec):
		return reasonNamesUnknown
	}
	dirs := j.newWorkDirs(c.Dir)
	for _, cmd := range c.Program.Commands {
		// The sandbox restricts files whose names xargs reads, like those of an unknown program.
		cmd = withoutUnknownPaths(cmd)
		switch {
		case cmd.NeedsNetwork(j.sandbox.Hosts):
			return cmd.Name + " needs the network"
		case !j.enter(dirs, cmd):
			return "eca does not know its working directory"
		case cmd.Effect == cmdline.Reads:
			if c.Program.Expands { // a word may expand to a path that was assigned earlier
				if name := j.nameOutside(cmd, dirs, j.writable); name != "" {
					return "it names a file outside the workspace: " + name
				}
			}
			if why := j.pathNotIn(cmd, dirs, j.writable); why != "" {
				return why
			}
		case cmd.Name != "cd":
			if name := j.nameOutside(cmd, dirs, j.writable); name != "" {
				return "it names a file outside the workspace: " + name
			}
		}
	}
	if c.Program.Expands {
		if name := j.nameOutside(cmdline.Command{Args: c.Program.Values}, dirs, j.writable); name != "" {
			return "it names a file outside the workspace: " + name
		}
	}
	for _, path := range c.Program.Writes {
		if j.nameOutside(cmdline.Command{Args: []string{path}}, dirs, j.writable) != "" {
			return "it writes outside the workspace: " + path
		}
	}
	return j.whyNoWorkspace()
}

// writable reports whether commands may write to a path at the workspace level, after its symlinks are
// resolved.
func (j *judgment) writable(path string) bool {
	real := j.links.Resolve(path)
	return j.contains(real) || slices.ContainsFunc(j.sandbox.Writable, func(dir string) bool { return safeio.Within(j.links.Resolve(dir), real) })
}

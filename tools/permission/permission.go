// Package permission decides whether a tool call runs, asks the user or is refused, by the rules of
// the configuration (eca-features.md, section 16).
//
// Rules in order of precedence; the first match decides:
//
//	disabledTools                                                      -> deny
//	the agent is readOnly, the call is known to change something       -> deny
//	toolCall.approval.deny                                             -> deny
//	the agent is readOnly, the effects of the call are not known       -> ask, always
//	the call may write to a protected place (protected.go)             -> ask, always
//	the call requests to run outside the sandbox                       -> ask, always
//	an MCP server changed its description of the tool                  -> ask, always
//	remembered for this session, the workspace, or everywhere          -> allow
//	a file tool uses a path outside the workspace                      -> ask
//	toolCall.approval.ask                                              -> ask
//	toolCall.approval.allow                                            -> allow
//	the agent is readOnly, and the command reads in the workspace only -> allow
//	toolCall.unasked covers the command (unasked.go)                   -> allow
//	byDefault allows, the server calls the tool destructive or open    -> ask
//	toolCall.approval.byDefault (ask if unset)
//
// Approvals of a command that loses work irreversibly (destroys.go) are not remembered. If a rule asks
// about it, it asks "always".
//
// "ask, always" asks even in chats with auto-approve, where the engine turns every other "ask" into
// "allow". Nothing overrides "deny". The toolCall.approval of an agent replaces the global rules
// completely.
//
// Commands are judged by their parts: a deny or ask rule applies if it matches one of the parts, an
// allow rule only if all of them are covered (command.go). Paths are judged as written and with their
// symlinks resolved.
//
// Every verdict names the deciding rule and the reason. The package resolves symlinks, finds programs
// in PATH, reads repositories and runs git for commands that use a repository (repository.go,
// askgit.go), and keeps remembered decisions in permissions.json (remembered.go). It enforces nothing:
// the sandbox does.
package permission

import (
	"errors"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// matchTimeout bounds one match of a regular expression, because users' patterns may backtrack.
const matchTimeout = 200 * time.Millisecond

// Policy implements tools.Policy for one configuration.
type Policy struct {
	global    rules
	agents    map[string]rules
	disabled  map[string][]expression // by agent; "" is global
	readOnly  map[string]bool         // agents that change nothing
	unasked   map[string]string       // toolCall.unasked by agent; "" is for all others
	sandbox   Sandbox
	bounds    func(tools.Call) *event.Sandbox
	contains  func(real string) bool
	protected []string
	names     protectedNames
	memory    *Memory
	git       *gitAnswers
	programs  *programs
	roots     *knownRoots
	getenv    func(string) string // may be nil
}

var _ tools.Policy = (*Policy)(nil)

// Options are what a policy needs besides the configuration.
type Options struct {
	Contains  func(real string) bool // reports whether a resolved path is in the workspace
	Protected []string               // absolute paths of eca's own folders and files: writing there always asks
	Memory    *Memory                // remembered decisions; kept when the configuration changes
	Getenv    func(string) string    // environment of commands; if nil, programs are not looked up in PATH
	Sandbox   Sandbox

	// Bounds returns the sandbox of a call that runs by the rule in its Authorization; nil if it
	// runs without one. The function may be nil.
	Bounds func(call tools.Call) *event.Sandbox

	Children *proc.Pool // starts git; nil: without a supervisor
}

// New returns the policy of a configuration, and the patterns in it that are invalid. An invalid
// pattern matches everything in a deny or ask rule, and nothing in an allow rule.
func New(cfg *config.Config, o Options) (*Policy, []*RuleError) {
	p := &Policy{
		agents: map[string]rules{}, disabled: map[string][]expression{}, readOnly: map[string]bool{},
		unasked:  map[string]string{"": cfg.UnaskedCommands("")},
		contains: o.Contains, memory: o.Memory, sandbox: o.Sandbox, bounds: o.Bounds, git: newGitAnswers(o), programs: newPrograms(o.Getenv), getenv: o.Getenv, names: newProtectedNames(),
		roots: &knownRoots{known: map[string]fileState{}},
	}
	for _, path := range o.Protected {
		p.protected = append(p.protected, sandbox.Fold(path), sandbox.Fold(workspace.Resolve(path)))
	}
	var errs []*RuleError
	p.global = compile("toolCall.approval", cfg.ToolCall.Approval, &errs)
	p.disabled[""] = compileNames(cfg.DisabledTools)
	for name, agent := range cfg.Agents {
		if a := agent.ToolCall.Approval; a != nil {
			p.agents[name] = compileOfAgent("agent."+name+".toolCall.approval", a, p.global, &errs)
		}
		p.disabled[name] = compileNames(agent.DisabledTools)
		p.readOnly[name] = agent.ReadOnly
		p.unasked[name] = cfg.UnaskedCommands(name)
	}
	return p, errs
}

// judgment is one decision. It reads each symlink once, so that all steps see the same state.
type judgment struct {
	*Policy
	links          *workspace.Resolver
	earlierTargets map[string]string // resolved paths of a call that was judged earlier

	workDir []string // the folder of newWorkDirs, which is nearly always the same

	// The result of keysOf for the call, once computed.
	keys      []string
	whyNoKeys string
	keysFound bool
}

// judgment starts a decision. roots are the workspace folders of the call.
func (p *Policy) judgment(roots []string) *judgment {
	return &judgment{Policy: p, links: p.roots.resolver(roots)}
}

// Judge implements tools.Policy. Verdict.Places has the resolved paths that were judged; tools open
// only these.
func (p *Policy) Judge(call tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	j := p.judgment(call.Roots)
	printed := p.canonicalForm(plan.Command)
	irreversible := j.irreversibleLoss(call.Roots, plan.Command, printed)
	names := newNamedSpec(spec)
	v := j.decide(call, names, plan, irreversible, printed)
	if v.Decision == tools.Ask && !v.AlwaysAsk && irreversible != "" {
		v.AlwaysAsk, v.Rule, v.Reason = true, RuleIrreversible, irreversible+" ("+v.Reason+")"
	}
	v = j.requireCanonicalText(v, call, names, plan, printed)
	if v.Decision == tools.Ask {
		v.Reason += j.describeTargets(call, plan, v.Reason)
		v.NotRemembered = j.notRemembered(call, spec, plan, v.Rule)
	}
	if v.Decision == tools.Ask && !v.AlwaysAsk && strings.HasSuffix(v.Rule, ".byDefault") && j.offersSandbox(call, names, plan) {
		v.Offer = true
		v.Reason += `. Commands that stay in the sandbox of this folder can run without this question: set toolCall.unasked to "workspace"`
	}
	v.Details = p.memory.annotate(j, call, spec, plan)
	p.explain(call, plan, &v)
	if plan.Command == nil {
		for _, path := range plan.Paths {
			v.Places = append(v.Places, j.resolve(path))
		}
	}
	return v
}

// resolve returns a path with its symlinks resolved.
func (j *judgment) resolve(path string) string {
	if real, known := j.earlierTargets[path]; known {
		return real
	}
	return j.links.Resolve(path)
}

// inside reports whether a path leads into the workspace after its symlinks are resolved.
func (j *judgment) inside(path string) bool { return j.contains(j.links.Resolve(path)) }

// decide applies the rules in their order. irreversible describes the work that the call loses; it
// may be empty.
func (j *judgment) decide(call tools.Call, spec namedSpec, plan tools.Plan, irreversible string, printed *tools.Printed) tools.Verdict {
	if j.isDisabled(call.Agent, spec) {
		return tools.Verdict{Decision: tools.Deny, Rule: tools.RuleDisabled, Reason: "the tool is disabled for agent " + call.Agent}
	}
	readOnlyVerdict := j.judgeReadOnlyAgent(call.Agent, spec.Spec, plan, printed)
	if readOnlyVerdict.Decision == tools.Deny {
		return readOnlyVerdict
	}
	r := j.rulesFor(call.Agent)
	var args arguments
	if r.dependOnArguments(spec) {
		args = j.formsOf(call, plan, printed)
	}
	if m := r.deny.match(spec, args); m != "" {
		return tools.Verdict{Decision: tools.Deny, Rule: m, Reason: "denied by the configuration"}
	}
	if readOnlyVerdict.Decision == tools.Ask {
		return readOnlyVerdict
	}
	if place := j.writesProtected(spec.Spec, plan, printed); place != "" {
		return tools.Verdict{Decision: tools.Ask, AlwaysAsk: true, Rule: RuleProtected, Reason: "it may write to " + place + ", which can make programs run later or change what eca may do"}
	}
	if plan.Command != nil && plan.Command.Outside != "" {
		return tools.Verdict{Decision: tools.Ask, AlwaysAsk: true, Rule: ruleOutsideSandbox, Reason: "it would run outside the sandbox, with all your rights: " + shortLine(plan.Command.Outside)}
	}
	if spec.Changed != "" {
		return tools.Verdict{Decision: tools.Ask, AlwaysAsk: true, Rule: ruleChanged, Reason: spec.Changed}
	}
	if scope := j.memory.scopeOfCall(j, call, spec.Spec, plan); scope != tools.Once && irreversible == "" {
		return tools.Verdict{Decision: tools.Allow, Rule: "remembered." + string(scope), Reason: "an earlier approval was remembered"}
	}
	for _, path := range plan.Paths {
		if real := j.resolve(path); !j.contains(real) {
			return tools.Verdict{Decision: tools.Ask, Rule: RuleOutside, Reason: outsideMessageFor(path, path, real)}
		}
	}
	if m := r.ask.match(spec, args); m != "" {
		return tools.Verdict{Decision: tools.Ask, Rule: m, Reason: "a rule of the configuration asks"}
	}
	allowed, nearMiss := j.firstAllowRule(r.allow, spec, plan, args, printed)
	if allowed != "" {
		return tools.Verdict{Decision: tools.Allow, Rule: allowed, Reason: "allowed by the configuration"}
	}
	reason := "no rule names this call"
	if nearMiss != "" {
		reason = nearMiss
	}
	if readOnlyVerdict.Decision == tools.Allow && r.byDefault == tools.Ask {
		ok, why := j.commandOnlyReads(r, spec, plan.Command, printed)
		if ok {
			return readOnlyVerdict
		}
		reason = why
	}
	v, ok := j.unaskedRule(call, r, spec, plan, printed, irreversible)
	switch {
	case ok:
		return v
	case v.Reason != "" && nearMiss == "":
		reason = v.Reason
	}
	if spec.Caution != "" && r.byDefault == tools.Allow {
		return tools.Verdict{Decision: tools.Ask, Rule: "hint of the server", Reason: spec.Caution}
	}
	return tools.Verdict{Decision: r.byDefault, Rule: r.name + ".byDefault", Reason: reason}
}

// judgeReadOnlyAgent judges a call of an agent that is readOnly. It allows commands that only read. The zero
// verdict means that other rules decide.
func (p *Policy) judgeReadOnlyAgent(agent string, spec tools.Spec, plan tools.Plan, printed *tools.Printed) tools.Verdict {
	if !p.readOnly[agent] || spec.ReadOnly || spec.OwnChat || plan.ReadOnly {
		return tools.Verdict{}
	}
	v := tools.Verdict{Decision: tools.Deny, Rule: "agent." + agent + ".readOnly", Reason: "agent " + agent + " is read-only"}
	if spec.Server == tools.Native && plan.Command == nil {
		return v
	}
	// The effects of an MCP tool or an unknown program are not known, so the user decides about each call.
	v.AlwaysAsk = true
	if plan.Command == nil {
		v.Decision, v.Reason = tools.Ask, v.Reason+", and this tool may change something"
		return v
	}
	program := plan.Command.Program
	if changes, why := program.Changes(); changes {
		v.AlwaysAsk, v.Reason = false, v.Reason+": "+why
		return v
	}
	if printed.Text != "" {
		program = printed.Program
	}
	if reads, why := program.Reads(); !reads || plan.Command.Background {
		if reads {
			why = "it continues in the background"
		}
		v.Decision, v.Reason = tools.Ask, v.Reason+", and this command may change something: "+why
		return v
	}
	return tools.Verdict{Decision: tools.Allow, Rule: v.Rule, Reason: "the command only reads"}
}

// Remember implements tools.Policy.
func (p *Policy) Remember(call tools.Call, spec tools.Spec, plan tools.Plan, scope tools.Scope) error {
	j := p.judgment(call.Roots)
	if len(call.Places) == len(plan.Paths) {
		j.earlierTargets = make(map[string]string, len(plan.Paths))
		for i, path := range plan.Paths {
			j.earlierTargets[path] = call.Places[i]
		}
	}
	could := j.couldBeUnasked(call, newNamedSpec(spec), plan)
	if scope == tools.InSandbox {
		if !could {
			return errors.New("commands of this call cannot run in the sandbox without a question")
		}
		return p.memory.Keep(call, []string{inSandboxKey})
	}
	if could {
		if err := p.memory.countApproval(j, call); err != nil {
			return err
		}
	}
	if scope == tools.Once {
		return nil
	}
	return p.memory.remember(j, call, spec, plan, scope)
}

// HiddenBy implements tools.Policy. Tools that are disabled, or denied for all arguments, are not
// offered to the model.
func (p *Policy) HiddenBy(agent string, spec tools.Spec) (rule string) {
	names := newNamedSpec(spec)
	if p.isDisabled(agent, names) {
		return tools.RuleDisabled
	}
	r := p.rulesFor(agent)
	if rule := r.deny.ruleForAllArguments(names); rule != "" {
		return rule
	}
	if r.byDefault == tools.Deny && !r.allow.selectsTool(names) && !r.ask.selectsTool(names) {
		return r.name + ".byDefault"
	}
	return ""
}

func (p *Policy) isDisabled(agent string, spec namedSpec) bool {
	for _, list := range [][]expression{p.disabled[""], p.disabled[agent]} {
		for _, re := range list {
			for _, name := range []string{spec.full, spec.written, spec.Server} {
				if fullMatch(re, name) {
					return true
				}
			}
			if spec.Server == tools.Native && fullMatch(re, spec.Name) {
				return true
			}
		}
	}
	return false
}

func (p *Policy) rulesFor(agent string) rules {
	if r, ok := p.agents[agent]; ok {
		return r
	}
	return p.global
}

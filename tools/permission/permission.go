// Package permission decides which tool calls run, which ask the user and which are
// refused, from the rules in the configuration (eca-features, section 16).
//
// Precedence, first match wins:
//
//	disabledTools                                     -> deny
//	the agent is readOnly, the tool is ours and may change something -> deny
//	toolCall.approval.deny                            -> deny
//	the agent is readOnly, a server's tool            -> ask, also with auto-approve
//	remembered for this session                       -> allow
//	the call touches a path outside the workspace     -> ask
//	toolCall.approval.ask                             -> ask
//	toolCall.approval.allow                           -> allow
//	toolCall.approval.byDefault (ask if unset)
//
// An agent's own toolCall.approval replaces the global rules as a whole. Turning
// "ask" into "allow" for chats with auto-approve is the engine's business; nothing
// turns a deny around.
//
// Every verdict names the rule that decided.
package permission

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dlclark/regexp2"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// matchTimeout bounds one regular expression: users' patterns may backtrack.
const matchTimeout = 200 * time.Millisecond

// Policy implements tools.Policy for one configuration.
type Policy struct {
	global   rules
	agents   map[string]rules
	disabled map[string][]*regexp2.Regexp // by agent; "" is global
	readOnly map[string]bool              // agents that change nothing
	inside   func(path string) bool
	memory   *Memory
}

var _ tools.Policy = (*Policy)(nil)

// New returns the policy of a configuration. inside says whether a path belongs to
// the workspace. memory outlives configurations. Patterns that can not be used are
// reported, and err on the safe side: in a deny or ask rule they match everything, in an
// allow rule nothing.
func New(cfg *config.Config, inside func(string) bool, memory *Memory) (*Policy, []error) {
	p := &Policy{agents: map[string]rules{}, disabled: map[string][]*regexp2.Regexp{}, readOnly: map[string]bool{}, inside: inside, memory: memory}
	var errs []error
	p.global = compile("toolCall.approval", cfg.ToolCall.Approval, &errs)
	p.disabled[""] = compileNames(cfg.DisabledTools)
	for name, agent := range cfg.Agents {
		if a := agent.ToolCall.Approval; a != nil {
			p.agents[name] = compile("agent."+name+".toolCall.approval", a, &errs)
		}
		p.disabled[name] = compileNames(agent.DisabledTools)
		p.readOnly[name] = agent.ReadOnly
	}
	return p, errs
}

// Judge implements tools.Policy.
func (p *Policy) Judge(call tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	v := p.decide(call, spec, plan)
	v.Details = p.memory.annotate(spec, plan)
	return v
}

func (p *Policy) decide(call tools.Call, spec tools.Spec, plan tools.Plan) tools.Verdict {
	if p.isDisabled(call.Agent, spec) {
		return tools.Verdict{Decision: tools.Deny, Rule: "disabledTools", Reason: "the tool is disabled for agent " + call.Agent}
	}
	changes := p.readOnly[call.Agent] && !spec.ReadOnly && !spec.OwnChat && !plan.ReadOnly
	if changes && spec.Server == tools.Native {
		return tools.Verdict{Decision: tools.Deny, Rule: "agent." + call.Agent + ".readOnly", Reason: "agent " + call.Agent + " changes nothing"}
	}
	r := p.rulesFor(call.Agent)
	args := stringArgs(call.Arguments)
	if m := r.deny.match(spec, args); m != "" {
		return tools.Verdict{Decision: tools.Deny, Rule: m, Reason: "denied by the configuration"}
	}
	if changes {
		// What a server's tool does is not known here: the user decides about each call.
		return tools.Verdict{Decision: tools.Ask, Insist: true, Rule: "agent." + call.Agent + ".readOnly", Reason: "agent " + call.Agent + " changes nothing, and this tool may"}
	}
	if p.memory.allows(spec, plan) {
		return tools.Verdict{Decision: tools.Allow, Rule: "remembered", Reason: "the user chose to remember this"}
	}
	for _, path := range plan.Paths {
		if !p.inside(path) {
			return tools.Verdict{Decision: tools.Ask, Rule: "outside the workspace", Reason: path + " is outside the workspace"}
		}
	}
	if m := r.ask.match(spec, args); m != "" {
		return tools.Verdict{Decision: tools.Ask, Rule: m, Reason: "the configuration wants to be asked"}
	}
	if m := r.allow.match(spec, args); m != "" {
		return tools.Verdict{Decision: tools.Allow, Rule: m, Reason: "allowed by the configuration"}
	}
	return tools.Verdict{Decision: r.byDefault, Rule: r.name + ".byDefault", Reason: "no rule names this call"}
}

// Remember implements tools.Policy.
func (p *Policy) Remember(_ tools.Call, spec tools.Spec, plan tools.Plan) {
	p.memory.remember(spec, plan)
}

// Hidden implements tools.Policy: a tool that is disabled, or denied whatever its
// arguments, is not offered to the model.
func (p *Policy) Hidden(agent string, spec tools.Spec) bool {
	if p.isDisabled(agent, spec) {
		return true
	}
	r := p.rulesFor(agent)
	if r.deny.always(spec) {
		return true
	}
	return r.byDefault == tools.Deny && !r.allow.names(spec) && !r.ask.names(spec)
}

func (p *Policy) isDisabled(agent string, spec tools.Spec) bool {
	for _, list := range [][]*regexp2.Regexp{p.disabled[""], p.disabled[agent]} {
		for _, re := range list {
			for _, name := range []string{spec.FullName(), spec.Written(), spec.Server} {
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

// rules are one compiled toolCall.approval.
type rules struct {
	name             string
	deny, ask, allow ruleSet
	byDefault        tools.Decision
}

type ruleSet []rule

// rule is one selector with its argument patterns.
type rule struct {
	name      string // for explanations, e.g. toolCall.approval.allow.eca__read_file
	selector  string
	args      map[string][]*regexp2.Regexp // nil: any arguments
	restricts bool                         // denies or asks
	broken    bool                         // a pattern could not be compiled
}

func compile(name string, a *config.Approval, errs *[]error) rules {
	r := rules{name: name, byDefault: tools.Ask}
	if a == nil {
		return r
	}
	switch a.ByDefault {
	case "", "ask":
	case "allow":
		r.byDefault = tools.Allow
	case "deny":
		r.byDefault = tools.Deny
	default:
		*errs = append(*errs, fmt.Errorf("%s.byDefault is %q; it must be ask, allow or deny. Asking", name, a.ByDefault))
	}
	r.deny = compileSet(name+".deny", a.Deny, true, errs)
	r.ask = compileSet(name+".ask", a.Ask, true, errs)
	r.allow = compileSet(name+".allow", a.Allow, false, errs)
	return r
}

// compileSet compiles rules. restricts says that the rules deny or ask, so that doubt
// counts as a match.
func compileSet(name string, set map[string]config.ApprovalRule, restricts bool, errs *[]error) ruleSet {
	var out ruleSet
	for selector, cr := range set {
		r := rule{name: name + "." + selector, selector: selector, restricts: restricts}
		if cr.ArgsMatchers != nil {
			r.args = map[string][]*regexp2.Regexp{}
		}
		for arg, patterns := range cr.ArgsMatchers {
			for _, pat := range patterns {
				re, err := compileRegexp(pat)
				if err != nil {
					*errs = append(*errs, fmt.Errorf("%s: %q is not a regular expression: %w", r.name, pat, err))
					r.broken = true
					continue
				}
				r.args[arg] = append(r.args[arg], re)
			}
		}
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b rule) int { return strings.Compare(a.selector, b.selector) })
	return out
}

// compileRegexp anchors a pattern: the reference matches whole values.
func compileRegexp(pattern string) (*regexp2.Regexp, error) {
	re, err := regexp2.Compile(`\A(?:`+pattern+`)\z`, regexp2.None)
	if err != nil {
		return nil, err
	}
	re.MatchTimeout = matchTimeout
	return re, nil
}

// compileNames compiles disabledTools; what is no pattern is taken literally.
func compileNames(names []string) []*regexp2.Regexp {
	var out []*regexp2.Regexp
	for _, n := range names {
		re, err := compileRegexp(n)
		if err != nil {
			re, err = compileRegexp(regexp2.Escape(n))
		}
		if err == nil {
			out = append(out, re)
		}
	}
	return out
}

// selects says whether a selector names a tool: by full name, by bare name if it is
// native, or by its server.
func (r rule) selects(spec tools.Spec) bool {
	return r.selector == spec.FullName() || r.selector == spec.Written() || r.selector == spec.Server ||
		spec.Server == tools.Native && r.selector == spec.Name
}

// match returns the name of the first rule that applies, or "".
func (s ruleSet) match(spec tools.Spec, args map[string]string) string {
	for _, r := range s {
		if !r.selects(spec) {
			continue
		}
		if r.args == nil || r.broken && r.restricts {
			return r.name
		}
		for arg, patterns := range r.args {
			value, ok := args[arg]
			if ok && slices.ContainsFunc(patterns, func(re *regexp2.Regexp) bool {
				ok, err := re.MatchString(value)
				// Out of time is doubt too.
				return ok || err != nil && r.restricts
			}) {
				return r.name
			}
		}
	}
	return ""
}

func (s ruleSet) names(spec tools.Spec) bool {
	return slices.ContainsFunc(s, func(r rule) bool { return r.selects(spec) })
}

func (s ruleSet) always(spec tools.Spec) bool {
	return slices.ContainsFunc(s, func(r rule) bool { return r.selects(spec) && r.args == nil })
}

// fullMatch treats a pattern that runs out of time as one that does not match.
func fullMatch(re *regexp2.Regexp, s string) bool {
	ok, err := re.MatchString(s)
	return err == nil && ok
}

// stringArgs renders top-level arguments the way patterns see them: strings as they
// are, everything else as JSON.
func stringArgs(raw json.RawMessage) map[string]string {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	out := make(map[string]string, len(m))
	for k, v := range m {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(bytes.TrimSpace(v))
		}
		out[k] = s
	}
	return out
}

// Memory is what users chose to remember. It lives as long as the process, for all
// chats.
type Memory struct {
	mu   sync.Mutex // guards keys
	keys map[string]bool
}

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{keys: map[string]bool{}} }

// keysOf lists what must be remembered for a call to be allowed; nil if it can not
// be remembered. Commands are remembered by what they run, other tools by name.
func keysOf(spec tools.Spec, plan tools.Plan) []string {
	if spec.Server != tools.Native || spec.Name != "shell_command" && spec.Name != "git" {
		return []string{spec.FullName()}
	}
	commands := shellCommands(plan.Details)
	keys := make([]string, 0, len(commands))
	for _, c := range commands {
		if c.Key == "" {
			return nil
		}
		keys = append(keys, spec.FullName()+" "+c.Key)
	}
	return keys
}

func shellCommands(d *event.Details) []event.Command {
	if d == nil || d.ShellCommand == nil {
		return nil
	}
	return d.ShellCommand.Commands
}

// annotate marks the remembered commands of a shell line for the user; nil if there are
// none.
func (m *Memory) annotate(spec tools.Spec, plan tools.Plan) *event.Details {
	commands := slices.Clone(shellCommands(plan.Details))
	any := false
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, c := range commands {
		commands[i].Remembered = c.Key != "" && m.keys[spec.FullName()+" "+c.Key]
		any = any || commands[i].Remembered
	}
	if !any {
		return nil
	}
	sc := *plan.Details.ShellCommand
	sc.Commands = commands
	return &event.Details{ShellCommand: &sc}
}

func (m *Memory) allows(spec tools.Spec, plan tools.Plan) bool {
	keys := keysOf(spec, plan)
	if len(keys) == 0 {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return !slices.ContainsFunc(keys, func(k string) bool { return !m.keys[k] })
}

func (m *Memory) remember(spec tools.Spec, plan tools.Plan) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range keysOf(spec, plan) {
		m.keys[k] = true
	}
}

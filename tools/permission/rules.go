package permission

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/suggest"
	"github.com/seed-dec29ce4/eca/tools"
)

// rules are one compiled toolCall.approval.
type rules struct {
	name             string // of the object that sets byDefault
	deny, ask, allow ruleSet
	byDefault        tools.Decision
}

type ruleSet []rule

// rule is one selector with its argument patterns.
type rule struct {
	name      string // for explanations, e.g. toolCall.approval.allow.eca__read_file
	selector  string
	args      map[string][]pattern // nil: any arguments
	restricts bool                 // denies or asks
	broken    bool                 // a pattern is invalid
	all       bool                 // meant to match all calls of the tool
}

// RuleError is an invalid part of a rule.
type RuleError struct {
	Rule string   // as in Verdict
	Path []string // keys of the invalid part, below the rule
	text string
}

func (e *RuleError) Error() string { return e.text }

func compile(name string, a *config.Approval, errs *[]*RuleError) rules {
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
		hint := "."
		if best := suggest.Nearest(a.ByDefault, []string{"ask", "allow", "deny"}); best != "" {
			hint = "; did you mean " + best + "?"
		}
		*errs = append(*errs, &RuleError{Rule: name + ".byDefault", text: fmt.Sprintf("%s.byDefault is %q; it must be ask, allow or deny%s Until it is corrected, eca asks", name, a.ByDefault, hint)})
	}
	r.deny = compileSet(name+".deny", a.Deny, true, errs)
	r.ask = compileSet(name+".ask", a.Ask, true, errs)
	r.allow = compileSet(name+".allow", a.Allow, false, errs)
	return r
}

// compileOfAgent compiles the rules of an agent. Each list, and byDefault, replaces that of the general
// rules; what the agent does not set stays in effect.
func compileOfAgent(name string, a *config.Approval, general rules, errs *[]*RuleError) rules {
	r := compile(name, a, errs)
	if a.Deny == nil {
		r.deny = general.deny
	}
	if a.Ask == nil {
		r.ask = general.ask
	}
	if a.Allow == nil {
		r.allow = general.allow
	}
	if a.ByDefault == "" {
		r.name, r.byDefault = general.name, general.byDefault
	}
	return r
}

// compileSet compiles rules. restricts is true for rules that deny or ask, for which doubt counts as a
// match.
func compileSet(name string, set map[string]config.ApprovalRule, restricts bool, errs *[]*RuleError) ruleSet {
	var out ruleSet
	for selector, cr := range set {
		r := rule{name: name + "." + selector, selector: selector, restricts: restricts, all: cr.ArgsMatchers == nil}
		if cr.ArgsMatchers != nil {
			r.args = map[string][]pattern{}
		}
		for arg, patterns := range cr.ArgsMatchers {
			for i, pat := range patterns {
				re, err := compileExpression(pat)
				if err != nil {
					*errs = append(*errs, &RuleError{r.name, []string{"argsMatchers", arg, strconv.Itoa(i)}, fmt.Sprintf("%s: %q is not a regular expression: %v", r.name, pat, err)})
					r.broken = true
					continue
				}
				compiled := newPattern(re, pat)
				r.args[arg] = append(r.args[arg], compiled)
				r.all = r.all || compiled.everything
			}
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b rule) int { return strings.Compare(a.selector, b.selector) })
	return out
}

// compileNames compiles disabledTools; an invalid pattern is taken literally.
func compileNames(names []string) []expression {
	var out []expression
	for _, n := range names {
		re, err := compileExpression(n)
		if err != nil {
			re = expression{text: n}
		}
		out = append(out, re)
	}
	return out
}

// namedSpec is a spec with the names of its tool, so that they are formatted once.
type namedSpec struct {
	tools.Spec
	full, written string
}

func newNamedSpec(spec tools.Spec) namedSpec { return namedSpec{spec, spec.FullName(), spec.Written()} }

// selects reports whether the selector of a rule names a tool: by its full name, by its server, or by
// its bare name if it is native.
func (r rule) selects(spec namedSpec) bool {
	return r.selector == spec.full || r.selector == spec.written || r.selector == spec.Server ||
		spec.Server == tools.Native && r.selector == spec.Name
}

// match returns the name of the first deny or ask rule that applies; empty if none does. A rule for an
// argument applies if it matches any form of its value.
func (s ruleSet) match(spec namedSpec, args arguments) string {
	for _, r := range s {
		if !r.selects(spec) {
			continue
		}
		if r.args == nil || r.broken && r.restricts {
			return r.name
		}
		for arg, patterns := range r.args {
			for _, value := range args[arg].allTexts() {
				if slices.ContainsFunc(patterns, func(p pattern) bool {
					ok, err := p.re.MatchString(value)
					return ok || err != nil // a time-out counts as a match
				}) {
					return r.name
				}
			}
		}
	}
	return ""
}

func (s ruleSet) selectsTool(spec namedSpec) bool {
	return slices.ContainsFunc(s, func(r rule) bool { return r.selects(spec) })
}

// mayRestrict reports whether a rule may deny calls of a tool, or make them ask.
func (r rules) mayRestrict(spec namedSpec) bool {
	return r.deny.selectsTool(spec) || r.ask.selectsTool(spec)
}

// dependOnArguments reports whether a rule for a tool depends on the arguments of the call.
func (r rules) dependOnArguments(spec namedSpec) bool {
	for _, set := range []ruleSet{r.deny, r.ask, r.allow} {
		if slices.ContainsFunc(set, func(r rule) bool { return r.args != nil && r.selects(spec) }) {
			return true
		}
	}
	return false
}

// ruleForAllArguments returns the name of the first rule that selects a tool with any arguments, or "".
func (s ruleSet) ruleForAllArguments(spec namedSpec) string {
	for _, r := range s {
		if r.selects(spec) && r.args == nil {
			return r.name
		}
	}
	return ""
}

// fullMatch reports whether an expression matches. One that exceeds the time limit does not.
func fullMatch(re expression, s string) bool {
	ok, err := re.MatchString(s)
	return err == nil && ok
}

// Selects reports whether an entry of disabledTools matches one of the names that tools have.
// others is true if there are tools whose names are not known yet: a pattern may match one of them, so
// it counts as a match.
func Selects(entry string, names []string, others bool) bool {
	if others && !isWord(entry) {
		return true
	}
	re := compileNames([]string{entry})[0]
	return slices.ContainsFunc(names, func(name string) bool { return fullMatch(re, name) })
}

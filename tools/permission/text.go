package permission

import (
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
)

// Rules about the text of a command.
const (
	ruleTwoReadings = "two readings"
	ruleNoText      = "no canonical form"
	ruleProgram     = "program"
)

// canonicalForm returns the canonical form of a command.
func (p *Policy) canonicalForm(c *tools.Command) *tools.Printed {
	if c == nil || c.OtherShell {
		return &tools.Printed{Why: "it is for another shell"}
	}
	form := cmdline.Form{Dir: c.Dir, Glob: globNames}
	if p.programs.getenv != nil {
		form.Home = p.programs.getenv("HOME")
	}
	text, judged, why := c.Program.Canonical(form)
	return &tools.Printed{Text: text, Program: judged, Why: why}
}

// requireCanonicalText ensures that the command which runs is the one that was judged. Commands without
// the user's approval run in their canonical form; eca asks about commands without such a form, even
// with auto-approve. Rules that allow everything also allow these, because they do not depend on the text.
func (j *judgment) requireCanonicalText(v tools.Verdict, call tools.Call, spec namedSpec, plan tools.Plan, printed *tools.Printed) tools.Verdict {
	if plan.Command == nil || plan.Command.OtherShell || plan.Command.TemplateArguments != nil { // custom tools run as written
		return v
	}
	v.Printed = printed
	readOnly := strings.HasSuffix(v.Rule, ".readOnly")
	switch two := plan.Command.Program.TwoReadings; {
	case v.Decision == tools.Deny, j.allowsEverything(call, spec):
		return v
	case two != "" && (!v.AlwaysAsk || readOnly):
		v.Decision, v.AlwaysAsk, v.Rule, v.Reason = tools.Ask, true, ruleTwoReadings, "a shell may read it differently from eca: "+two
		return v
	case printed.Text == "" && v.Decision == tools.Allow:
		v.Decision, v.AlwaysAsk, v.Rule, v.Reason = tools.Ask, true, ruleNoText, "eca cannot print its canonical form: "+printed.Why
		return v
	case printed.Text == "":
		v.AlwaysAsk = true
		return v
	}
	if v.Decision != tools.Allow || !readOnly && v.Rule != RuleReads {
		return v
	}
	if why := j.programs.resolve(printed, j.inside); why != "" {
		v.Decision, v.AlwaysAsk, v.Rule, v.Reason = tools.Ask, readOnly, ruleProgram, why
	} else if plan.Command.ShellWrapper != "" {
		v.Decision, v.AlwaysAsk, v.Rule, v.Reason = tools.Ask, readOnly, ruleProgram, "commands go through "+plan.Command.ShellWrapper+" (toolCall.shellCommand), and eca does not know what that does"
	}
	return v
}

// allowsEverything reports whether the user's rules allow a tool with any arguments.
func (p *Policy) allowsEverything(call tools.Call, spec namedSpec) bool {
	r := p.rulesFor(call.Agent)
	if p.readOnly[call.Agent] {
		return false
	}
	return r.byDefault == tools.Allow || slices.ContainsFunc(r.allow, func(r rule) bool { return r.all && r.selects(spec) })
}

// globNames returns the names that a glob matches in bash. Names with a leading dot match only a pattern
// with a leading dot.
func globNames(dir, glob string) (names []string, ok bool) {
	const maxNames = 1000
	names, remaining := []string{""}, maxEntriesRead
	rest := glob
	if strings.HasPrefix(glob, "/") {
		dir, names, rest = "/", []string{"/"}, strings.TrimLeft(glob, "/")
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		var next []string
		for _, name := range names {
			found, ok := globPart(filepath.Join(dir, name), name, part, i+1 < len(parts), &remaining)
			if !ok || len(next)+len(found) > maxNames {
				return nil, false
			}
			next = append(next, found...)
		}
		names = next
	}
	sort.Strings(names)
	return names, true
}

// globPart returns the names that one component of a glob matches in a folder, with the prefix name.
// folder is true if more components follow. remaining is the number of entries that may still be read.
func globPart(dir, name, part string, folder bool, remaining *int) (names []string, ok bool) {
	end := ""
	if folder {
		end = "/"
	}
	plain := strings.NewReplacer(`\*`, "", `\?`, "", `\[`, "", `\]`, "", `\\`, "").Replace(part)
	if !strings.ContainsAny(plain, "*?[") {
		part = strings.NewReplacer(`\\`, `\`, `\`, "").Replace(part)
		info, err := os.Stat(filepath.Join(dir, part))
		if _, lerr := os.Lstat(filepath.Join(dir, part)); lerr != nil || folder && (err != nil || !info.IsDir()) {
			return nil, true
		}
		return []string{name + part + end}, true
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return nil, true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, true // bash cannot read it either
	}
	if *remaining -= len(entries); *remaining < 0 {
		return nil, false
	}
	part = strings.ReplaceAll(part, "[!", "[^")
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") && !strings.HasPrefix(strings.TrimPrefix(part, `\`), ".") {
			continue
		}
		if matches, err := filepath.Match(part, e.Name()); err != nil {
			return nil, false
		} else if !matches {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, e.Name())); folder && (err != nil || !info.IsDir()) {
			continue
		}
		names = append(names, name+e.Name()+end)
	}
	return names, true
}

package runtime

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// decoder collects the problems of a document that is converted to a manifest.
type decoder struct {
	problems []Problem
	ids      map[string]int // line numbers of scenarios by id
}

func (d *decoder) problem(n *node, path, format string, args ...any) {
	d.problems = append(d.problems, Problem{Line: n.line, Column: n.col, Key: path, Message: fmt.Sprintf(format, args...)})
}

func (d *decoder) warn(n *node, path, format string, args ...any) {
	d.problem(n, path, format, args...)
	d.problems[len(d.problems)-1].Warning = true
}

// element is a value of the document. A missing element has a nil node, and is read as the zero value.
type element struct {
	*node
	d    *decoder
	path string
}

func (e element) problem(format string, args ...any) { e.d.problem(e.node, e.path, format, args...) }

func (e element) missing() bool { return e.node == nil }

// child returns a part of the element.
func (e element) child(name string, n *node) element {
	if e.path != "" {
		name = e.path + "." + name
	}
	return element{n, e.d, name}
}

// get returns the value of a key.
func (e element) get(name string) element { return e.child(name, e.node.get(name)) }

// required is get for a key that must exist.
func (e element) required(name string) element {
	v := e.get(name)
	if v.missing() {
		e.d.problem(e.node, v.path, "the key is missing")
	}
	return v
}

// mapping returns the element if it is a mapping, or otherwise an empty one. It reports keys other than
// the known ones.
func (e element) mapping(known ...string) element {
	switch {
	case e.missing():
		e.node = &node{kind: kindMap}
	case e.kind != kindMap:
		e.problem("must be a mapping, not %s", e.kind)
		e.node = &node{kind: kindMap, line: e.line, col: e.col}
	}
	for _, k := range e.keys {
		if known != nil && !slices.Contains(known, k.name) {
			e.child(k.name, &node{line: k.line, col: k.col}).problem("unknown key%s; the keys are %s", suggest.DidYouMean(k.name, known), strings.Join(known, ", "))
		}
	}
	return e
}

// object returns a mapping with any keys.
func (e element) object() map[string]any {
	if e.missing() {
		return nil
	}
	out, _ := e.mapping().value().(map[string]any)
	return out
}

// text reads a string. Numbers and booleans without quotes are errors.
func (e element) text() string {
	if e.missing() {
		return ""
	}
	if e.kind != kindString {
		hint := ""
		if e.kind < kindList && e.kind != kindNull || e.kind == kindOther {
			hint = "; put it in quotes"
		}
		e.problem("must be a string, not %s%s", e.kind, hint)
		return ""
	}
	return e.node.text
}

// nonEmptyText reads a string that is not empty.
func (e element) nonEmptyText() string {
	s := e.text()
	if !e.missing() && e.kind == kindString && s == "" {
		e.problem("must not be empty")
	}
	return s
}

// optionalText reads a string or null.
func (e element) optionalText() *string {
	if e.missing() || e.kind == kindNull {
		return nil
	}
	s := e.text()
	return &s
}

func (e element) oneOf(allowed ...string) string {
	s := e.text()
	if !e.missing() && e.kind == kindString && !slices.Contains(allowed, s) {
		e.problem("%q must be one of %s", s, strings.Join(allowed, ", "))
	}
	return s
}

func (e element) items() (out []element) {
	if e.missing() {
		return nil
	}
	if e.kind != kindList {
		e.problem("must be a list, not %s", e.kind)
		return nil
	}
	for i, n := range e.list {
		out = append(out, e.child(fmt.Sprint(i), n))
	}
	return out
}

// texts reads a list of strings. It returns nil for a missing list only.
func (e element) texts() []string {
	if e.missing() {
		return nil
	}
	out := []string{}
	for _, item := range e.items() {
		out = append(out, item.text())
	}
	return out
}

func (d *decoder) manifest(m *Manifest, root element) {
	root = root.mapping("manifest_version", "name", "target", "scenarios", "require_capabilities")
	if v := root.get("require_capabilities"); !v.missing() {
		m.RequireCapabilities = v.lenientBool()
	}
	root.required("manifest_version").oneOf("v1")
	m.Name = root.required("name").nonEmptyText()
	m.Target = root.required("target").nonEmptyText()
	for _, e := range root.required("scenarios").items() {
		m.Scenarios = append(m.Scenarios, e.scenario())
	}
}

func (e element) scenario() Scenario {
	sc := Scenario{Line: e.line}
	e = e.mapping("name", "steps", "dataset")
	name := e.required("name")
	sc.Name = name.nonEmptyText()
	if !name.missing() {
		sc.Line = name.line
	}
	list := e.get("steps")
	for i, step := range list.items() {
		sc.Steps = append(sc.Steps, step.step(i == 0, &sc.Setup))
	}
	rows := e.get("dataset")
	if !rows.missing() && rows.kind != kindNull {
		sc.Rows = rows.rows()
	}
	switch empty := list.missing() || list.kind == kindList && len(list.list) == 0; {
	case sc.Rows == nil && empty:
		e.d.problem(e.node, list.path, "the scenario needs steps or a dataset")
	case sc.Rows != nil && !empty:
		e.d.warn(rows.node, rows.path, "the dataset is not read, because the scenario has steps")
	}
	return sc
}

func (e element) step(first bool, setup *Setup) Step {
	e = e.mapping("input", "constraints", "graders")
	st := Step{Input: e.required("input").text()}
	if c := e.get("constraints"); !c.missing() {
		c = c.mapping()
		st.Constraints = c.constraints()
		if s := c.get("scenario"); !s.missing() {
			if !first {
				s.problem("only the first step of a scenario can set it up")
			}
			*setup = s.setup()
		}
	}
	for _, g := range e.get("graders").items() {
		st.Graders = append(st.Graders, g.grader(false))
	}
	return st
}

// grader reads a grader. The graders in constraints.checks are extended: they have options beyond
// manifest v1.
func (e element) grader(extended bool) grade.Spec {
	known := []string{"type", "field", "condition", "value", "pattern", "prompt", "assertion", "tool_name", "arguments"}
	if extended {
		known = append(known, "not", "ignore_case", "match", "min", "max", "tools", "mode", "scope", "path", "exists", "only", "includes", "run", "exit_code", "timeout_s", "status", "votes", "threshold", "model", "parser", "fail_to_pass", "pass_to_pass", "fail_only")
	}
	e = e.mapping(known...)
	before := len(e.d.problems)
	s := grade.Spec{Type: e.required("type").oneOf(grade.Types(extended)...), Field: grade.PublicOutput}
	if f := e.get("field"); !f.missing() {
		s.Field = f.oneOf(grade.Fields(extended)...)
	}
	if c := e.get("condition"); !c.missing() && c.kind != kindNull {
		s.Condition = c.oneOf(grade.Conditions()...)
	}
	s.Value = e.get("value").optionalText()
	s.Pattern, s.Prompt = deref(e.get("pattern").optionalText()), deref(e.get("prompt").optionalText())
	s.Assertion, s.ToolName = deref(e.get("assertion").optionalText()), deref(e.get("tool_name").optionalText())
	s.Arguments = e.get("arguments").object()
	if extended {
		e.decodeCheckOptions(&s)
	}
	if len(e.d.problems) > before {
		return s
	}
	for _, p := range s.Check() {
		at := e
		if p.Key != "" {
			at.path = e.get(p.Key).path
		}
		if v := e.get(p.Key); !v.missing() {
			at.node = v.node
		}
		at.problem("%s", p.Message)
	}
	if v := e.get("value"); s.Value != nil && *s.Value == "" && (s.Condition == "contains" || s.Condition == "does_not_contain") {
		verdict := "passes"
		if s.Condition == "does_not_contain" {
			verdict = "fails"
		}
		e.d.warn(v.node, v.path, "every text contains an empty value, so this check always %s", verdict)
	}
	return s
}

// decodeCheckOptions reads the options that only constraints.checks has.
func (e element) decodeCheckOptions(s *grade.Spec) {
	for name, into := range map[string]*string{"match": &s.Match, "mode": &s.Mode, "scope": &s.Scope, "path": &s.Path, "run": &s.Run, "status": &s.Want, "model": &s.Model, "parser": &s.Parser} {
		*into = e.get(name).text()
	}
	for name, into := range map[string]*[]string{"tools": &s.Tools, "only": &s.Only, "includes": &s.Includes, "fail_to_pass": &s.FailToPass, "pass_to_pass": &s.PassToPass} {
		*into = e.get(name).texts()
	}
	s.Not, s.IgnoreCase, s.FailOnly = deref(e.get("not").boolean()), deref(e.get("ignore_case").boolean()), deref(e.get("fail_only").boolean())
	s.Exists, s.Min, s.Max = e.get("exists").boolean(), e.get("min").nonNegativeInt(), e.get("max").nonNegativeInt()
	s.Threshold, s.TimeoutS = e.get("threshold").nonNegativeNumber(), deref(e.get("timeout_s").nonNegativeNumber())
	s.Votes, s.ExitCode = deref(e.get("votes").nonNegativeInt()), deref(e.get("exit_code").nonNegativeInt())
}

func (e element) boolean() *bool {
	if e.missing() {
		return nil
	}
	v, ok := e.value().(bool)
	if !ok {
		e.problem("must be true or false, not %s", e.kind)
	}
	return &v
}

// lenientBool reads a boolean in all forms that the reference accepts.
func (e element) lenientBool() bool {
	switch v := e.value().(type) {
	case bool:
		return v
	case int64:
		if v == 0 || v == 1 {
			return v == 1
		}
	case float64:
		if v == 0 || v == 1 {
			return v == 1
		}
	case string:
		switch strings.ToLower(v) {
		case "yes", "on", "true", "y", "t", "1":
			return true
		case "no", "off", "false", "n", "f", "0":
			return false
		}
	}
	e.problem("must be true or false")
	return false
}

// nonNegativeInt reads an integer that is not negative.
func (e element) nonNegativeInt() *int64 {
	if e.missing() {
		return nil
	}
	v, ok := e.value().(int64)
	if !ok || v < 0 {
		e.problem("must be an integer, 0 or more")
	}
	return &v
}

// nonNegativeNumber reads a number that is not negative.
func (e element) nonNegativeNumber() *float64 {
	if e.missing() {
		return nil
	}
	f, ok := e.value().(float64)
	if n, isInt := e.value().(int64); isInt {
		f, ok = float64(n), true
	}
	if !ok || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		e.problem("must be a number, 0 or more")
	}
	return &f
}

package runtime

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/suggest"
)

// decoder converts a document to a manifest and collects all problems.
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

func join(path string, part any) string {
	if path == "" {
		return fmt.Sprint(part)
	}
	return path + "." + fmt.Sprint(part)
}

// only reports keys other than the known ones.
func (d *decoder) only(n *node, path string, known ...string) {
	for _, k := range n.keys {
		if !slices.Contains(known, k.name) {
			d.problem(&node{line: k.line, col: k.col}, join(path, k.name), "the key is not known here%s; there are %s", suggest.DidYouMean(k.name, known), strings.Join(known, ", "))
		}
	}
}

// required returns the value of a required key and its path. It reports a missing key.
func (d *decoder) required(n *node, path, name string) (*node, string) {
	v := n.get(name)
	if v == nil {
		d.problem(n, join(path, name), "the key is missing")
	}
	return v, join(path, name)
}

// text reads a string. Numbers and booleans without quotes are errors.
func (d *decoder) text(n *node, path string) string {
	if n == nil {
		return ""
	}
	if n.kind != kindString {
		hint := ""
		if n.kind < kindList && n.kind != kindNull || n.kind == kindOther {
			hint = "; put it in quotes"
		}
		d.problem(n, path, "must be a string, not %s%s", n.kind, hint)
		return ""
	}
	return n.text
}

// name reads a string that is not empty.
func (d *decoder) name(n *node, path string) string {
	s := d.text(n, path)
	if n != nil && n.kind == kindString && s == "" {
		d.problem(n, path, "must not be empty")
	}
	return s
}

// optional reads a string or null.
func (d *decoder) optional(n *node, path string) *string {
	if n == nil || n.kind == kindNull {
		return nil
	}
	s := d.text(n, path)
	return &s
}

func (d *decoder) oneOf(n *node, path string, allowed []string) string {
	s := d.text(n, path)
	if n != nil && n.kind == kindString && !slices.Contains(allowed, s) {
		d.problem(n, path, "%q is none of %s", s, strings.Join(allowed, ", "))
	}
	return s
}

func (d *decoder) items(n *node, path string) []*node {
	if n == nil {
		return nil
	}
	if n.kind != kindList {
		d.problem(n, path, "must be a list, not %s", n.kind)
		return nil
	}
	return n.list
}

func (d *decoder) mapping(n *node, path string) *node {
	if n == nil {
		return &node{kind: kindMap}
	}
	if n.kind != kindMap {
		d.problem(n, path, "must be a mapping, not %s", n.kind)
		return &node{kind: kindMap, line: n.line, col: n.col}
	}
	return n
}

func (d *decoder) manifest(m *Manifest, root *node) {
	d.only(root, "", "manifest_version", "name", "target", "scenarios", "require_capabilities")
	if v := root.get("require_capabilities"); v != nil {
		m.RequireCapabilities = d.lenientBool(v, "require_capabilities")
	}
	version, path := d.required(root, "", "manifest_version")
	d.oneOf(version, path, []string{"v1"})
	name, path := d.required(root, "", "name")
	m.Name = d.name(name, path)
	target, path := d.required(root, "", "target")
	m.Target = d.name(target, path)
	list, path := d.required(root, "", "scenarios")
	for i, n := range d.items(list, path) {
		m.Scenarios = append(m.Scenarios, d.scenario(n, join(path, i)))
	}
}

func (d *decoder) scenario(n *node, path string) Scenario {
	sc := Scenario{Line: n.line}
	n = d.mapping(n, path)
	d.only(n, path, "name", "steps", "dataset")
	name, at := d.required(n, path, "name")
	sc.Name = d.name(name, at)
	if name != nil {
		sc.Line = name.line
	}
	list, at := n.get("steps"), join(path, "steps")
	for i, step := range d.items(list, at) {
		sc.Steps = append(sc.Steps, d.step(step, join(at, i), i == 0, &sc.Setup))
	}
	rows := n.get("dataset")
	if rows != nil && rows.kind != kindNull {
		sc.Rows = d.rows(rows, join(path, "dataset"))
	}
	switch empty := list == nil || list.kind == kindList && len(list.list) == 0; {
	case sc.Rows == nil && empty:
		d.problem(n, at, "there is nothing to run: the scenario needs steps or a dataset")
	case sc.Rows != nil && !empty:
		d.warn(rows, join(path, "dataset"), "the dataset is not read, because the scenario has steps")
	}
	return sc
}

func (d *decoder) step(n *node, path string, first bool, setup *Setup) Step {
	st := Step{}
	n = d.mapping(n, path)
	d.only(n, path, "input", "constraints", "graders")
	input, at := d.required(n, path, "input")
	st.Input = d.text(input, at)
	if c := n.get("constraints"); c != nil {
		at := join(path, "constraints")
		c = d.mapping(c, at)
		st.Constraints = d.constraints(c, at)
		if s := c.get("scenario"); s != nil {
			if !first {
				d.problem(s, join(at, "scenario"), "only the first step of a scenario can set it up")
			}
			*setup = d.setup(s, join(at, "scenario"))
		}
	}
	for i, g := range d.items(n.get("graders"), join(path, "graders")) {
		st.Graders = append(st.Graders, d.grader(g, fmt.Sprintf("%s.graders.%d", path, i), false))
	}
	return st
}

// grader reads a grader. The graders in constraints.checks are extended: they have options beyond
// manifest v1.
func (d *decoder) grader(n *node, path string, extended bool) grade.Spec {
	n = d.mapping(n, path)
	known := []string{"type", "field", "condition", "value", "pattern", "prompt", "assertion", "tool_name", "arguments"}
	if extended {
		known = append(known, "not", "ignore_case", "match", "min", "max", "tools", "mode", "scope", "path", "exists", "only", "includes", "run", "exit_code", "timeout_s", "status", "votes", "threshold", "model", "parser", "fail_to_pass", "pass_to_pass", "fail_only")
	}
	d.only(n, path, known...)
	before := len(d.problems)
	typ, at := d.required(n, path, "type")
	s := grade.Spec{Type: d.oneOf(typ, at, grade.Types(extended)), Field: grade.PublicOutput}
	if f := n.get("field"); f != nil {
		s.Field = d.oneOf(f, join(path, "field"), grade.Fields(extended))
	}
	if c := n.get("condition"); c != nil && c.kind != kindNull {
		s.Condition = d.oneOf(c, join(path, "condition"), grade.Conditions())
	}
	s.Value = d.optional(n.get("value"), join(path, "value"))
	for name, into := range map[string]*string{"pattern": &s.Pattern, "prompt": &s.Prompt, "assertion": &s.Assertion, "tool_name": &s.ToolName} {
		if v := d.optional(n.get(name), join(path, name)); v != nil {
			*into = *v
		}
	}
	if a := n.get("arguments"); a != nil {
		s.Arguments, _ = d.mapping(a, join(path, "arguments")).value().(map[string]any)
	}
	if extended {
		d.decodeCheckOptions(&s, n, path)
	}
	if len(d.problems) > before {
		return s
	}
	for _, p := range s.Check() {
		at, key := n, path
		if v := n.get(p.Key); v != nil {
			at = v
		}
		if p.Key != "" {
			key = join(path, p.Key)
		}
		d.problem(at, key, "%s", p.Message)
	}
	return s
}

// decodeCheckOptions reads the options that only constraints.checks has.
func (d *decoder) decodeCheckOptions(s *grade.Spec, n *node, path string) {
	for name, into := range map[string]*string{"match": &s.Match, "mode": &s.Mode, "scope": &s.Scope, "path": &s.Path, "run": &s.Run, "status": &s.Want, "model": &s.Model, "parser": &s.Parser} {
		if v := n.get(name); v != nil {
			*into = d.text(v, join(path, name))
		}
	}
	for name, into := range map[string]*bool{"not": &s.Not, "ignore_case": &s.IgnoreCase, "fail_only": &s.FailOnly} {
		if v := d.boolean(n.get(name), join(path, name)); v != nil {
			*into = *v
		}
	}
	for name, into := range map[string]*[]string{"tools": &s.Tools, "only": &s.Only, "includes": &s.Includes, "fail_to_pass": &s.FailToPass, "pass_to_pass": &s.PassToPass} {
		if v := n.get(name); v != nil {
			*into = d.texts(v, join(path, name))
		}
	}
	s.Exists = d.boolean(n.get("exists"), join(path, "exists"))
	s.Min, s.Max = d.count(n.get("min"), join(path, "min")), d.count(n.get("max"), join(path, "max"))
	s.Threshold = d.amount(n.get("threshold"), join(path, "threshold"))
	if v := d.amount(n.get("timeout_s"), join(path, "timeout_s")); v != nil {
		s.TimeoutS = *v
	}
	if v := d.count(n.get("votes"), join(path, "votes")); v != nil {
		s.Votes = *v
	}
	if v := d.count(n.get("exit_code"), join(path, "exit_code")); v != nil {
		s.ExitCode = *v
	}
}

func (d *decoder) boolean(n *node, path string) *bool {
	if n == nil {
		return nil
	}
	v, ok := n.value().(bool)
	if !ok {
		d.problem(n, path, "must be true or false, not %s", n.kind)
	}
	return &v
}

// lenientBool reads a boolean in all forms that the reference accepts.
func (d *decoder) lenientBool(n *node, path string) bool {
	switch v := n.value().(type) {
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
	d.problem(n, path, "must be true or false")
	return false
}

// count reads an integer that is not negative.
func (d *decoder) count(n *node, path string) *int64 {
	if n == nil {
		return nil
	}
	v, ok := n.value().(int64)
	if !ok || v < 0 {
		d.problem(n, path, "must be an integer from 0 on")
	}
	return &v
}

// amount reads a number that is not negative.
func (d *decoder) amount(n *node, path string) *float64 {
	if n == nil {
		return nil
	}
	var f float64
	ok := true
	switch v := n.value().(type) {
	case int64:
		f = float64(v)
	case float64:
		f = v
	default:
		ok = false
	}
	if !ok || f < 0 || math.IsInf(f, 0) || math.IsNaN(f) {
		d.problem(n, path, "must be a number from 0 on")
	}
	return &f
}

func (d *decoder) texts(n *node, path string) []string {
	out := []string{}
	for i, e := range d.items(n, path) {
		out = append(out, d.text(e, join(path, strconv.Itoa(i))))
	}
	return out
}

package template

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// renderer is one rendering of a template.
type renderer struct {
	scopes []Vars // the innermost is last
	out    strings.Builder
	steps  int
}

func (r *renderer) renderAll(nodes []node) error {
	for _, n := range nodes {
		if r.steps++; r.steps > maxSteps {
			return fmt.Errorf("the template takes more than %d steps", maxSteps)
		}
		if err := r.renderNode(n); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) renderNode(n node) error {
	switch n := n.(type) {
	case text:
		return r.write(string(n))
	case output:
		v := r.value(n.value)
		for _, f := range n.filters {
			if size(v) > maxOutput {
				break
			}
			v = f.apply(r, v)
		}
		return r.write(str(v))
	case choice:
		for _, b := range n.branches {
			if b.condition == nil || b.condition.isTrue(r) {
				return r.renderAll(b.body)
			}
		}
	case loop:
		return r.loop(n)
	}
	return nil
}

func (r *renderer) loop(l loop) error {
	list, ok := r.value(l.list).([]string)
	if !ok || len(list) == 0 {
		return r.renderAll(l.empty)
	}
	for i, item := range list {
		if r.steps++; r.steps > maxSteps {
			return fmt.Errorf("the template takes more than %d steps", maxSteps)
		}
		r.scopes = append(r.scopes, Vars{
			l.name: item, "forloop.counter": i + 1, "forloop.counter0": i, "forloop.length": len(list),
			"forloop.first": i == 0, "forloop.last": i == len(list)-1,
		})
		err := r.renderAll(l.body)
		r.scopes = r.scopes[:len(r.scopes)-1]
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) write(s string) error {
	if r.out.Len()+len(s) > maxOutput {
		return fmt.Errorf("the template renders to more than %d bytes", maxOutput)
	}
	r.out.WriteString(s)
	return nil
}

// value returns a string, a bool, an int, a []string, or nil for a missing variable.
func (r *renderer) value(o operand) any {
	if o.name == "" {
		return o.constant
	}
	for i := len(r.scopes) - 1; i >= 0; i-- {
		if v, ok := r.scopes[i][o.name]; ok {
			switch v.(type) {
			case string, bool, int, []string:
				return v
			}
			return nil
		}
	}
	return nil
}

func str(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case []string:
		return strings.Join(v, ", ")
	}
	return ""
}

func size(v any) int {
	n := 0
	switch v := v.(type) {
	case string:
		n = len(v)
	case []string:
		for _, s := range v {
			n += len(s)
		}
	}
	return n
}

// filter changes a value.
type filter struct {
	name string
	args []operand
}

// exists reports whether there is a filter with this name and number of arguments.
func (f filter) exists() bool {
	switch f.name {
	case "upper", "lower", "capitalize", "trim", "safe", "length", "count", "first", "last":
		return len(f.args) == 0
	case "default", "default-if-empty", "join":
		return len(f.args) == 1
	case "replace":
		return len(f.args) == 2
	}
	return false
}

func (f filter) apply(r *renderer, v any) any {
	arg := func(i int) any { return r.value(f.args[i]) }
	switch f.name {
	case "upper":
		return strings.ToUpper(str(v))
	case "lower":
		return strings.ToLower(str(v))
	case "capitalize":
		first, n := utf8.DecodeRuneInString(str(v))
		return string(unicode.ToUpper(first)) + str(v)[n:]
	case "trim":
		return strings.TrimSpace(str(v))
	case "length", "count":
		if list, ok := v.([]string); ok {
			return len(list)
		}
		return utf8.RuneCountInString(str(v))
	case "first", "last":
		return firstOrLast(v, f.name == "first")
	case "default":
		if v == nil {
			return arg(0)
		}
	case "default-if-empty":
		if v == nil || size(v) == 0 && !isScalar(v) {
			return arg(0)
		}
	case "join":
		if list, ok := v.([]string); ok && len(list)*len(str(arg(0))) <= maxOutput {
			return strings.Join(list, str(arg(0)))
		}
	case "replace":
		from, to, s := str(arg(0)), str(arg(1)), str(v)
		if from != "" && strings.Count(s, from)*len(to) <= maxOutput {
			return strings.ReplaceAll(s, from, to)
		}
	}
	return v // safe changes nothing; other filters do not apply to the value
}

func isScalar(v any) bool {
	switch v.(type) {
	case bool, int:
		return true
	}
	return false
}

// firstOrLast returns the first or the last element of a list, or character of a text.
func firstOrLast(v any, first bool) any {
	list, ok := v.([]string)
	if !ok {
		for _, r := range str(v) {
			list = append(list, string(r))
		}
	}
	switch {
	case len(list) == 0:
		return nil
	case first:
		return list[0]
	}
	return list[len(list)-1]
}

package template

import "slices"

// condition is the condition of a branch.
type condition interface {
	isTrue(r *renderer) bool
}

type (
	// truth is true unless the value is missing, false, empty or zero.
	truth      struct{ value operand }
	negation   struct{ negated condition }
	comparison struct {
		a  operand
		op string
		b  operand
	}
	conjunction struct{ all []condition }
	disjunction struct{ any []condition }
)

func (c truth) isTrue(r *renderer) bool    { return isTrue(r.value(c.value)) }
func (c negation) isTrue(r *renderer) bool { return !c.negated.isTrue(r) }

func (c conjunction) isTrue(r *renderer) bool {
	return !slices.ContainsFunc(c.all, func(c condition) bool { return !c.isTrue(r) })
}

func (c disjunction) isTrue(r *renderer) bool {
	return slices.ContainsFunc(c.any, func(c condition) bool { return c.isTrue(r) })
}

func (c comparison) isTrue(r *renderer) bool {
	a, b := r.value(c.a), r.value(c.b)
	switch c.op {
	case "=", "==":
		return str(a) == str(b)
	case "!=":
		return str(a) != str(b)
	}
	x, okX := asNumber(a)
	y, okY := asNumber(b)
	if !okX || !okY {
		return false
	}
	switch c.op {
	case "<":
		return x < y
	case "<=":
		return x <= y
	case ">":
		return x > y
	}
	return x >= y
}

func asNumber(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case string:
		return number(v)
	}
	return 0, false
}

func isTrue(v any) bool {
	switch v := v.(type) {
	case bool:
		return v
	case int:
		return v != 0
	case string:
		return v != "" && v != "false"
	case []string:
		return len(v) > 0
	}
	return false
}

// condition parses the part of a tag after "if". There are two forms: values and comparisons joined
// by not, and, or (and binds more tightly than or); and a list of values after all or any.
func (p *parser) condition(s string) condition {
	w := p.words(s)
	if len(w) == 0 {
		p.fail("if needs a condition")
	}
	if len(w) > 1 && (w[0] == "all" || w[0] == "any") && !isOperator(w[1]) {
		var list []condition
		for _, word := range w[1:] {
			list = append(list, truth{p.operand(word)})
		}
		if w[0] == "all" {
			return conjunction{list}
		}
		return disjunction{list}
	}
	var or disjunction
	for _, alternative := range splitWords(w, "or") {
		var and conjunction
		for _, term := range splitWords(alternative, "and") {
			and.all = append(and.all, p.term(term))
		}
		or.any = append(or.any, and)
	}
	return or
}

func isOperator(word string) bool {
	return slices.Contains([]string{"=", "==", "!=", "<", "<=", ">", ">="}, word)
}

// term parses a value or a comparison, which any number of nots may precede.
func (p *parser) term(w []string) condition {
	negated := false
	for len(w) > 0 && w[0] == "not" {
		negated, w = !negated, w[1:]
	}
	var c condition
	switch {
	case len(w) == 1:
		c = truth{p.operand(w[0])}
	case len(w) == 3 && isOperator(w[1]):
		c = comparison{p.operand(w[0]), w[1], p.operand(w[2])}
	default:
		p.fail("%q is not a condition", w)
	}
	if negated {
		return negation{c}
	}
	return c
}

func splitWords(w []string, sep string) [][]string {
	var out [][]string
	from := 0
	for i, word := range w {
		if word == sep {
			out = append(out, w[from:i])
			from = i + 1
		}
	}
	return append(out, w[from:])
}

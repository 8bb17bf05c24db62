package cmdline

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// isPlainVariable reports whether an expansion is the value of a variable and nothing else.
func isPlainVariable(p *syntax.ParamExp) bool { return unmodified(p) && p.Exp == nil }

// unmodified reports whether an expansion has no flags, index or other modification, except perhaps an
// operator with a word.
func unmodified(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Flags == nil && !p.Excl && !p.Length && !p.Width && !p.IsSet && p.NestedParam == nil && p.Index == nil && len(p.Modifiers) == 0 &&
		p.Slice == nil && p.Repl == nil && p.Names == 0
}

// derivedOperand reports whether an expansion is a part of a variable's value, or a default for it, that
// can be computed: ${x%.go}, ${x##*/}, ${x:-none}. The word has letters, digits, some punctuation
// and, in a pattern, *. It returns the word.
func derivedOperand(p *syntax.ParamExp) (text string, ok bool) {
	if !unmodified(p) || p.Exp == nil || !isName(p.Param.Value) {
		return "", false
	}
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.RemSmallPrefix, syntax.RemLargePrefix, syntax.RemSmallSuffix, syntax.RemLargeSuffix:
	default:
		return "", false
	}
	if p.Exp.Word == nil {
		return "", true
	}
	if text, ok = singleLiteral(p.Exp.Word.Parts); !ok || !plainOperand(text) {
		return "", false
	}
	return text, true
}

// plainOperand reports whether all shells read the word after the operator of an expansion alike,
// also in quotes.
func plainOperand(word string) bool {
	return strings.IndexFunc(word, func(r rune) bool { return !isName("a"+string(r)) && !strings.ContainsRune("./:,@%+=*-", r) }) < 0
}

// maxDerived bounds the length of values, because derive takes quadratic time.
const maxDerived = 512

// derive returns the values of an expansion for the values of its variable. ok is false if they depend
// on the locale, or take long to compute.
func derive(p *syntax.ParamExp, values []string) (out []string, ok bool) {
	operand, ok := derivedOperand(p)
	for _, value := range values {
		if !ok || len(value) > maxDerived || strings.IndexFunc(value, func(r rune) bool { return r >= 0x80 }) >= 0 {
			return nil, false
		}
		switch p.Exp.Op {
		case syntax.DefaultUnset: // the variable is set, so its value stays
		case syntax.DefaultUnsetOrNull:
			if value == "" {
				value = operand
			}
		case syntax.RemSmallPrefix, syntax.RemLargePrefix:
			value = value[affixLength(value, operand, p.Exp.Op == syntax.RemLargePrefix, false):]
		default:
			value = value[:len(value)-affixLength(value, operand, p.Exp.Op == syntax.RemLargeSuffix, true)]
		}
		out = append(out, value)
	}
	return out, ok
}

// affixLength returns the length of the shortest or longest part of a value that a pattern matches, or 0 if no
// part matches. The part is at the beginning, or at the end if end is true. Only * is special in the
// pattern.
func affixLength(value, pattern string, longest, end bool) int {
	found := 0
	for n := range len(value) + 1 {
		part := value[:n]
		if end {
			part = value[len(value)-n:]
		}
		if matchesStars(part, pattern) {
			if found = n; !longest {
				break
			}
		}
	}
	return found
}

// matchesStars reports whether a pattern in which * alone is special matches a text.
func matchesStars(text, pattern string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return text == pattern
	}
	if len(text) < len(first)+len(last) || !strings.HasPrefix(text, first) || !strings.HasSuffix(text, last) {
		return false
	}
	text = text[len(first) : len(text)-len(last)]
	for _, part := range parts[1 : len(parts)-1] {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// maxNumber bounds the numbers of an arithmetic expression, so that no step of it overflows.
const maxNumber = 1 << 30

// reasonArithmetic is why an arithmetic expression is refused: shells evaluate the values of variables
// as expressions again, and those may run commands.
const reasonArithmetic = "it contains an arithmetic expression that eca cannot evaluate"

// arithmetic computes + - * / % of decimal numbers, and of variables whose possible values are all
// decimal numbers.
type arithmetic struct {
	*walker
	references int // number of variables that were followed to reach the expression; see named
}

// values returns what $(( )) may be.
func (w arithmetic) values(a *syntax.ArithmExp) (values []string, unknown string) {
	if a.Bracket || a.Unsigned {
		return nil, reasonArithmetic
	}
	numbers, unknown := w.numbers(a.X)
	for _, n := range numbers {
		values = append(values, strconv.Itoa(n))
	}
	return values, unknown
}

// numbers returns what an arithmetic expression may be.
func (w arithmetic) numbers(x syntax.ArithmExpr) (out []int, unknown string) {
	switch x := x.(type) {
	case *syntax.ParenArithm:
		return w.numbers(x.X)
	case *syntax.Word:
		return w.operand(x)
	case *syntax.BinaryArithm:
		left, unknown := w.numbers(x.X)
		if unknown != "" {
			return nil, unknown
		}
		right, unknown := w.numbers(x.Y)
		if unknown != "" {
			return nil, unknown
		}
		if w.steps += len(left) * len(right); w.steps > maxSteps || len(left)*len(right) > maxValues {
			return nil, tooManyValues
		}
		for _, a := range left {
			for _, b := range right {
				n, ok := calculate(x.Op, a, b)
				if !ok {
					return nil, reasonArithmetic
				}
				if !slices.Contains(out, n) {
					out = append(out, n)
				}
			}
		}
		return out, ""
	}
	return nil, reasonArithmetic // an assignment, or a sign: --x is another operator than - -x
}

// calculate computes one step; ok is false where a shell reports an error, or the number is large.
func calculate(op syntax.BinAritOperator, a, b int) (n int, ok bool) {
	switch op {
	case syntax.Add:
		n = a + b
	case syntax.Sub:
		n = a - b
	case syntax.Mul:
		n = a * b
	case syntax.Quo, syntax.Rem:
		if b == 0 {
			return 0, false
		}
		if n = a / b; op == syntax.Rem {
			n = a % b
		}
	default:
		return 0, false
	}
	return n, n >= -maxNumber && n <= maxNumber
}

// operand returns what an operand of an arithmetic expression may be: a number, or a variable with
// or without $.
func (w arithmetic) operand(x *syntax.Word) (out []int, unknown string) {
	const cost = 50 // steps, so that long expressions are refused soon
	if w.steps += cost; w.steps > maxSteps || len(x.Parts) != 1 {
		return nil, reasonArithmetic
	}
	var values []string
	signed := false // values may be negative. With $ they may not: if x is -1, 1-$x becomes 1--1
	switch part := x.Parts[0].(type) {
	case *syntax.Lit:
		if !isName(part.Value) {
			values = []string{part.Value}
			break
		}
		b, why := w.variableValues(part.Value, w.references)
		if why != "" || b.data || b.status {
			return nil, reasonArithmetic
		}
		values, signed = b.values, true
	case *syntax.ParamExp:
		b, why := w.variable(part, w.references)
		if why != "" || b.data || b.status || !isPlainVariable(part) {
			return nil, reasonArithmetic
		}
		values = b.values
	default:
		return nil, reasonArithmetic
	}
	for _, value := range values {
		n, err := strconv.Atoi(value)
		if err != nil || strconv.Itoa(n) != value || n < 0 && !signed || n < -maxNumber || n > maxNumber { // an octal number, say
			return nil, reasonArithmetic
		}
		out = append(out, n)
	}
	return out, ""
}

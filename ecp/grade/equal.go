package grade

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// number returns the exact value of a JSON or YAML number. It returns false for other values, and for
// numbers that are too large.
func number(v any) (*big.Rat, bool) {
	switch n := v.(type) {
	case json.Number:
		// With an exponent of a billion, big.Rat would need a billion digits.
		if f, err := n.Float64(); err != nil || math.Abs(f) > 1e300 || (f != 0 && math.Abs(f) < 1e-300) || len(n) > 400 {
			return nil, false
		}
		return new(big.Rat).SetString(string(n))
	case int:
		return new(big.Rat).SetInt64(int64(n)), true
	case int64:
		return new(big.Rat).SetInt64(n), true
	case uint64:
		return new(big.Rat).SetInt(new(big.Int).SetUint64(n)), true
	case float64:
		r := new(big.Rat)
		if r.SetFloat64(n) == nil {
			return nil, false
		}
		return r, true
	}
	return nil, false
}

// sameNumber compares numbers as Python does: integers exactly, fractions as floats. numbers reports
// whether both values are numbers.
func sameNumber(a, b any) (same, numbers bool) {
	x, ok := number(a)
	y, ok2 := number(b)
	if !ok || !ok2 {
		return fmt.Sprint(a) == fmt.Sprint(b) && isNumber(a) && isNumber(b), isNumber(a) && isNumber(b)
	}
	if x.Cmp(y) == 0 {
		return true, true
	}
	if x.IsInt() && y.IsInt() {
		return false, true
	}
	f, _ := x.Float64()
	g, _ := y.Float64()
	return f == g, true
}

func isNumber(v any) bool {
	switch v.(type) {
	case json.Number, int, int64, uint64, float64:
		return true
	}
	return false
}

// equal reports whether a reported value equals the expected one. Numbers are compared by value. A
// boolean equals a number only if truthy is set (as in Python).
func equal(want, got any, truthy bool) bool {
	if truthy {
		want, got = asNumber(want), asNumber(got)
	}
	if same, numbers := sameNumber(want, got); numbers {
		return same
	}
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(w) != len(g) {
			return false
		}
		for k, v := range w {
			if other, ok := g[k]; !ok || !equal(v, other, truthy) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, func(a, b any) bool { return equal(a, b, truthy) })
	case string, bool, nil:
		return want == got
	}
	return false
}

func asNumber(v any) any {
	switch v {
	case true:
		return int64(1)
	case false:
		return int64(0)
	}
	return v
}

// contains is like equal, but reported objects may have additional keys at every depth.
func contains(want, got any) bool {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return false
		}
		for k, v := range w {
			if other, ok := g[k]; !ok || !contains(v, other) {
				return false
			}
		}
		return true
	case []any:
		g, ok := got.([]any)
		return ok && slices.EqualFunc(w, g, contains)
	}
	return equal(want, got, false)
}

// pythonRepr formats a value as Python's repr does, so that reasons are the same as in the reference.
func pythonRepr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case string:
		return pythonString(v)
	case float64:
		s := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0"
		}
		return s
	case map[string]any:
		parts := slices.Sorted(maps.Keys(v))
		for i, k := range parts {
			parts[i] = pythonString(k) + ": " + pythonRepr(v[k])
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = pythonRepr(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return fmt.Sprint(v)
}

func pythonString(s string) string {
	quote := "'"
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		quote = `"`
	}
	s = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "\t", `\t`, quote, `\`+quote).Replace(s)
	return quote + s + quote
}

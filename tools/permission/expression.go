package permission

import (
	"strings"

	"github.com/dlclark/regexp2"
)

// expression is a regular expression that must match a whole value, as in the reference server. Most are
// plain words.
type expression struct {
	text string          // the whole value, or its beginning if re is not nil
	re   *regexp2.Regexp // nil: the text itself
}

// compileExpression compiles a regular expression.
func compileExpression(text string) (expression, error) {
	if isWord(text) {
		return expression{text: text}, nil
	}
	re, err := compileRegexp(text)
	if err != nil {
		return expression{}, err
	}
	return expression{text: literalPrefix(text), re: re}, nil
}

// literalPrefix returns a text with which each match of a regular expression begins; empty if none is
// known. It ends before the first character that may be special. An alternative may begin differently,
// so that expressions with | have a beginning only if it is clear that the | is in parentheses.
func literalPrefix(pattern string) string {
	depth := 0
	for _, c := range []byte(pattern) {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == '|' && (depth < 1 || strings.ContainsAny(pattern, `\[#`)):
			return ""
		}
	}
	for i, c := range []byte(pattern) {
		switch {
		case isWordByte(c) || c == ' ' || c == '/' || c == '-':
		case strings.IndexByte("?*+{", c) >= 0: // the character before may be missing
			return pattern[:max(i-1, 0)]
		default:
			return pattern[:i]
		}
	}
	return pattern
}

// isWord reports whether a text has no characters that are special in a regular expression.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if !isWordByte(c) {
			return false
		}
	}
	return true
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// MatchString reports whether the expression matches s. It returns an error if the time limit is
// exceeded.
func (p expression) MatchString(s string) (bool, error) {
	if p.re == nil {
		return s == p.text, nil
	}
	if !strings.HasPrefix(s, p.text) {
		return false, nil
	}
	return p.re.MatchString(s)
}

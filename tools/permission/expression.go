package permission

import "github.com/dlclark/regexp2"

// expression is what a whole value must match, as the reference has it. Most are words that
// stand for themselves.
type expression struct {
	text string
	re   *regexp2.Regexp // nil: the text itself
}

// compileExpression reads a regular expression.
func compileExpression(text string) (expression, error) {
	if isWord(text) {
		return expression{text: text}, nil
	}
	re, err := compileRegexp(text)
	if err != nil {
		return expression{}, err
	}
	return expression{re: re}, nil
}

// isWord says that nothing in a text means anything in a regular expression.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// MatchString is that of regexp2; the error says that it ran out of time.
func (p expression) MatchString(s string) (bool, error) {
	if p.re == nil {
		return s == p.text, nil
	}
	return p.re.MatchString(s)
}

package permission

import "github.com/dlclark/regexp2"

// expression is a regular expression that must match a whole value, as in the reference. Most are plain
// words.
type expression struct {
	text string
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
	return expression{re: re}, nil
}

// isWord reports whether a text has no characters that are special in a regular expression.
func isWord(text string) bool {
	for _, c := range []byte(text) {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}

// MatchString reports whether the expression matches s. It returns an error if the time limit is
// exceeded.
func (p expression) MatchString(s string) (bool, error) {
	if p.re == nil {
		return s == p.text, nil
	}
	return p.re.MatchString(s)
}

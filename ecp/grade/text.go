package grade

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dlclark/regexp2"
)

// gradeText checks the condition on a text, without trimming or normalization. It is case-sensitive
// unless IgnoreCase is set.
func (s Spec) gradeText(text string, reference bool) Check {
	value := ""
	if s.Value != nil {
		value = *s.Value
	}
	if reference && text == "" {
		return Check{Reasoning: "Text was empty"}
	}
	if s.Condition == "regex" {
		return s.gradePattern(text, reference)
	}
	subject, wanted := text, value
	if s.IgnoreCase {
		subject, wanted = strings.ToLower(text), strings.ToLower(value)
	}
	c := Check{}
	switch s.Condition {
	case "equals":
		c = verdict(subject == wanted, "", fmt.Sprintf("The text equals '%s'", value), fmt.Sprintf("Expected to equal '%s', got %s", value, quoteShort(text)))
	case "does_not_contain":
		c = verdict(!strings.Contains(subject, wanted), "", fmt.Sprintf("The text does not contain '%s'", value), fmt.Sprintf("Expected NOT to contain '%s', got %s", value, quoteShort(text)))
	default:
		c = verdict(strings.Contains(subject, wanted), "", fmt.Sprintf("The text contains '%s'", value), fmt.Sprintf("Expected to contain '%s', got %s", value, quoteShort(text)))
	}
	if reference {
		c.Reasoning = map[string]string{"equals": "Expected to equal", "does_not_contain": "Expected NOT to contain"}[s.Condition]
		if c.Reasoning == "" {
			c.Reasoning = "Expected to contain"
		}
		c.Reasoning += " '" + value + "'"
	}
	return s.applyNot(c)
}

// applyNot inverts a result if Not is set.
func (s Spec) applyNot(c Check) Check {
	if !s.Not || c.Err != nil {
		return c
	}
	c.Passed = !c.Passed
	c.Reasoning = "Expected not: " + c.Reasoning
	return c
}

func (s Spec) gradePattern(text string, reference bool) Check {
	re, err := compilePattern(s.Pattern, s.IgnoreCase)
	if err != nil {
		return Check{Err: err} // does not happen after Spec.Check
	}
	found, err := matchPattern(re, s.Pattern, text)
	switch {
	case err != nil:
		return Check{Err: err}
	case reference:
		return Check{Passed: found, Reasoning: fmt.Sprintf("Regex '%s' failed", s.Pattern)}
	}
	return s.applyNot(verdict(found, "", fmt.Sprintf("Pattern '%s' matches", s.Pattern), fmt.Sprintf("Pattern '%s' does not match %s", s.Pattern, quoteShort(text))))
}

// matchPattern searches for a pattern in a text. It returns an error if that takes longer than patternTime.
func matchPattern(re *regexp2.Regexp, pattern, text string) (bool, error) {
	found, err := re.MatchString(text)
	if err != nil {
		return false, fmt.Errorf("pattern '%s' took longer than %s on a text of %d bytes", pattern, patternTime, len(text))
	}
	return found, nil
}

// compilePattern compiles a pattern in Python's syntax, with patternTime as the time limit of matches.
func compilePattern(pattern string, ignoreCase bool) (*regexp2.Regexp, error) {
	if pattern == "" {
		return nil, errors.New("the pattern is empty")
	}
	options := regexp2.None
	if ignoreCase {
		options |= regexp2.IgnoreCase
	}
	re, err := regexp2.Compile(fromPython(pattern), options)
	if err != nil {
		return nil, fmt.Errorf("pattern '%s' is not a valid regular expression: %w", pattern, err)
	}
	re.MatchTimeout = patternTime
	return re, nil
}

// fromPython rewrites syntax that differs between Python and regexp2: named groups, \Z, {,n}, \U, the
// flags a and u, and brackets in a character class, which would mean subtraction.
func fromPython(p string) string {
	var b strings.Builder
	class := false // in a character class
	for i := 0; i < len(p); {
		rest := p[i:]
		n, out := 1, rest[:1]
		switch {
		case rest[0] == '\\' && len(rest) > 1:
			n, out = rewriteEscape(rest, class)
		case class && rest[0] == '[':
			out = `\[`
		case class:
			class = rest[0] != ']'
		case strings.HasPrefix(rest, "[^]"): // a closing bracket at the beginning belongs to the class
			n, out, class = 3, `[^\]`, true
		case strings.HasPrefix(rest, "[]"):
			n, out, class = 2, `[\]`, true
		case rest[0] == '[':
			class = true
		case strings.HasPrefix(rest, "(?P<"):
			n, out = 4, "(?<"
		case strings.HasPrefix(rest, "(?P="):
			if end := strings.IndexByte(rest, ')'); end > 0 {
				n, out = end+1, `\k<`+rest[4:end]+`>`
			}
		case strings.HasPrefix(rest, "{,"):
			if end := strings.IndexByte(rest, '}'); end > 2 && isDigits(rest[2:end]) {
				n, out = 2, "{0,"
			}
		case strings.HasPrefix(rest, "(?"):
			n, out = pythonFlags(rest)
		}
		b.WriteString(out)
		i += n
	}
	return b.String()
}

// rewriteEscape rewrites an escape sequence that regexp2 does not have, or gives another meaning. n is the
// length of the sequence.
func rewriteEscape(rest string, class bool) (n int, out string) {
	switch {
	case rest[1] == 'Z' && !class:
		return 2, `\z`
	case rest[1] == 'U' && len(rest) >= 10 && isHex(rest[2:10]):
		return 10, `\x{` + strings.TrimLeft(rest[2:9], "0") + rest[9:10] + `}`
	}
	return 2, rest[:2]
}

// pythonFlags rewrites a group of inline flags, and leaves other groups unchanged. n is the length of
// the rewritten text.
func pythonFlags(rest string) (n int, out string) {
	end := strings.IndexAny(rest[2:], ":)")
	if end <= 0 || strings.Trim(rest[2:2+end], "aiLmsux-") != "" {
		return 2, rest[:2]
	}
	flags := strings.NewReplacer("a", "", "u", "", "L", "").Replace(rest[2 : 2+end])
	if flags == "" && rest[2+end] == ')' {
		return end + 3, ""
	}
	return end + 2, "(?" + flags
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

func isDigits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// shownText limits how much of a text a reason quotes, in characters.
const shownText = 200

// quoteShort quotes a text for a reason.
func quoteShort(text string) string {
	if text == "" {
		return "nothing"
	}
	if r := []rune(text); len(r) > shownText {
		text = string(r[:shownText]) + "…"
	}
	return "'" + text + "'"
}

package permission

import (
	"fmt"
	"strings"

	"github.com/dlclark/regexp2"
)

// compileRegexp compiles an anchored pattern, since the reference server matches whole values.
// Patterns have the syntax of Java (eca-features.md 16): classes such as \w match only ASCII, and
// constructs with another meaning here are refused.
func compileRegexp(pattern string) (*regexp2.Regexp, error) {
	if err := checkPattern(pattern); err != nil {
		return nil, err
	}
	whole := `\A(?:` + pattern + `)\z`
	re, err := regexp2.Compile(whole, regexp2.RE2)
	if err != nil {
		return nil, fmt.Errorf("%s%s", strings.ReplaceAll(err.Error(), whole, pattern), globHint(pattern))
	}
	re.MatchTimeout = matchTimeout
	return re, nil
}

// knownEscapes are the letters that have the same meaning after a backslash in Java and here.
const knownEscapes = "tnrfaecxudDsSwWbBAZzGpPk"

// checkPattern returns an error for constructs with another meaning in Java: unknown escapes, and
// classes within classes.
func checkPattern(pattern string) error {
	class := false
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; {
		case c == '\\' && i+1 < len(pattern):
			i++
			if c := pattern[i]; c == '0' || isLetter(c) && !strings.ContainsRune(knownEscapes, rune(c)) {
				return fmt.Errorf(`\%c is not known`, c)
			}
		case !class && c == '[':
			class = true
			for _, start := range []string{"^", "]"} { // do not end the class as first characters
				if strings.HasPrefix(pattern[i+1:], start) {
					i++
				}
			}
		case class && c == ']':
			class = false
		case class && c == '[':
			return fmt.Errorf(`%q has a class in a class: write \[ for the character`, pattern)
		case class && strings.HasPrefix(pattern[i:], "&&"):
			return fmt.Errorf("%q has && in a class, which is not known", pattern)
		}
	}
	return nil
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// globHint returns a hint for an invalid pattern that is probably meant as a glob.
func globHint(pattern string) string {
	if !strings.HasPrefix(pattern, "*") && !strings.Contains(pattern, "**") {
		return ""
	}
	meant := strings.NewReplacer(".*", ".*", "**", ".*", "*", ".*", ".", `\.`).Replace(pattern)
	if _, err := regexp2.Compile(meant, regexp2.RE2); err != nil {
		return ""
	}
	return "; patterns are regular expressions, not globs: write " + meant
}

package llm

import (
	"strconv"
	"strings"
)

// ClaudeVersion returns the version in the name of a Claude model as major*100+minor, such as 406
// for claude-sonnet-4-6, claude-4.6-sonnet and anthropic/claude-sonnet-4-6-20260217. The major
// version is the first number, and the minor version the second, unless that is a date. v is 0 if
// the name has no version; claude is false for other models.
func ClaudeVersion(model string) (v int, claude bool) {
	_, name, claude := strings.Cut(strings.ToLower(model), "claude-")
	if !claude {
		return 0, false
	}
	for _, token := range strings.FieldsFunc(name, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') }) {
		n, err := strconv.Atoi(token)
		switch {
		case err != nil || len(token) > 2:
			if v != 0 {
				return v, true
			}
		case v == 0:
			v = n * 100
		default:
			return v + n, true
		}
	}
	return v, true
}

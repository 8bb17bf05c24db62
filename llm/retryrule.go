package llm

import (
	"errors"
	"fmt"
	"time"

	"github.com/dlclark/regexp2"
)

// RetryRule is one of the user's rules for errors to retry (providers.<name>.retryRules,
// eca-features.md 4.1).
type RetryRule struct {
	Label   string // shown to the user while waiting; may be empty
	status  int    // 0: any
	pattern *regexp2.Regexp
}

// matchTimeout limits one match of a user's pattern.
const matchTimeout = 100 * time.Millisecond

// NewRetryRule returns a rule for errors that have a status, unless it is 0, and whose text matches
// a pattern, unless it is empty. Patterns have Java's syntax. A rule without both is an error,
// because it would apply to every error.
func NewRetryRule(status int, pattern, label string) (RetryRule, error) {
	r := RetryRule{Label: label, status: status}
	if status == 0 && pattern == "" {
		return r, errors.New("it names neither a status nor an errorPattern")
	}
	if pattern != "" {
		re, err := regexp2.Compile(pattern, regexp2.None)
		if err != nil {
			return r, fmt.Errorf("errorPattern %q is not a valid pattern: %w", pattern, err)
		}
		re.MatchTimeout = matchTimeout
		r.pattern = re
	}
	return r, nil
}

// applies reports whether the rule applies to an error. It searches the message and the provider's
// answer for the pattern.
func (r RetryRule) applies(e *Error) bool {
	if r.status != 0 && r.status != e.Status {
		return false
	}
	if r.pattern == nil {
		return true
	}
	found, err := r.pattern.MatchString(e.Message + "\n" + e.Body)
	return err == nil && found
}

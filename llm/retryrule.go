package llm

import (
	"errors"
	"fmt"
	"time"

	"github.com/dlclark/regexp2"
)

// RetryRule is one of the user's rules about errors that are worth another try
// (providers.<name>.retryRules, eca-features 4.1).
type RetryRule struct {
	Label   string // shown to the user while waiting; may be empty
	status  int    // 0: any
	pattern *regexp2.Regexp
}

// matchTimeout bounds one match of a user's pattern.
const matchTimeout = 100 * time.Millisecond

// NewRetryRule returns a rule for errors with a status, if that is not 0, in whose text
// a pattern is found, if that is not empty. Patterns are written as in Java. A rule
// without either is an error: it would apply to everything.
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

// applies says whether the rule is about an error. The pattern is searched for in what
// the user sees, and in all that the provider answered.
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

package lineproc

import (
	"regexp"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// maxReason is the length of a reason, in bytes.
const maxReason = 300

// Reason returns the line of a program's stderr that most likely tells why the program failed: the
// message of a crash, otherwise the last line that mentions a failure, otherwise the last one that
// is not part of a stack trace. It returns "" if there is no such line.
func Reason(stderr string) string {
	stderr = strings.ReplaceAll(stderr, "\r", "")
	// The stack traces of these crashes follow the message, and contain names of functions and files
	// that may mention a failure.
	if m := crash.FindStringSubmatch(stderr); m != nil {
		return shorten.Bytes(strings.TrimSpace(strings.Join(m[1:], " ")), maxReason)
	}
	last := ""
	for _, l := range slices.Backward(strings.Split(stderr, "\n")) {
		l = strings.TrimSpace(l)
		switch {
		case l == "" || uninformative.MatchString(l):
		case failure.MatchString(l):
			return shorten.Bytes(l, maxReason)
		case last == "":
			last = l
		}
	}
	return shorten.Bytes(last, maxReason)
}

var (
	// crash matches a crash of Go, up to its stack trace, or of Rust, whose message is on the next line.
	crash = regexp.MustCompile(`(?m)^((?:panic|fatal error): .*)(?:\n.*)*?\n\s*goroutine \d+ |^(thread '.*' (?:\(\d+\) )?panicked at .*:)\n(.*)$`)
	// uninformative matches lines that programs write about a failure besides its reason.
	uninformative = regexp.MustCompile(`^(at |File "|node:|Node\.js v|Traceback|goroutine |exit status |note: |\^|\.\.\. |[{}()\[\]]|from /)|complete log of this run|\.log$|^[a-zA-Z]+: ['\[{]`)
	// failure matches lines that mention a failure.
	failure = regexp.MustCompile(`(?i)error|exception|panic|fatal|cannot|can't|could not|couldn't|not found|no such|denied|refused|invalid|missing|required|failed|unknown|unable|usage:`)
)

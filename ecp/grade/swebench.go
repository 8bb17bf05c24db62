package grade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// Files in the container in which a swebench grader runs.
const (
	// ChangesFile contains the agent's changes as a patch.
	ChangesFile = "/ecp-changes.diff"
	// PredictionFile, if it is among the hidden tests, contains a patch to test instead of ChangesFile.
	PredictionFile = "prediction.diff"
)

// Lines of a test log.
const (
	logStart     = ">>>>> Start Test Output"
	logEnd       = ">>>>> End Test Output"
	patchFailed  = ">>>>> Patch Apply Failed"
	patchEmpty   = "ecp-patch-is-empty"
	exitMark     = "ecp-test-exit: "
	shownTests   = 5 // number of tests that a reason lists
	sweBenchTime = 30 * time.Minute
)

// WithExitCode changes a test script to print the exit code of its test command. That code is not 0
// if the tests were aborted without a failure in the log.
func WithExitCode(script string) string {
	var out strings.Builder
	for line := range strings.Lines(script) {
		if strings.Contains(line, logEnd) {
			out.WriteString("echo \"" + exitMark + "$?\"\n")
		}
		out.WriteString(line)
	}
	return out.String()
}

// sweBenchScript returns a script that applies the patch with the first command that succeeds, and
// runs the tests. It restores the tree after each failed attempt.
func sweBenchScript(run string) string {
	return `patch=` + ChangesFile + `
if [ -e /tests/` + PredictionFile + ` ]; then patch=/tests/` + PredictionFile + `; fi
if ! grep -q '[^[:space:]]' "$patch"; then echo ` + patchEmpty + `; exit 0; fi
export GIT_INDEX_FILE=/tmp/ecp-apply-index
g() { git -c safe.directory='*' -c core.hooksPath=/dev/null "$@"; }
g add -A && tree=$(g write-tree) || exit 1
apply() {
  g apply --reverse --check "$patch" 2>/dev/null && return 0
  for how in 'g apply' 'g apply --3way' 'g apply --reject' 'patch --batch --forward --fuzz=5 -p1 -i'; do
    $how "$patch" && return 0
    g add -A && g read-tree -u --reset "$tree" || return 1
  done
  return 1
}
apply || { echo '` + patchFailed + `'; exit 0; }
unset GIT_INDEX_FILE
` + run
}

// gradeSWEBench applies the patch, runs the tests, and parses their log. The check passes if all tests
// of FailToPass and PassToPass pass.
func (s Spec) gradeSWEBench(ctx context.Context, subject Subject, t Tools) Check {
	const field = "tests"
	if t.Command == nil {
		return Check{Field: field, Err: errors.New("commands are not available here")}
	}
	limit := s.timeLimit(sweBenchTime)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	_, log, err := t.Command(limited, subject.Workspace, sweBenchScript(s.Run))
	switch {
	case ctx.Err() != nil:
		return Check{Field: field, Err: ctx.Err()}
	case limited.Err() != nil:
		return Check{Field: field, Reasoning: fmt.Sprintf("Not resolved: the tests took longer than %s", limit)}
	case err != nil:
		return Check{Field: field, Err: err}
	}
	score, reason := s.judgeLog(log)
	if reason != "" {
		return Check{Field: field, Score: score, Reasoning: "Not resolved: " + reason}
	}
	return Check{Field: field, Passed: true, Score: 1, Reasoning: fmt.Sprintf("Resolved: %d tests pass that did not, and %d still do", len(s.FailToPass), len(s.PassToPass))}
}

// judgeLog returns the score, and the reason why the instance is not resolved, or "" if it is.
func (s Spec) judgeLog(log string) (score float64, reason string) {
	_, rest, started := strings.Cut(log, logStart)
	end := strings.LastIndex(rest, logEnd)
	switch {
	case !started && strings.Contains(log, patchEmpty):
		return 0, "the patch is empty"
	case !started && strings.Contains(log, patchFailed):
		before, _, _ := strings.Cut(log, patchFailed)
		return 0, "the patch cannot be applied: " + quoteShort(lastLines(before))
	case !started || end < 0:
		return 0, "the log has no " + strconv.Quote(map[bool]string{true: logEnd, false: logStart}[started]) + ", so the tests did not run to their end: " + quoteShort(lastLines(log))
	}
	rest = rest[:end]
	results := logParsers()[s.Parser](rest)
	if len(results) == 0 {
		return 0, "the log has no result of a test: " + quoteShort(lastLines(rest))
	}
	failed := slices.ContainsFunc(slices.Collect(maps.Values(results)), func(status string) bool { return status == testFailed || status == testError })
	if code := testExitCode(rest); code != 0 && !failed {
		return 0, fmt.Sprintf("the tests exited with %d although no test failed, so their log is not reliable: %s", code, quoteShort(lastLines(rest)))
	}
	var failing, broken []string
	for _, name := range s.FailToPass {
		if !s.passes(results, name, false) {
			failing = append(failing, name)
		}
	}
	for _, name := range s.PassToPass {
		if !s.passes(results, name, true) {
			broken = append(broken, name)
		}
	}
	var reasons []string
	if len(failing) > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d tests do not pass: %s", len(failing), len(s.FailToPass), namedTests(failing)))
	}
	if len(broken) > 0 {
		reasons = append(reasons, fmt.Sprintf("%d of %d tests passed before: %s", len(broken), len(s.PassToPass), namedTests(broken)))
	} else {
		score = 1 - float64(len(failing))/float64(max(1, len(s.FailToPass)))
	}
	return score, strings.Join(reasons, "; ")
}

// passes reports whether a test passes. passedBefore means a test of PassToPass,
// which may also be skipped.
func (s Spec) passes(results map[string]string, name string, passedBefore bool) bool {
	status, ok := results[name]
	if !ok {
		status, ok = truncatedName(results, name)
	}
	if s.FailOnly {
		return status != testFailed
	}
	return ok && (status == testPassed || status == testXFail || passedBefore && status == testSkipped)
}

// truncatedName returns the result of a test whose name was cut at a space in its parameter, so that
// it has more opening brackets than closing ones. All tests whose names begin with it must have the
// same result.
func truncatedName(results map[string]string, name string) (status string, ok bool) {
	if strings.Count(name, "[") <= strings.Count(name, "]") {
		return "", false
	}
	for full, s := range results {
		if !strings.HasPrefix(full, name) {
			continue
		}
		if ok && s != status {
			return "", false
		}
		status, ok = s, true
	}
	return status, ok
}

var exitLine = pattern.Lazy(`(?m)^` + exitMark + `(\d+)\r?$`)

// testExitCode returns the exit code that a script of WithExitCode printed, or 0.
func testExitCode(log string) int {
	found := exitLine().FindAllStringSubmatch(log, -1)
	if len(found) == 0 {
		return 0
	}
	code, _ := strconv.Atoi(found[len(found)-1][1]) // digits only
	return code
}

// lastLines returns the end of a log, for a message.
func lastLines(log string) string {
	log = strings.TrimSpace(log)
	return strings.ToValidUTF8(log[max(0, len(log)-300):], "")
}

func namedTests(names []string) string {
	more := ""
	if n := len(names) - shownTests; n > 0 {
		names, more = names[:shownTests], fmt.Sprintf(" and %d more", n)
	}
	return strings.Join(names, ", ") + more
}

// checkSWEBench returns the errors in a grader of this type.
func (s Spec) checkSWEBench() (out []Problem) {
	if strings.TrimSpace(s.Run) == "" {
		out = append(out, Problem{"run", "swebench needs a command (run)"})
	}
	if !slices.Contains(LogParsers(), s.Parser) {
		out = append(out, Problem{"parser", fmt.Sprintf("%q must be one of %s", s.Parser, strings.Join(LogParsers(), ", "))})
	}
	if len(s.FailToPass) == 0 {
		out = append(out, Problem{"fail_to_pass", "swebench needs tests that fail before the change and pass after it"})
	}
	return out
}

package grade

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/pattern"
)

// Results of tests in a log.
const (
	testPassed  = "PASSED"
	testFailed  = "FAILED"
	testSkipped = "SKIPPED"
	testError   = "ERROR"
	testXFail   = "XFAIL"
)

// logParsers returns the parsers of test logs, by the value of log_parser in SWE-bench instances. A
// parser returns the results of the tests by name.
func logParsers() map[string]func(log string) map[string]string {
	return map[string]func(string) map[string]string{
		"parse_log_pytest":         pytestLog,
		"parse_log_pytest_options": pytestOptionsLog,
		"parse_log_pytest_v2":      pytestColoredLog,
		"parse_log_django":         djangoLog,
		"parse_log_gotest":         lineParser(goLine(), map[string]string{"PASS": testPassed, "FAIL": testFailed, "SKIP": testSkipped}),
		"parse_log_cargo":          lineParser(cargoLine(), map[string]string{"ok": testPassed, "FAILED": testFailed}),
		"parse_log_jest":           lineParser(jestLine(), map[string]string{"✓": testPassed, "✕": testFailed, "○": testSkipped}),
		"parse_log_maven":          mavenLog,
	}
}

// LogParsers returns the names of the parsers of test logs, sorted.
func LogParsers() []string { return slices.Sorted(maps.Keys(logParsers())) }

// pytestStatus returns a word of pytest's summary if it is a result, and "" otherwise.
func pytestStatus(word string) string {
	switch word {
	case testPassed, testFailed, testSkipped, testError, testXFail:
		return word
	}
	return ""
}

// isSkipSummary reports whether words are a line such as "SKIPPED [1] test_a.py:3: why", which names
// no test.
func isSkipSummary(words []string) bool {
	return words[0] == testSkipped && strings.HasPrefix(words[1], "[")
}

// pytestLog parses summary lines such as "FAILED tests/test_a.py::test_b - why".
func pytestLog(log string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(log) {
		words := strings.Fields(line)
		if len(words) < 2 || line[0] == ' ' || line[0] == '\t' || isSkipSummary(words) {
			continue
		}
		if status := pytestStatus(words[0]); status != "" {
			out[words[1]] = status
		}
	}
	return out
}

// pytestColoredLog is pytestLog for later versions of pytest: names can contain spaces, and the result
// can also be at the end of the line.
func pytestColoredLog(log string) map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(log) {
		line = terminalCodes().ReplaceAllString(line, "")
		if strings.HasPrefix(line, testFailed) {
			line, _, _ = strings.Cut(line, " - ")
		}
		words := strings.Fields(line)
		if len(words) < 2 || line[0] == ' ' || line[0] == '\t' || isSkipSummary(words) {
			continue
		}
		last := len(words) - 1
		if status := pytestStatus(words[0]); status != "" {
			out[strings.Join(words[1:], " ")] = status
		} else if status := pytestStatus(words[last]); status != "" {
			out[strings.Join(words[:last], " ")] = status
		}
	}
	return out
}

// terminalCodes matches the escape sequences for colors, with or without the escape byte.
var terminalCodes = pattern.Lazy(`\x1b?\[[0-9;]*m`)

// pytestOptionsLog is pytestLog for tests whose parameters are absolute paths. It keeps only the last
// element of these paths, because the rest depends on the machine.
func pytestOptionsLog(log string) map[string]string {
	out := map[string]string{}
	for name, status := range pytestLog(log) {
		if base, option, ok := strings.Cut(name, "["); ok && strings.HasSuffix(option, "]") {
			option = strings.TrimSuffix(option, "]")
			if strings.HasPrefix(option, "/") && !strings.HasPrefix(option, "//") && !strings.Contains(option, "*") {
				option = option[strings.LastIndexByte(option, '/'):]
			}
			name = base + "[" + option + "]"
		}
		out[name] = status
	}
	return out
}

// djangoLog parses lines such as "test_a (tests.B) ... ok", and the list of failures at the end. The
// output of a test may be between its name and the result.
func djangoLog(log string) map[string]string {
	out := map[string]string{}
	pending := ""
	for line := range strings.Lines(log) {
		line = strings.TrimSpace(line)
		name, result, named := strings.Cut(line, " ... ")
		if named {
			pending = name
		} else if result = line; strings.HasPrefix(line, "FAIL: ") || strings.HasPrefix(line, "ERROR: ") {
			words := strings.Fields(line)
			if len(words) > 1 {
				out[words[1]] = map[string]string{"FAIL:": testFailed, "ERROR:": testError}[words[0]]
			}
			continue
		}
		last := result
		if at := strings.LastIndex(line, " ... "); at >= 0 {
			last = line[at+len(" ... "):]
		}
		status := ""
		switch last = strings.TrimSpace(last); {
		case last == "ok", last == "OK" && named:
			status = testPassed
		case last == "FAIL":
			status = testFailed
		case last == "ERROR":
			status = testError
		case strings.HasPrefix(last, "skipped") && named:
			status = testSkipped
		}
		if status != "" && pending != "" {
			out[pending], pending = status, ""
		}
	}
	return out
}

// lineParser returns a parser for lines that match pattern, which has the groups status and name. The map
// words gives the result for each text of the group status.
func lineParser(pattern *regexp.Regexp, words map[string]string) func(log string) map[string]string {
	return func(log string) map[string]string {
		out := map[string]string{}
		for line := range strings.Lines(log) {
			m := pattern.FindStringSubmatch(strings.TrimSpace(line))
			if m == nil {
				continue
			}
			if status := words[m[pattern.SubexpIndex("status")]]; status != "" {
				out[m[pattern.SubexpIndex("name")]] = status
			}
		}
		return out
	}
}

var (
	goLine    = pattern.Lazy(`^--- (?P<status>PASS|FAIL|SKIP): (?P<name>.+) \(.+\)$`)
	cargoLine = pattern.Lazy(`^test\s+(?P<name>\S+)\s+\.\.\.\s+(?P<status>\w+)$`)
	jestLine  = pattern.Lazy(`^(?P<status>[✓✕○])\s(?P<name>.+?)(?:\s\(\d+\s*m?s\))?$`)
	mavenTest = pattern.Lazy(`-Dtest=(\S+)`)
)

// mavenLog parses one result for each command with -Dtest=NAME. The test script prints the commands
// with set -x.
func mavenLog(log string) map[string]string {
	out := map[string]string{}
	name := ""
	for line := range strings.Lines(log) {
		if m := mavenTest().FindStringSubmatch(line); m != nil {
			name = m[1]
		}
		switch line = strings.TrimSpace(line); {
		case name == "":
		case strings.HasSuffix(line, "BUILD SUCCESS"):
			out[name] = testPassed
		case strings.HasSuffix(line, "BUILD FAILURE"):
			out[name] = testFailed
		}
	}
	return out
}

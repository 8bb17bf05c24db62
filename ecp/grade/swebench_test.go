package grade

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
)

// Each parser reads the log of its test program, with the same results as that of swebench 5.0.2.
func TestLogParsers(t *testing.T) {
	for parser, c := range map[string]struct {
		log  string
		want map[string]string
	}{
		"parse_log_pytest":         {"PASSED a.py::b\nFAILED a.py::c - assert 1\nSKIPPED [1] a.py:3: no\n  PASSED inner::x\nERROR a.py::d\nXFAIL a.py::e\nXPASS a.py::f\n", map[string]string{"a.py::b": "PASSED", "a.py::c": "FAILED", "a.py::d": "ERROR", "a.py::e": "XFAIL"}},
		"parse_log_pytest_options": {"PASSED a.py::b[/tmp/x/y.txt]\nFAILED a.py::b[//host/z]\nPASSED a.py::b[/a/*]\nPASSED a.py::c\n", map[string]string{"a.py::b[/y.txt]": "PASSED", "a.py::b[//host/z]": "FAILED", "a.py::b[/a/*]": "PASSED", "a.py::c": "PASSED"}},
		"parse_log_pytest_v2":      {"\x1b[32mPASSED\x1b[0m a.py::\x1b[1mb\x1b[0m\n[31mFAILED[0m a.py::c[x y] - x\na.py::d ERROR\na.py::e[f g] PASSED\n", map[string]string{"a.py::b": "PASSED", "a.py::c[x y]": "FAILED", "a.py::d": "ERROR", "a.py::e[f g]": "PASSED"}},
		"parse_log_django":         {"test_a (x.A) ... ok\ntest_b (x.A) ... FAIL\ntest_c (x.A) ... skipped 'no'\ntest_d (x.A) ... printed\nmore\nok\ntest_e (x.A) ... expected failure\nERROR: test_f (x.A)\n", map[string]string{"test_a (x.A)": "PASSED", "test_b (x.A)": "FAILED", "test_c (x.A)": "SKIPPED", "test_d (x.A)": "PASSED", "test_f": "ERROR"}},
		"parse_log_gotest":         {"--- PASS: TestA (0.00s)\n    --- FAIL: TestA/b_c (1.2s)\n--- SKIP: TestD (0.00s)\nok  \tx\t0.1s\n", map[string]string{"TestA": "PASSED", "TestA/b_c": "FAILED", "TestD": "SKIPPED"}},
		"parse_log_cargo":          {"test a::b ... ok\ntest a::c ... FAILED\ntest a::d ... ignored\ntest result: FAILED. 1 passed\n", map[string]string{"a::b": "PASSED", "a::c": "FAILED"}},
		"parse_log_jest":           {"  ✓ adds two (3 ms)\n  ✕ adds (15 s)\n  ✕ slow (1.5 s)\n  ○ skipped one\n", map[string]string{"adds two": "PASSED", "adds": "FAILED", "slow (1.5 s)": "FAILED", "skipped one": "SKIPPED"}},
		"parse_log_maven":          {"+ mvn test -Dtest=A#b\n[INFO] BUILD SUCCESS\n+ mvn test -Dtest=C\n[INFO] BUILD FAILURE\n", map[string]string{"A#b": "PASSED", "C": "FAILED"}},
	} {
		if got := logParsers()[parser](c.log); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", parser, got, c.want)
		}
	}
	if n := len(LogParsers()); n != 8 || !slices.Contains(LogParsers(), "parse_log_pytest") {
		t.Errorf("%d parsers", n)
	}
}

// The results of named tests, the markers and the exit code decide whether an instance is resolved.
func TestJudgeLog(t *testing.T) {
	const start, end = "+ : '>>>>> Start Test Output'\n", "\n+ : '>>>>> End Test Output'\n"
	s := Spec{Type: SWEBench, Parser: "parse_log_pytest", FailToPass: []string{"f1", "f2"}, PassToPass: []string{"p1"}}
	failOnly := s
	failOnly.FailOnly = true
	truncated := s
	truncated.FailToPass = []string{"f[a"}
	for name, c := range map[string]struct {
		spec  Spec
		log   string
		score float64
		want  string
	}{
		"resolved":         {s, start + "PASSED f1\nXFAIL f2\nSKIPPED p1\necp-test-exit: 0" + end, 1, ""},
		"other failures":   {s, start + "PASSED f1\nPASSED f2\nPASSED p1\nFAILED else\necp-test-exit: 1" + end, 1, ""},
		"skipped":          {s, start + "PASSED f1\nSKIPPED f2\nPASSED p1" + end, 0.5, "1 of 2 tests do not pass: f2"},
		"missing":          {s, start + "PASSED f1\nPASSED p1" + end, 0.5, "do not pass: f2"},
		"not kept":         {s, start + "PASSED f1\nPASSED f2\nERROR p1" + end, 0, "1 of 1 tests passed before: p1"},
		"p2p missing":      {s, start + "PASSED f1\nPASSED f2" + end, 0, "passed before: p1"},
		"no end":           {s, start + "PASSED f1\nPASSED f2\nPASSED p1\n", 0, `no ">>>>> End Test Output"`},
		"no start":         {s, "PASSED f1\nPASSED f2\nPASSED p1\n", 0, `no ">>>>> Start Test Output"`},
		"outside":          {s, "PASSED f1\nPASSED f2\nPASSED p1\n" + start + end, 0, "no result of a test"},
		"broke off":        {s, start + "PASSED f1\nPASSED f2\nPASSED p1\necp-test-exit: 2" + end, 0, "exited with 2 although no test failed"},
		"not applied":      {s, "error\n>>>>> Patch Apply Failed\n", 0, "cannot be applied: 'error'"},
		"a test prints it": {s, start + "PASSED f1\nPASSED f2\nPASSED p1\n>>>>> Patch Apply Failed" + end, 1, ""},
		"fail only":        {failOnly, start + "PASSED x" + end, 1, ""},
		"fail only fails":  {failOnly, start + "FAILED f1\nFAILED p1" + end, 0, "passed before: p1"},
		"truncated":        {truncated, start + "PASSED f[a\nPASSED f[a]\nPASSED p1" + end, 1, ""},
		"truncated, both":  {truncated, start + "PASSED f[ab]\nFAILED f[ac]\nPASSED p1" + end, 0, "do not pass: f[a"},
		"truncated, one":   {truncated, start + "PASSED f[ab]\nPASSED f[ac]\nPASSED p1" + end, 1, ""},
	} {
		score, reason := c.spec.judgeLog(c.log)
		if score != c.score || (reason == "") != (c.want == "") || !strings.Contains(reason, c.want) {
			t.Errorf("%s: %g, %q", name, score, reason)
		}
	}
}

// The exit code is that of the command before the end of the tests. Tests without an end in time are
// not resolved.
func TestSWEBenchScript(t *testing.T) {
	if got := WithExitCode("a\n: '>>>>> Start Test Output'\nb\n: '>>>>> End Test Output'\nc\n"); got != "a\n: '>>>>> Start Test Output'\nb\necho \"ecp-test-exit: $?\"\n: '>>>>> End Test Output'\nc\n" {
		t.Error(got)
	}
	s := Spec{Type: SWEBench, Run: "true", Parser: "parse_log_pytest", FailToPass: []string{"f"}, TimeoutS: 0.01}
	c := s.Grade(t.Context(), Subject{}, Tools{Command: func(ctx context.Context, _, _ string) (int, string, error) {
		<-ctx.Done()
		return -1, "", ctx.Err()
	}})
	if c.Passed || c.Err != nil || !strings.Contains(c.Reasoning, "took longer than 10ms") {
		t.Errorf("%+v", c)
	}
}

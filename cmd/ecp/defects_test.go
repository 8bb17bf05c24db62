package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// TestDefects: each comment states a defect of the reference (docs/ecp-defects.md, same numbers); the
// subtest shows that ecp does not have it. Defects of the reference's agents are in ecp/agent.
func TestDefects(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)

	// reset is never sent, so servers keep the state of earlier scenarios.
	t.Run("01", func(t *testing.T) {
		a := newHTTPAgent(t)
		_, r := evaluateManifest(t, manifest(t, a.URL+"/ecp", scenario("a", has("1"), "x")+scenario("b", has("x 1"), "x")))
		if r.Passed != 2 || !slices.Equal(a.methods(), []string{"agent/initialize", "agent/reset", "agent/step", "agent/initialize", "agent/reset", "agent/step"}) {
			t.Errorf("%d passed; %v", r.Passed, a.methods())
		}
	})

	// One failed call loses the run, and all results so far.
	t.Run("02", func(t *testing.T) {
		dir := t.TempDir()
		html := filepath.Join(dir, "r.html")
		out, r := evaluateManifest(t, manifest(t, agentTarget(t, "fail:bad"), scenario("a", has("x"), "x")+scenario("b", has("bad"), "bad")+scenario("c", has("y"), "y")), "--report", html)
		if got := statuses(r); out.code != exitError || !slices.Equal(got, []string{"passed", "error", "passed"}) {
			t.Errorf("exit %d, %v", out.code, got)
		}
		if page, err := os.ReadFile(html); err != nil || !bytes.Contains(page, []byte("it broke")) {
			t.Errorf("%v", err)
		}
	})

	// Ids repeat, and a late answer counts for the next step.
	t.Run("03", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "twice"), `
  - name: a
    steps:
      - {input: one, graders: [{type: text_match, condition: equals, value: one 1}]}
      - {input: two, graders: [{type: text_match, condition: equals, value: two 2}]}
      - {input: three, graders: [{type: text_match, condition: equals, value: three 3}]}
`))
		if r.Passed != 3 {
			t.Errorf("%+v", r.Scenarios[0])
		}
		_, r = evaluateManifest(t, manifest(t, agentTarget(t, "request"), scenario("a", has(`"id":`), "x", "y")+scenario("b", has(`"id":`), "x")))
		seen := map[string]bool{}
		for _, s := range r.Scenarios {
			for _, st := range s.Steps {
				var req struct{ ID json.RawMessage }
				if err := json.Unmarshal([]byte(*st.Output), &req); err != nil || seen[string(req.ID)] {
					t.Errorf("%s: %v", *st.Output, err)
				}
				seen[string(req.ID)] = true
			}
		}
	})

	// After a timeout, the next answers are lost too.
	t.Run("04", func(t *testing.T) {
		out, r := evaluateManifest(t, manifest(t, agentTarget(t, "hang-once:bad"), `
  - name: a
    steps:
      - {input: bad, constraints: {timeout_s: 0.3}, graders: [{type: text_match, condition: contains, value: bad}]}
`+scenario("b", has("x 1"), "x")))
		if got := statuses(r); out.code != exitError || !slices.Equal(got, []string{"error", "passed"}) || r.Errors[0].Kind != "timeout" {
			t.Errorf("exit %d, %v, %+v", out.code, got, r.Errors)
		}
	})

	// stderr is never read: 64 KiB of output block the agent, and the output is lost.
	t.Run("05", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "stderr"), scenario("a", has("x"), "x")))
		if r.Passed != 1 {
			t.Errorf("%+v", r.Errors)
		}
		_, r = evaluateManifest(t, manifest(t, agentTarget(t, "crash"), scenario("a", has("x"), "x")))
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Stderr, "out of memory") || !strings.Contains(r.Errors[0].Message, "exit code 9") {
			t.Errorf("%+v", r.Errors)
		}
	})

	// A JSON object on stdout that is not an answer ends the run.
	t.Run("06", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "objects"), scenario("a", has("x"), "x")))
		if r.Passed != 1 || len(r.Scenarios[0].Notes) == 0 {
			t.Errorf("%+v", r.Scenarios[0])
		}
	})

	// The decoding of output depends on the locale.
	t.Run("07", func(t *testing.T) {
		t.Setenv("LC_ALL", "C")
		t.Setenv("LANG", "C")
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "utf8"), scenario("a", "{type: text_match, condition: equals, value: grün 日本}", "x")))
		if r.Passed != 1 {
			t.Errorf("%+v", r.Scenarios[0])
		}
		_, r = evaluateManifest(t, manifest(t, agentTarget(t, "latin1"), scenario("a", "{type: text_match, condition: regex, pattern: ^gr.n$}", "x")))
		if r.Passed != 1 {
			t.Errorf("%+v", r.Scenarios[0])
		}
	})

	// Agents outlive the run.
	t.Run("08", func(t *testing.T) {
		pids := filepath.Join(t.TempDir(), "pids")
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "deaf", pids), scenario("a", has("x"), "x")))
		if r.Passed != 1 {
			t.Errorf("%+v", r.Errors)
		}
		checkExited(t, pids)
	})

	// Exit codes. Like the reference, ecp uses 2 for failed checks and for wrong usage; an error
	// has exit code 1. For wrong usage, stderr begins with ecp, and there is no report
	// (docs/ecp-runtime.md).
	t.Run("09", func(t *testing.T) {
		m := manifest(t, agentTarget(t, "ok"), scenario("a", has("nothing of that"), "x"))
		for _, c := range []struct {
			code int
			args []string
		}{
			{exitFailed, []string{"run", "--manifest", m}},
			{0, []string{"run", "--manifest", m, "--no-fail-on-error"}},
			{exitError, []string{"run", "--manifest", m + ".missing"}},
		} {
			if r := invoke(t, c.args...); r.code != c.code || strings.Contains(r.err, " checks passed") != (c.code != exitError) {
				t.Errorf("%v: exit %d, want %d: %s", c.args, r.code, c.code, r.err)
			}
		}
		for _, args := range [][]string{
			{"run"},
			{"run", "--manifest", m, "--bogus"},
			{"run", "--manifest", m, "--timeout", "0"},
			{"run", "--manifest", m, "--timeout", "nan"},
			{"run", "--manifest", m, "--compat", "other"},
			{"validate"},
			{"validate", m, "other.yaml"},
			{"validate", "--manifest", m, "other.yaml"},
			{"conformance"},
			{"bogus"},
			nil,
		} {
			if r := invoke(t, args...); r.code != usage.ExitCode || !strings.HasPrefix(r.err, "ecp") || strings.Contains(r.err, " checks passed") || r.out != "" {
				t.Errorf("%v: exit %d: %q, %s", args, r.code, r.out, r.err)
			}
		}
	})

	// A manifest that checks nothing passes.
	t.Run("10", func(t *testing.T) {
		for name, scenarios := range map[string]string{"scenarios": "  []\n", "steps": "  - {name: a, steps: []}\n", "graders": "  - {name: a, steps: [{input: x}]}\n"} {
			m := manifest(t, "/does/not/exist", scenarios)
			if r := invoke(t, "run", "--manifest", m); r.code != exitError || !strings.Contains(r.err, "nothing") && !strings.Contains(r.err, "needs steps") {
				t.Errorf("no %s: exit %d: %s", name, r.code, r.err)
			}
			if r := invoke(t, "validate", m); name == "steps" && r.code != exitError || name != "steps" && (r.code != 0 || !strings.Contains(r.err, "warning")) {
				t.Errorf("no %s: exit %d: %s", name, r.code, r.err)
			}
		}
		if r := invoke(t, "run", "--compat", "reference", "--manifest", manifest(t, "/does/not/exist", "  []\n")); r.code != 0 {
			t.Errorf("as the reference: exit %d: %s", r.code, r.err)
		}
	})

	// An empty answer fails every check, even `equals: ""`.
	t.Run("11", func(t *testing.T) {
		m := manifest(t, agentTarget(t, "empty"), scenario("a", `{type: text_match, condition: does_not_contain, value: secret}, {type: text_match, condition: equals, value: ""}, {type: text_match, condition: regex, pattern: ^$}`, "x"))
		_, r := evaluateManifest(t, m)
		if r.Passed != 3 {
			t.Errorf("%+v", r.Scenarios[0].Steps[0].Checks)
		}
		if _, r = evaluateManifest(t, m, "--compat", "reference"); r.Passed != 0 || r.Scenarios[0].Steps[0].Checks[0].Reasoning != "Text was empty" {
			t.Errorf("as the reference: %+v", r.Scenarios[0].Steps[0].Checks)
		}
	})

	// Passed and failed checks have the same reasons.
	t.Run("12", func(t *testing.T) {
		for _, condition := range []string{"condition: contains, value: %s", "condition: equals, value: %s 1", "condition: regex, pattern: ^%s", "condition: does_not_contain, value: %s"} {
			yes, no := "good", "bad"
			m := manifest(t, agentTarget(t, "ok"), scenario("a", fmt.Sprintf("{type: text_match, "+condition+"}, {type: text_match, "+condition+"}", yes, no), "good"))
			_, r := evaluateManifest(t, m)
			checks := r.Scenarios[0].Steps[0].Checks
			if checks[0].Passed == checks[1].Passed || strings.ReplaceAll(checks[0].Reasoning, yes, no) == checks[1].Reasoning {
				t.Errorf("%+v", checks)
			}
		}
	})

	// An invalid pattern is detected too late, or matching never ends.
	t.Run("13", func(t *testing.T) {
		if r := invoke(t, "validate", manifest(t, "x", scenario("a", "{type: text_match, condition: regex, pattern: (}", "x"))); r.code != exitError || !strings.Contains(r.err, "manifest.yaml:8:") || !strings.Contains(r.err, "graders.0.pattern") {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
		out, r := evaluateManifest(t, manifest(t, agentTarget(t, "say:"+strings.Repeat("a", 40)+"!"), scenario("a", "{type: text_match, condition: regex, pattern: ^(a+)+$}", "x")))
		if out.code != exitError || r.Errors[0].Kind != "grader" || !strings.Contains(r.Errors[0].Message, "longer than") {
			t.Errorf("exit %d: %+v", out.code, r.Errors)
		}
	})

	t.Run("14", testJudge)

	// Tool calls cannot be counted, forbidden, ordered or compared in depth.
	t.Run("15", func(t *testing.T) {
		m := manifest(t, agentTarget(t, "ok"), `
  - name: a
    steps:
      - input: x
        graders: [{type: tool_usage, tool_name: calc, arguments: {x: true}}, {type: tool_usage, arguments: {deep: {a: 1}}}]
        constraints:
          checks:
            - {type: tool_usage, tool_name: rm, not: true}
            - {type: tool_usage, arguments: {deep: {a: 1}}, match: deep}
            - {type: tool_usage, arguments: {x: "^1$"}, match: regex}
            - {type: tool_count, tool_name: calc, min: 1, max: 1}
            - {type: trajectory, tools: [calc]}
            - {type: trajectory, tools: [calc, calc], mode: subset}
            - {type: tool_count, max: 0}
            - {type: trajectory, tools: [other], mode: superset}
`)
		_, r := evaluateManifest(t, m)
		want := []bool{false, false, true, true, true, true, true, true, false, false}
		if diff := cmp.Diff(want, verdicts(r)); diff != "" {
			t.Error(diff)
		}
		if _, r = evaluateManifest(t, m, "--compat", "reference"); !cmp.Equal(verdicts(r), []bool{true, false}) {
			t.Errorf("as the reference: %v", verdicts(r))
		}
	})

	// constraints have no effect.
	t.Run("16", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "status:paused"), `
  - name: a
    steps:
      - input: x
        constraints: {forbidden_tools: [calc], max_tool_calls: 0, max_tokens: 14, max_cost_usd: 0.2, checks: [{type: status, status: paused}]}
  - name: b
    steps:
      - input: x
        constraints: {forbidden_tools: [rm], max_tool_calls: 1, max_tokens: 15, max_cost_usd: 0.25, checks: [{type: status, status: done}]}
`))
		if diff := cmp.Diff([]bool{true, false, false, false, false, false, true, true, true, true}, verdicts(r)); diff != "" {
			t.Error(diff)
		}
	})

	// Reports lack statuses, errors, times and versions.
	t.Run("17", func(t *testing.T) {
		html := filepath.Join(t.TempDir(), "r.html")
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "fail:bad"), scenario("a", has("<b>"), "<b>")+scenario("c", has("x"), "bad")), "--report", html)
		st := r.Scenarios[0].Steps[0]
		if r.RunID == "" || r.StartedAt.IsZero() || r.Runtime.Version == "" || r.Agent.Name != "test" || r.Status != "error" || len(r.Errors) != 1 ||
			st.Status != "done" || st.Usage == nil || *st.CostUSD != 0.25 || st.Timing.TotalMS != 7 || *st.Logs != "log of <b>" || r.Usage.InputTokens != 10 {
			t.Errorf("%+v\n%+v", r, st)
		}
		page, err := os.ReadFile(html)
		for _, want := range []string{"1 / 1", "public_output", "log of &lt;b&gt;", "1.00", "it broke"} {
			if err != nil || !bytes.Contains(page, []byte(want)) {
				t.Errorf("%v: the page lacks %q", err, want)
			}
		}
		if bytes.Contains(page, []byte("<b> 1")) {
			t.Error("output is markup in the page")
		}
	})

	t.Run("18", testTrendDefects)

	// The schema and the program disagree.
	t.Run("19", testSchemas)

	t.Run("20", testHTTPDefects)

	// Invalid options end in a stack trace, and an agent that cannot start is not detected.
	t.Run("21", func(t *testing.T) {
		for _, bad := range []string{"0", "-1", "nan", "inf", "soon"} {
			if r := invoke(t, "conformance", "--target", "x", "--timeout", bad); r.code != usage.ExitCode || strings.Contains(r.err, "goroutine") {
				t.Errorf("%s: exit %d: %s", bad, r.code, r.err)
			}
		}
		agent := newHTTPAgent(t)
		guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer k" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			agent.Config.Handler.ServeHTTP(w, r)
		}))
		defer guarded.Close()
		for header, want := range map[string]int{"Authorization: Bearer k": 0, "Authorization: Bearer x": exitError, "nothing": usage.ExitCode} {
			if r := invoke(t, "conformance", "--target", guarded.URL, "--timeout", "60", "--header", header); r.code != want {
				t.Errorf("%s: exit %d: %s%s", header, r.code, r.out, r.err)
			}
		}
		r := invoke(t, "conformance", "--target", "/does/not/exist", "--json", "--timeout", "60")
		var c struct {
			Conformant bool
			Total      int
			Checks     []struct{ Message string }
		}
		if err := json.Unmarshal([]byte(r.out), &c); err != nil || r.code != exitError || c.Conformant || c.Total != 3 || !strings.Contains(c.Checks[0].Message, "127") {
			t.Errorf("exit %d: %v %s", r.code, err, r.out)
		}
	})

	// A manifest works from only one directory.
	t.Run("22", func(t *testing.T) {
		m := manifest(t, "sh agent.sh", scenario("a", has("from beside"), "x"))
		write(t, filepath.Join(filepath.Dir(m), "agent.sh"), "exec "+agentTarget(t, "say:from beside")+"\n")
		t.Chdir(t.TempDir())
		if _, r := evaluateManifest(t, m); r.Passed != 1 {
			t.Errorf("%+v", r.Errors)
		}
		write(t, "agent.sh", "exec "+agentTarget(t, "say:from here")+"\n")
		if out, r := evaluateManifest(t, m); r.Passed != 0 || !strings.Contains(out.err, "the one in the current directory is used") {
			t.Errorf("%+v %s", r.Scenarios, out.err)
		}
	})

	// The error for an invalid result does not name the scenario and step.
	t.Run("23", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "status:finished"), scenario("which one", has("x"), "x")))
		if e := r.Errors[0]; e.Scenario != "which one" || e.Step != 1 || e.Kind != "protocol" || !strings.Contains(e.Message, "finished") {
			t.Errorf("%+v", e)
		}
	})

	// config cannot be set.
	t.Run("24", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), `
  - name: a
    steps:
      - input: x
        constraints: {scenario: {config: {model: p/two, budgets: {timeout_s: 5}}}}
        graders: [{type: text_match, condition: contains, value: x}]
`), "--config", "model=p/one", "--config", "tools.allow=[\"read_file\"]", "--config", "seed=7")
		want := map[string]any{"model": "p/two", "budgets": map[string]any{"timeout_s": 5.0}, "tools": map[string]any{"allow": []any{"read_file"}}, "seed": 7.0}
		if diff := cmp.Diff(want, options(t, r.Agent, "config")); diff != "" {
			t.Error(diff)
		}
	})

	// A missing interpreter ends the reference's inspector.
	t.Run("30", func(t *testing.T) {
		m := manifest(t, "no-such-python agent.py", scenario("a", has("x"), "x"))
		out, r := evaluateManifest(t, m, "--matrix", "target=no-such-python agent.py,/no/such/interpreter x,"+agentTarget(t, "ok"))
		if got := statuses(r); out.code != exitError || !slices.Equal(got, []string{"error", "error", "passed"}) || !strings.Contains(r.Errors[0].Message, "no-such-python") {
			t.Errorf("exit %d: %v %+v", out.code, got, r.Errors)
		}
		if c := invoke(t, "conformance", "--target", "no-such-python agent.py", "--timeout", "60"); c.code != exitError || !strings.Contains(c.out, "no-such-python") {
			t.Errorf("exit %d: %s", c.code, c.out)
		}
	})

	// An agent that cannot be initialised keeps running.
	t.Run("31 leak", func(t *testing.T) {
		pids := filepath.Join(t.TempDir(), "pids")
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "nameless", pids), scenario("a", has("x"), "x")))
		if len(r.Errors) != 1 || r.Errors[0].Kind != "protocol" || !strings.Contains(r.Errors[0].Message, "name") {
			t.Errorf("%+v", r.Errors)
		}
		checkExited(t, pids)
	})

	// The reference's inspector parses YAML by hand: it cuts quoted strings at #, and does not
	// support block scalars, flow collections or anchors.
	t.Run("31", func(t *testing.T) {
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), `
  - name: "a # b"
    steps:
      - input: &text |
          first # line
          second
        graders:
          - {type: text_match, condition: equals, value: "first # line\nsecond\n 1"}
          - <<: {type: text_match, condition: contains}
            value: *text
`))
		if r.Passed != 2 || r.Scenarios[0].Name != "a # b" {
			t.Errorf("%+v", r.Scenarios[0])
		}
	})

	// The reference's versions differ from page to page. Here, eca and ecp have the same version.
	t.Run("32", func(t *testing.T) {
		source, err := os.ReadFile("../eca/main.go")
		if err != nil || !bytes.Contains(source, []byte(`var version = "`+version+`"`)) {
			t.Errorf("%v: eca's version is not %s", err, version)
		}
		if r := invoke(t, "--version"); r.out != "ecp "+version+"\n" {
			t.Errorf("%q", r.out)
		}
	})
}

func statuses(r *report.Report) (out []string) {
	for _, s := range r.Scenarios {
		out = append(out, s.Status)
	}
	return out
}

func verdicts(r *report.Report) (out []bool) {
	for _, s := range r.Scenarios {
		for _, st := range s.Steps {
			for _, c := range st.Checks {
				out = append(out, c.Passed)
			}
		}
	}
	return out
}

// httpAgent is an HTTP agent that records the methods it is called with.
type httpAgent struct {
	*httptest.Server
	received chan string
}

func newHTTPAgent(t *testing.T) *httpAgent {
	t.Helper()
	a := &httpAgent{received: make(chan string, 100)}
	steps := 0
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req agentRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		a.received <- req.Method
		result := `{"name":"web","capabilities":{}}`
		switch req.Method {
		case "agent/reset":
			steps, result = 0, "true"
		case "agent/step":
			steps++
			result = fmt.Sprintf(`{"status":"done","public_output":"%s %d"}`, req.Params.Input, steps)
		}
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, req.ID, result)
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *httpAgent) methods() (out []string) {
	for {
		select {
		case m := <-a.received:
			out = append(out, m)
		default:
			return out
		}
	}
}

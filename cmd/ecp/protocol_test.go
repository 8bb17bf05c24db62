package main

import (
	"encoding/json"
	"fmt"
	"io"
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
)

// greeting is a target whose agent gives this answer to agent/initialize.
func greeting(t *testing.T, answer string) string { return agentTarget(t, "init:"+answer) }

// agent1 is an agent's result of agent/initialize with a version, in JSON, and capabilities.
func agent1(version, capabilities string) string {
	if version != "" {
		version = `,"protocol_version":` + version
	}
	return `"result":{"name":"a"` + version + `,"capabilities":` + capabilities + `}`
}

// outcomes are the outcomes of the steps of all scenarios.
func outcomes(r *report.Report) (out []string) {
	for _, s := range r.Scenarios {
		for _, st := range s.Steps {
			out = append(out, st.Outcome)
		}
	}
	return out
}

// An agent with another version of the protocol ends the run before any step. An agent with a wrong
// answer ends only its scenario. An older agent is supported.
func TestAgentVersions(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	const huge = "99999999999999999999999"
	for answer, want := range map[string]struct {
		agreed, kind string // kind: of the error, empty for none
		stops        bool
	}{
		agent1(``, `{}`):                   {agreed: "0.1"},
		agent1(`"1.0"`, `{"x-acme.t":{}}`): {agreed: "1.0"},
		agent1(`"1.7"`, `{}`):              {agreed: "1.0"},
		agent1(`"1.`+huge+`"`, `{}`):       {agreed: "1.0"},
		agent1(`"2.0"`, `{}`):              {kind: "version", stops: true},
		agent1(`"0.9"`, `{}`):              {kind: "version", stops: true},
		`"error":{"code":-32001,"message":"VERSION_UNSUPPORTED: no"}`: {kind: "version", stops: true},
		`"error":{"code":-32001}`:                                     {kind: "version", stops: true},
		agent1(`null`, `{}`):                                          {kind: "protocol"},
		agent1(`"v1"`, `{}`):                                          {kind: "protocol"},
		agent1(`1.0`, `{}`):                                           {kind: "protocol"},
		agent1(`"1.0"`, `{"usage":true}`):                             {kind: "protocol"},
		agent1(`"1.0"`, `{"":{}}`):                                    {kind: "protocol"},
		agent1(`"1.0"`, `[]`):                                         {kind: "protocol"},
		`"error":{"code":-32000,"message":"x"}`:                       {kind: "rpc"},
	} {
		t.Run(answer, func(t *testing.T) {
			three := scenario("a", has("x"), "x", "x") + scenario("b", has("x"), "x") + scenario("c", has("x"), "x")
			out, r := evaluateManifest(t, manifest(t, greeting(t, answer), three))
			if want.kind == "" {
				warned := strings.Count(out.err, "names no protocol version")
				if out.code != 0 || r.Audit.Agent.ProtocolVersion != want.agreed || r.ExitReason != "ok" || (warned == 1) != (want.agreed == "0.1") || warned > 1 || len(r.Warnings) != warned {
					t.Errorf("exit %d, %s, %+v: %s", out.code, r.ExitReason, r.Audit.Agent, out.err)
				}
				return
			}
			if diff := cmp.Diff([]string{"skipped", "skipped", "skipped", "skipped"}, outcomes(r)); diff != "" || out.code != exitError || len(r.Errors) != 3 {
				t.Errorf("exit %d, %+v, %s", out.code, r.Errors, diff)
			}
			for i, e := range r.Errors {
				if e.Kind != want.kind || strings.HasPrefix(e.Message, "not run") != (want.stops && i > 0) || want.stops != strings.Contains(e.Message, "VERSION_UNSUPPORTED (-32001)") {
					t.Errorf("%+v", e)
				}
			}
			if reason := map[string]string{"rpc": "agent_error"}[want.kind]; r.ExitReason != "protocol_error" && r.ExitReason != reason {
				t.Errorf("%s", r.ExitReason)
			}
			if out, _ := evaluateManifest(t, manifest(t, greeting(t, answer), three), "--compat", "reference"); out.code != exitFailed {
				t.Errorf("as the reference: exit %d", out.code)
			}
		})
	}
	t.Run("params", func(t *testing.T) {
		seen := filepath.Join(t.TempDir(), "seen")
		target := fmt.Sprintf("tee '%s' | %s", seen, agentTarget(t, "ok"))
		if _, r := evaluateManifest(t, manifest(t, target, scenario("a", has("x"), "x"))); r.Passed != 1 {
			t.Errorf("%+v", r.Errors)
		}
		if text, err := os.ReadFile(seen); err != nil || !strings.HasPrefix(string(text), `{"jsonrpc":"2.0","method":"agent/initialize","params":{"protocol_version":"1.0","config":{}},"id":`) {
			t.Errorf("%s, %v", text, err)
		}
	})
}

// Over HTTP, an error with the code VERSION_UNSUPPORTED is a refused version although its status is
// that of an error. Other answers with such a status are transport errors.
func TestAgentVersionOverHTTP(t *testing.T) {
	isolateEnvironment(t)
	for code, want := range map[int]string{-32001: "version", -32000: "http"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var call agentRequest
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, &call)
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"no"}}`, call.ID, code)
		}))
		_, r := evaluateManifest(t, manifest(t, server.URL+"/ecp", scenario("a", has("x"), "x")))
		server.Close()
		if len(r.Errors) != 1 || r.Errors[0].Kind != want {
			t.Errorf("%d: %+v", code, r.Errors)
		}
	}
}

// Capabilities that graders rely on have to be declared: a warning names missing ones, and a
// manifest that requires them is not run.
func TestCapabilities(t *testing.T) {
	isolateEnvironment(t)
	const (
		tools    = `{type: tool_usage, field: evaluation_context, tool_name: calc}`
		evidence = `{type: text_match, field: private_thought, condition: contains, value: saw}`
	)
	for _, c := range []struct{ declared, graders, missing string }{
		{`{}`, tools, "tool_calls (for tool_usage)"},
		{`{}`, evidence, "evaluation_context (for text_match on private_thought)"},
		{`{"tool_calls":{}}`, tools + ", " + evidence, "evaluation_context"},
		{`{"tool_calls":{},"evaluation_context":{}}`, tools + ", " + evidence, ""},
		{`{}`, has("x"), ""},
	} {
		target := greeting(t, agent1(`"1.0"`, c.declared))
		scenarios := scenario("a", has("x"), "x") + scenario("b", c.graders, "x")
		out, r := evaluateManifest(t, manifest(t, target, scenarios))
		if out.code != 0 || strings.Count(out.err, "does not declare") != min(len(c.missing), 1) || !strings.Contains(out.err, c.missing) || len(r.Warnings) != min(len(c.missing), 1) {
			t.Errorf("%s, %s: exit %d: %s", c.declared, c.graders, out.code, out.err)
		}
		required := manifest(t, target, scenarios)
		text, err := os.ReadFile(required)
		if err != nil {
			t.Fatal(err)
		}
		write(t, required, "require_capabilities: yes\n"+string(text))
		out, r = evaluateManifest(t, required)
		switch {
		case c.missing == "":
			if out.code != 0 {
				t.Errorf("%s: exit %d: %s", c.declared, out.code, out.err)
			}
		case out.code != exitError || r.ExitReason != "protocol_error" || !slices.Equal(outcomes(r), []string{"skipped", "skipped"}) || r.Audit.Agent.Name != "a" ||
			!strings.Contains(r.Errors[0].Message, c.missing) || !strings.Contains(r.Errors[0].Message, "require_capabilities"):
			t.Errorf("%s: exit %d, %s, %+v", c.declared, out.code, r.ExitReason, r.Errors)
		}
	}
	for value, want := range map[string]int{"true": 0, "false": 0, `"on"`: 0, "1": 0, "0.0": 0, "null": 1, "2": 1, "[]": 1, `"maybe"`: 1} {
		m := manifest(t, "x", scenario("a", has("x"), "x"))
		text, err := os.ReadFile(m)
		if err != nil {
			t.Fatal(err)
		}
		write(t, m, "require_capabilities: "+value+"\n"+string(text))
		if r := invoke(t, "validate", m); r.code != want {
			t.Errorf("require_capabilities: %s: exit %d: %s", value, r.code, r.err)
		}
	}
}

// A failed step skips the later ones, and the next scenario runs. The report and the audit record
// have the outcome of each step.
func TestDegrade(t *testing.T) {
	isolateEnvironment(t)
	audit := filepath.Join(t.TempDir(), "audit.json")
	m := manifest(t, agentTarget(t, "fail:bad"), scenario("a", has("x")+", "+has("o"), "ok", "bad", "ok", "ok")+scenario("b", has("good"), "good"))
	out, r := evaluateManifest(t, m, "--audit-out", audit)
	if diff := cmp.Diff([]string{"ok", "failed", "skipped", "skipped", "ok"}, outcomes(r)); diff != "" || out.code != exitError || r.ExitReason != "agent_error" {
		t.Errorf("exit %d, %s, %s", out.code, r.ExitReason, diff)
	}
	for i, st := range r.Scenarios[0].Steps[1:] {
		c := st.Checks[0]
		if len(st.Checks) != 1 || c.Type != "execution" || c.Field != "agent" || c.Passed || c.Score != 0 || !strings.Contains(c.Reasoning, "it broke") ||
			strings.HasPrefix(c.Reasoning, "agent_error: ") != (i == 0) || st.Output != nil || st.Error == nil || (st.DurationMS == 0) != (i > 0) {
			t.Errorf("step %d: %+v", i+2, st)
		}
	}
	if r.Total != 3 || r.Passed != 2 || r.Failed != 1 { // of the two steps that were carried out
		t.Errorf("%d of %d", r.Passed, r.Total)
	}
	var alone report.Audit
	text, err := os.ReadFile(audit)
	if err == nil {
		err = json.Unmarshal(text, &alone)
	}
	if diff := cmp.Diff(*r.Audit, alone); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	want := report.AuditTotals{Scenarios: 2, StepsPlanned: 5, StepsExecuted: 2, StepsFailed: 1, StepsSkipped: 2, ChecksPassed: 2, ChecksTotal: 3, ChecksFailed: 1}
	if diff := cmp.Diff(want, alone.Totals); diff != "" {
		t.Error(diff)
	}
	if !strings.HasSuffix(alone.StartedAt, "Z") || alone.Manifest.Digest == nil || len(*alone.Manifest.Digest) != len("sha256:")+64 || string(alone.Usage["total_tokens"]) != "30" || alone.Latency.Max <= 0 {
		t.Errorf("%s", text)
	}
	if out := invoke(t, "trend", audit); out.code != exitError || !strings.Contains(out.err, "skipped: "+audit) {
		t.Errorf("trend of an audit record: exit %d: %s", out.code, out.err)
	}
	out, r = evaluateManifest(t, m, "--compat", "reference") // the reference counts them
	if out.code != exitFailed || r.Total != 6 || r.Failed != 4 {
		t.Errorf("as the reference: exit %d, %d of %d failed", out.code, r.Failed, r.Total)
	}
	if out, _ = evaluateManifest(t, m, "--compat", "reference", "--no-fail-on-error"); out.code != 0 {
		t.Errorf("as the reference, forgiving: exit %d", out.code)
	}
}

// Each way to fail has its exit reason.
func TestExitReasons(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	for mode, want := range map[string]string{
		"fail:x": "agent_error", "crash": "transport_error", "exit": "transport_error", "status:x": "protocol_error", `id:"{}"`: "protocol_error", "hang": "timeout",
		`answer:,"error":null`: "protocol_error", `answer:,"error":{"code":1.5,"message":"m"}`: "protocol_error", `answer:,"error":{"code":true,"message":"m"}`: "protocol_error",
		`answer:,"result":{"status":"done"},"error":{"code":1,"message":"m"}`: "protocol_error", `answer:,"error":{"code":-32001,"message":"m"}`: "protocol_error",
		`answer:,"result":{"status":["done"]}`: "protocol_error", `usage:{"input_tokens":-1}`: "protocol_error", `usage:{"output_tokens":1.0}`: "protocol_error",
		`usage:{"input_tokens":9007199254740993,"x":-1}`: "ok", "ok": "ok",
	} {
		limit := "60"
		if want == "timeout" {
			limit = "2"
		}
		_, r := evaluateManifest(t, manifest(t, agentTarget(t, mode), scenario("a", has("x"), "x")+scenario("b", has("x"), "x")), "--timeout", limit)
		if r.ExitReason != want || len(r.Scenarios) != 2 || r.Scenarios[1].ExitReason != want {
			t.Errorf("%s: %s, %+v", mode, r.ExitReason, r.Errors)
		}
		if text := string(r.Scenarios[0].Steps[0].Usage["input_tokens"]); strings.Contains(mode, "9007199254740993") && text != "9007199254740993" {
			t.Errorf("%s became %s", mode, text)
		}
	}
}

// The time limit of the whole run also limits the running call.
func TestMaxDuration(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "hang-once:stop"), scenario("a", has("x"), "stop", "x")+scenario("b", has("x"), "x"))
	out, r := evaluateManifest(t, m, "--max-duration", "2", "--timeout", "100")
	if out.code != exitError || r.ExitReason != "max_duration_exceeded" || len(r.Scenarios) != 2 || r.Scenarios[1].ExitReason != "max_duration_exceeded" ||
		*r.Audit.Limits.MaxDuration != 2 || r.Audit.Limits.RPCTimeout != 100 || !slices.Equal(outcomes(r)[1:], []string{"skipped", "skipped"}) {
		t.Errorf("exit %d, %s, %v, %+v", out.code, r.ExitReason, outcomes(r), r.Errors)
	}
	for value, code := range map[string]int{"0": 1, "-1": 1, "inf": 1, "nan": 1, "soon": 2} {
		if r := invoke(t, "run", m, "--max-duration="+value); r.code != code {
			t.Errorf("--max-duration=%s: exit %d: %s", value, r.code, r.err)
		}
	}
	ok := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	for value, code := range map[string]int{"": 0, "100": 0, "0": 1, "soon": 1} {
		t.Setenv("ECP_MAX_DURATION", value)
		if r := invoke(t, "run", ok); r.code != code {
			t.Errorf("ECP_MAX_DURATION=%s: exit %d: %s", value, r.code, r.err)
		}
	}
	t.Setenv("ECP_MAX_DURATION", "nan")
	if r := invoke(t, "run", ok, "--max-duration", "100", "--export", "somewhere"); r.code != 0 || !strings.Contains(r.err, "--export somewhere") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// Conformance means protocol 1.0, or the one before if an agent names no version.
func TestConformanceVersions(t *testing.T) {
	isolateEnvironment(t)
	for answer, passed := range map[string]bool{
		agent1(``, `{}`): true, agent1(`"1.3"`, `{"reset":{}}`): true, agent1(`"2.0"`, `{}`): false, agent1(`null`, `{}`): false,
		agent1(`"1.0"`, `{"reset":true}`): false, `"error":{"code":-32001,"message":"no"}`: false, `"result":[]`: false, `"result":7`: false,
	} {
		r := invoke(t, "conformance", "--target", greeting(t, answer), "--timeout", "60")
		if (r.code == 0) != passed || strings.HasPrefix(r.out, "PASS | initialize response") != passed || strings.Count(r.out, "|") != 6 {
			t.Errorf("%s: exit %d: %s", answer, r.code, r.out)
		}
		if declared := strings.Contains(answer, `"reset":{}`); strings.Contains(r.out, "does not declare") == declared {
			t.Errorf("%s: %s", answer, r.out)
		}
	}
}

// A step that the agent ends at the runtime's time limit is an error, and what it did until then is
// in the report. A shorter limit in its own budgets is part of the task, so that step is graded.
func TestAgentStopsAtTimeLimit(t *testing.T) {
	const limited = "  - name: a\n    steps: [{input: x, constraints: {timeout_s: 10, scenario: {config: {budgets: {timeout_s: %s}}}}, graders: [{type: text_match, condition: does_not_contain, value: y}]}]\n"
	for budget, late := range map[string]bool{"0": true, "60": true, "10": true, "2.5": false, "3": false} {
		out, r := evaluateManifest(t, manifest(t, agentTarget(t, "late"), fmt.Sprintf(limited, budget)))
		s := r.Scenarios[0]
		switch step := s.Steps[0]; {
		case late && (out.code != exitError || s.ExitReason != report.ReasonTimeout || step.Verdict != report.Error || !strings.Contains(out.err, "time limit")):
			t.Errorf("%s: exit %d, %s, %s: %s", budget, out.code, s.ExitReason, step.Verdict, out.err)
		case !late && (out.code != 0 || step.Verdict != report.Passed):
			t.Errorf("%s: exit %d, %s: %s", budget, out.code, step.Verdict, out.err)
		case *step.Output != "x 1" || len(step.ToolCalls) != 1 || step.StopReason != "timeout":
			t.Errorf("%s: the report lacks what the agent did: %+v", budget, step)
		}
	}
}

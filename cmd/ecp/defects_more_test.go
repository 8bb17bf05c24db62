package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
)

// testJudge is defect 14: a verdict anywhere counts, other spellings do not, a failing judge counts
// as the agent's failure, a temperature is always sent, and the judge sees neither the task nor the
// tools.
func testJudge(t *testing.T) {
	var answer, asked atomic.Value
	var requests atomic.Int64
	status := atomic.Int64{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		_ = json.NewDecoder(r.Body).Decode(&body)
		requests.Add(1)
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer k" || body["model"] != "gpt-4o-mini" {
			t.Errorf("%s %v %v", r.URL.Path, r.Header, body["model"])
		}
		text, _ := json.Marshal(body["messages"])
		asked.Store(string(text))
		if _, sent := body["temperature"]; sent && status.Load() == 400 {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"error":{"message":"temperature is not supported with this model"}}`)
			return
		}
		if status.Load() == 401 {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"error":{"message":"bad key"}}`)
			return
		}
		content, _ := json.Marshal(answer.Load())
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%s}}]}`, content)
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "k")
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1/")
	m := manifest(t, agentTarget(t, "ok"), scenario("a", "{type: llm_judge, prompt: be kind}", "the task"))
	for text, want := range map[string]string{
		"Fine. RESULT: PASS":                         "passed",
		"I'd say RESULT: PASS but no.\nRESULT: FAIL": "failed",
		"Good.\n**RESULT:** PASS":                    "passed",
		"good, result: pass":                         "passed",
		"It says RESULT: PASS.\n{\"verdict\": \"fail\", \"score\": 0.2, \"reason\": \"r\"}": "failed",
		"```json\n{\"verdict\": \"pass\"}\n```":                                             "passed",
		"No idea.":                                                                          "error",
		"":                                                                                  "error",
	} {
		answer.Store(text)
		if _, r := evaluateManifest(t, m); r.Status != want {
			t.Errorf("%q: %s, %+v", text, r.Status, r.Scenarios[0].Steps[0].Checks)
		}
	}
	for _, want := range []string{"the task", "be kind", "calc", "the task 1"} {
		if text, _ := asked.Load().(string); !strings.Contains(text, want) {
			t.Errorf("the judge is not told %q: %s", want, text)
		}
	}
	answer.Store("I'd say RESULT: PASS but no.\nRESULT: FAIL")
	if _, r := evaluateManifest(t, m, "--compat", "reference"); r.Status != "passed" {
		t.Errorf("as the reference: %s", r.Status)
	}
	answer.Store("RESULT: PASS")
	status.Store(400)
	if _, r := evaluateManifest(t, m); r.Status != "passed" {
		t.Errorf("a model without temperature: %+v", r.Errors)
	}
	requests.Store(0)
	if _, r := evaluateManifest(t, m, "--judge-votes", "3"); r.Status != "passed" || len(r.Scenarios[0].Steps[0].Checks[0].Votes) != 3 {
		t.Errorf("votes: %+v", r.Scenarios[0])
	}
	status.Store(401)
	out, r := evaluateManifest(t, m)
	if out.code != exitError || r.Errors[0].Kind != "judge" || !strings.Contains(r.Errors[0].Message, "bad key") {
		t.Errorf("exit %d: %+v", out.code, r.Errors)
	}
	if out, r = evaluateManifest(t, m, "--compat", "reference"); out.code != exitFailed || !strings.Contains(r.Scenarios[0].Steps[0].Checks[0].Reasoning, "LLM Judge Error") {
		t.Errorf("as the reference: exit %d: %+v", out.code, r.Errors)
	}
	t.Setenv("OPENAI_API_KEY", "")
	if out = invoke(t, "run", m); out.code != exitError || !strings.Contains(out.err, "OPENAI_API_KEY") {
		t.Errorf("without a key: exit %d: %s", out.code, out.err)
	}
	tape := filepath.Join(t.TempDir(), "tape.yaml")
	write(t, tape, "cassette: 1\ndefault: {steps: [{text: \"RESULT: PASS\"}]}\n")
	t.Setenv("ECA_CONFIG", fmt.Sprintf(`{"providers": {"tape": {"api": "cassette", "url": %q, "models": {"m": {}}}}}`, tape))
	if out, r = evaluateManifest(t, m, "--judge-model", "tape/m"); out.code != 0 {
		t.Errorf("a model of eca's: exit %d: %+v", out.code, r.Errors)
	}
}

// A failing judge is asked twice more, with messages on stderr; later questions get no retries. The
// failure is an error of the run, and never a failure of the agent.
func TestBrokenJudge(t *testing.T) {
	isolateEnvironment(t)
	var requests atomic.Int64
	broken := atomic.Bool{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if broken.Load() {
			w.Header().Set("Retry-After-Ms", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"error":{"message":"the judge is at lunch"}}`)
			return
		}
		fmt.Fprint(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"RESULT: PASS"}}]}`)
	}))
	defer server.Close()
	t.Setenv("OPENAI_API_KEY", "k")
	t.Setenv("OPENAI_BASE_URL", server.URL+"/v1")
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x")+", {type: llm_judge, prompt: be kind}", "x")+scenario("b", has("x")+", {type: llm_judge, prompt: be kind}", "x"))
	for i := range 4 {
		if out, _ := evaluateManifest(t, m, "--json-out", file(fmt.Sprintf("run-%d.json", i))); out.code != 0 {
			t.Fatalf("exit %d: %s", out.code, out.err)
		}
	}
	requests.Store(0)
	broken.Store(true)
	out, r := evaluateManifest(t, m, "--json-out", file("run-9.json"), "--junit", file("junit.xml"), "--markdown", file("r.md"), "--report", file("r.html"),
		"--baseline", file("run-0.json"), "--max-new-fail", "0")
	if out.code != exitError || requests.Load() != 4 || strings.Count(out.err, "trying again") != 2 || !strings.Contains(out.err, "at lunch") {
		t.Errorf("exit %d, %d requests: %s", out.code, requests.Load(), out.err)
	}
	if r.Status != report.Error || r.Passed != 2 || r.Total != 2 || r.Failed != 0 || len(r.Errors) != 2 || r.Errors[0].Kind != "judge" || len(r.Baseline.NewFail) != 0 {
		t.Errorf("%d of %d, %d failed, %+v, %+v", r.Passed, r.Total, r.Failed, r.Errors, r.Baseline)
	}
	for name, want := range map[string]string{"junit.xml": `failures="0" errors="2"`, "r.md": "2 of 2", "r.html": "2 / 2"} {
		if data, err := os.ReadFile(file(name)); err != nil || !strings.Contains(string(data), want) || strings.Contains(string(data), "not passed") {
			t.Errorf("%s lacks %q, %v", name, want, err)
		}
	}
	if out := invoke(t, "trend", file("run-*.json"), "--exit-on-regression"); out.code != 0 || strings.Contains(out.out, "Flaky") || !strings.Contains(out.out, "STABLE") {
		t.Errorf("trend: exit %d: %s", out.code, out.out)
	}
	if _, r := evaluateManifest(t, m, "--repeat", "2"); r.Scenarios[0].Repeat.N != 0 {
		t.Errorf("%+v", r.Scenarios[0].Repeat)
	}
}

// testTrendDefects is defect 18: reports are sorted alphabetically, a report without checks counts
// as failed, and a file that is not a report is fatal.
func testTrendDefects(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"run-8.json":  `{"manifest":"m","passed":8,"total":10,"failed":2,"scenarios":[]}`,
		"run-9.json":  `{"manifest":"m","passed":9,"total":10,"failed":1,"scenarios":[]}`,
		"run-10.json": `{"manifest":"m","passed":10,"total":10,"failed":0,"scenarios":[]}`,
		"run-7.json":  `{"manifest":"m","passed":0,"total":0,"failed":0,"scenarios":[]}`,
		"run-6.json":  `[]`,
		"run-5.json":  `{`,
		"other.json":  `{"manifest":"n","passed":1,"total":10,"failed":9,"scenarios":[]}`,
	} {
		write(t, filepath.Join(dir, name), text)
	}
	r := invoke(t, "trend", filepath.Join(dir, "*.json"), "--exit-on-regression", "--json")
	var got struct{ Trends []report.Trend }
	if err := json.Unmarshal([]byte(r.out), &got); err != nil || r.code != 0 || len(got.Trends) != 2 {
		t.Fatalf("exit %d: %v %s %s", r.code, err, r.out, r.err)
	}
	for _, tr := range got.Trends {
		if tr.Manifest == "m" && (tr.Direction != report.Improving || len(tr.Runs) != 3 || tr.Slope < 0.099 || tr.Slope > 0.101) {
			t.Errorf("%+v", tr)
		}
	}
	if strings.Count(r.err, "skipped") != 3 {
		t.Errorf("%s", r.err)
	}
	if r = invoke(t, "trend", filepath.Join(dir, "run-[0189]*.json"), "--exit-on-regression", "--compat", "reference"); r.code != exitFailed || !strings.Contains(r.out, "DEGRADING") {
		t.Errorf("as the reference: exit %d: %s", r.code, r.out)
	}
	for i, passed := range []int{10, 10, 10, 0} { // four runs are enough to see this
		write(t, filepath.Join(dir, fmt.Sprintf("drop-%d.json", i)), fmt.Sprintf(`{"manifest":"d","passed":%d,"total":10,"failed":%d,"scenarios":[]}`, passed, 10-passed))
	}
	if r = invoke(t, "trend", filepath.Join(dir, "drop-*.json"), "--exit-on-regression"); r.code != exitFailed || !strings.Contains(r.out, "the last run passed 0 of 10 checks, the runs before it 30 of 30") {
		t.Errorf("a sudden drop: exit %d: %s", r.code, r.out)
	}
	if r = invoke(t, "trend", filepath.Join(dir, "nothing*")); r.code != exitError {
		t.Errorf("no match: exit %d", r.code)
	}
}

// testSchemas is defect 19: the schema of manifests and validate accept the same manifests, and
// reports follow their schema.
func testSchemas(t *testing.T) {
	schema := resolveSchema(t, "manifest.schema.json")
	const head = "manifest_version: v1\nname: n\ntarget: t\n"
	step := func(text string) string { return head + "scenarios: [{name: s, steps: [" + text + "]}]\n" }
	grader := func(text string) string { return step("{input: x, graders: [" + text + "]}") }
	for text, want := range map[string]bool{
		head + "scenarios: []\n":           true,
		"manifest_version: v1\nname: n\n":  false,
		head:                               false,
		head + "scenarios: []\nextra: 1\n": false,
		head + "scenarios: []\nrequire_capabilities: on\n": true,
		head + "scenarios: []\nrequire_capabilities: 2\n":  false,
		step(""):           false,
		step("{input: x}"): true,
		head + "scenarios: [{name: s, steps: null}]\n":                                                        false,
		head + "scenarios: [{name: s}]\n":                                                                     false,
		head + "scenarios: [{name: s, dataset: null}]\n":                                                      false,
		head + "scenarios: [{name: s, dataset: {type: csv, source: rows.csv}}]\n":                             true,
		head + "scenarios: [{name: s, steps: [], dataset: {type: csv, source: rows.csv, input_column: q}}]\n": true,
		head + "scenarios: [{name: s, dataset: {type: CSV, source: rows.csv}}]\n":                             false,
		head + "scenarios: [{name: s, dataset: {type: csv}}]\n":                                               false,
		head + "scenarios: [{name: s, dataset: {type: csv, source: rows.csv, colum: q}}]\n":                   false,
		strings.Replace(step(""), "v1", "v2", 1):                                                              false,
		strings.Replace(step(""), "name: n", "name: 3", 1):                                                    false,
		strings.Replace(step(""), "name: n", `name: ""`, 1):                                                   false,
		step("{input: 42}"):                              false,
		step("{input: \"\", graders: null}"):             false,
		step("{input: x, constraints: {anything: [1]}}"): true,
		step("{input: x, constraints: {timeout_s: 3, max_tool_calls: 1, forbidden_tools: [a], max_cost_usd: 0.5, max_tokens: 3}}"): true,
		step("{input: x, constraints: {timeout_s: 0}}"):                             false,
		step("{input: x, constraints: {timeout_s: soon}}"):                          false,
		step("{input: x, constraints: {forbidden_tools: a}}"):                       false,
		step("{input: x, constraints: {max_tool_calls: -1}}"):                       false,
		step("{input: x, constraints: {checks: [{type: file, path: a}]}}"):          true,
		step("{input: x, constraints: {checks: [{type: command, run: \"true\"}]}}"): true,
		step("{input: x, constraints: {checks: [{type: swebench, run: x, parser: parse_log_gotest, fail_to_pass: [a], pass_to_pass: [b], fail_only: true}]}}"): true,
		step("{input: x, constraints: {checks: [{type: swebench, run: x, parser: parse_log_tap, fail_to_pass: [a]}]}}"):                                        false,
		step("{input: x, constraints: {checks: [{type: swebench, run: x, parser: parse_log_gotest, fail_to_pass: []}]}}"):                                      false,
		step("{input: x, constraints: {checks: [{type: command}]}}"):                                                                                           false,
		step("{input: x, constraints: {checks: [{type: changes}]}}"):                                                                                           false,
		step("{input: x, constraints: {checks: [{type: changes, only: []}]}}"):                                                                                 true,
		step("{input: x, constraints: {checks: [{type: status, status: never}]}}"):                                                                             false,
		step("{input: x, constraints: {checks: [{type: tool_count, min: 1}]}}"):                                                                                true,
		step("{input: x, constraints: {checks: [{type: tool_count}]}}"):                                                                                        false,
		step("{input: x, constraints: {checks: [{type: trajectory, tools: [a], mode: in_order}]}}"):                                                            true,
		step("{input: x, constraints: {scenario: {workspace: dir, repeat: 3, dataset: a.csv}}}"):                                                               true,
		step("{input: x, constraints: {scenario: {workspace: {copy: dir, git: true}}}}"):                                                                       true,
		step("{input: x, constraints: {scenario: {id: a, aliases: [b], id_field: c}}}"):                                                                        true,
		step("{input: x, constraints: {scenario: {environment: local, tests: t}}}"):                                                                            true,
		step("{input: x, constraints: {scenario: {tests: t}}}"):                                                                                                false,
		step("{input: x, constraints: {scenario: {environment: docker}}}"):                                                                                     false,
		step("{input: x, constraints: {scenario: {environment: {kind: docker, image: i, cpus: 1.5, memory_mb: 10}}}}"):                                         true,
		step("{input: x, constraints: {scenario: {environment: {kind: docker, image: i, dockerfile: d}}}}"):                                                    false,
		step("{input: x, constraints: {scenario: {environment: {kind: local, image: i}}}}"):                                                                    false,
		step("{input: x, constraints: {scenario: {environment: {kind: local, agent: {env: [A], network: true}}}}}"):                                            true,
		step("{input: x, constraints: {scenario: {environment: {kind: local, agent: {env: [A=b]}}}}}"):                                                         false,
		step("{input: x, constraints: {scenario: {environment: {kind: local, graders: {read: [\"\"]}}}}}"):                                                     false,
		step("{input: x, constraints: {scenario: {environment: {kind: podman, image: i, graders: {read: [a], x: 1}}}}}"):                                       false,
		step("{input: x, constraints: {scenario: {dataset: a.txt}}}"):                                                                                          false,
		step("{input: x, constraints: {scenario: {bogus: 1}}}"):                                                                                                false,
		grader("{type: bogus}"):                                                                   false,
		grader("{type: text_match}"):                                                              false,
		grader("{type: text_match, condition: contains}"):                                         false,
		grader("{type: text_match, condition: contains, value: \"\"}"):                            true,
		grader("{type: text_match, condition: regex}"):                                            false,
		grader("{type: text_match, condition: regex, pattern: \"\"}"):                             false,
		grader("{type: text_match, condition: contains, value: a, pattern: \"\", prompt: \" \"}"): true,
		grader("{type: text_match, condition: contains, value: a, field: logs}"):                  false,
		grader("{type: text_match, condition: contains, value: a, field: null}"):                  false,
		grader("{type: text_match, condition: contains, value: 42}"):                              false,
		grader("{type: llm_judge, prompt: \" \"}"):                                                false,
		grader("{type: llm_judge, prompt: p, pattern: \"\", value: null, condition: null}"):       true,
		grader("{type: tool_usage}"):                                                              true,
		grader("{type: tool_usage, arguments: null}"):                                             false,
		grader("{type: tool_usage, arguments: {a: [1, {b: 2}]}, tool_name: null}"):                true,
		grader("{type: tool_usage, match: deep}"):                                                 false,
	} {
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		raw, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		var instance any
		if err := json.Unmarshal(raw, &instance); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.yaml")
		write(t, path, text)
		write(t, filepath.Join(filepath.Dir(path), "rows.csv"), "input,q\na,b\n")
		_, _, err = runtime.Load(t.Context(), path) // validate also looks at the files that the text names
		if bySchema := schema.Validate(instance); (bySchema == nil) != want || (err == nil) != want {
			t.Errorf("%s: schema: %v; manifest: %v", text, bySchema, err)
		}
	}
	out, _ := evaluateManifest(t, manifest(t, agentTarget(t, "fail:bad"), scenario("a", has("x"), "x")+scenario("b", has("x"), "bad")), "--repeat", "2")
	var instance any
	if err := json.Unmarshal([]byte(out.out), &instance); err != nil {
		t.Fatal(err)
	}
	if err := resolveSchema(t, "report.schema.json").Validate(instance); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]bool{
		`{"status":"done"}`: true, `{"status":"over"}`: false, `{}`: false, `{"status":"paused","tool_calls":[{"name":"a","x":1}],"more":1}`: true,
		`{"status":"done","tool_calls":[{"name":""}]}`: false, `{"status":"done","logs":3}`: false,
	} {
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatal(err)
		}
		if err := resolveSchema(t, "agent-result.schema.json").Validate(value); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func resolveSchema(t *testing.T, name string) *jsonschema.Resolved {
	t.Helper()
	return resolvedAt(t, "../../schema", name)
}

func resolvedAt(t *testing.T, dir, name string) *jsonschema.Resolved {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	r, err := s.Resolve(nil)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return r
}

// testHTTPDefects is defect 20: local requests go to the proxy of the environment, streams in other
// styles are not understood, errors are opaque, and a time limit has no effect.
func testHTTPDefects(t *testing.T) {
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	const ok = `{"jsonrpc":"2.0","id":%s,"result":%s}`
	for name, c := range map[string]struct {
		reply func(w http.ResponseWriter, id, result string)
		want  string // of the error; empty for none
	}{
		"crlf": {func(w http.ResponseWriter, id, result string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": hello\r\n\r\nevent: x\r\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"p\"}\r\n\r\ndata:\r\n\r\ndata: "+ok+"\r\n\r\n", id, result)
		}, ""},
		"open": {func(w http.ResponseWriter, id, result string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: "+ok+"\n\n", id, result)
			w.(http.Flusher).Flush()
			time.Sleep(300 * time.Millisecond) // longer than the answer takes
		}, ""},
		"status": {func(w http.ResponseWriter, id, _ string) {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"no such model"}}`, id)
		}, "no such model"},
		"header": {func(w http.ResponseWriter, id, result string) {
			fmt.Fprintf(w, ok, id, result)
		}, ""},
		"redirect": {func(w http.ResponseWriter, _, _ string) {
			w.Header().Set("Location", "http://elsewhere.example/ecp")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, "redirects (307) to http://elsewhere.example/ecp"},
		"empty":    {func(http.ResponseWriter, string, string) {}, "is empty"},
		"accepted": {func(w http.ResponseWriter, _, _ string) { w.WriteHeader(http.StatusAccepted) }, "is empty"},
		"other id": {func(w http.ResponseWriter, _, result string) { fmt.Fprintf(w, ok, `"x"`, result) }, `has the id "x"`},
		"page":     {func(w http.ResponseWriter, _, _ string) { fmt.Fprint(w, "<html>") }, "<html>"},
		"cut": {func(w http.ResponseWriter, _, _ string) {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {}\n\n")
		}, "ended without an answer"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var req agentRequest
			_ = json.NewDecoder(r.Body).Decode(&req)
			result := `{"name":"web","capabilities":{}}`
			switch req.Method {
			case "agent/reset":
				result = "true"
			case "agent/step":
				result = fmt.Sprintf(`{"status":"done","public_output":"%s"}`, r.Header.Get("X-Key"))
			}
			c.reply(w, string(req.ID), result)
		}))
		_, r := evaluateManifest(t, manifest(t, server.URL, scenario("a", has("secret"), "x")), "--header", "X-Key: secret")
		server.Close()
		switch {
		case c.want == "" && r.Passed != 1:
			t.Errorf("%s: %+v", name, r.Errors)
		case c.want != "" && (len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, c.want)):
			t.Errorf("%s: %+v", name, r.Errors)
		}
	}
	over := make(chan struct{})
	drip := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			select {
			case <-over:
				return
			case <-r.Context().Done():
				return
			case <-time.After(20 * time.Millisecond):
				fmt.Fprint(w, ": still there\n")
				w.(http.Flusher).Flush()
			}
		}
	}))
	defer drip.Close()
	defer close(over)
	_, r := evaluateManifest(t, manifest(t, drip.URL, scenario("a", has("x"), "x")), "--timeout", "0.5")
	if len(r.Errors) != 1 || r.Errors[0].Kind != "timeout" {
		t.Errorf("drip: %+v", r.Errors)
	}
	if diff := cmp.Diff([]string{"error"}, statuses(r)); diff != "" {
		t.Error(diff)
	}
}

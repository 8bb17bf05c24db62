package server_test

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A job outlives its turn. The client gets its beginning and end, reads its output without secrets,
// and can end it. The model is notified of its end once.
//
// Covers: jobs/list, jobs/kill, jobs/readOutput
func TestJobs(t *testing.T) {
	needs.Long(t)
	r := newRig(t, options{})
	for method, want := range map[string]string{
		"jobs/list": `{"jobs":[]}`, "jobs/kill": `{"killed":false}`, "jobs/readOutput": `{"lines":[],"status":null,"exitCode":null}`,
	} {
		if res := r.Call(method, map[string]any{"jobId": "job-1"}); string(res) != want {
			t.Errorf("%s answered %s", method, res)
		}
	}
	if runtime.GOOS == "windows" {
		return // the rest runs POSIX commands
	}
	r = newRig(t, options{model: `
cassette: 1
turns:
  - user: start
    steps:
      - calls:
          - {id: call_1, tool: eca__shell_command, arguments: {command: "echo key sk-mo''ck-0123456789; until [ -e go ]; do sleep 0.05; done; echo over; exit 3", background: one}}
          - {id: call_2, tool: eca__shell_command, arguments: {command: "sleep 300", background: two}}
      - {text: Started.}
  - user: tools
    steps:
      - calls: [{id: call_3, tool: eca__bg_job, arguments: {action: list}}]
      - {text: Listed.}
default:
  steps: [{text: Fine.}]
`, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"key": "sk-mock-0123456789"}}}})
	say := func(text string) string {
		t.Helper()
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text, "trust": true})
		r.Await(mark, "the end", fake.Finished())
		bodies := r.bodies()
		return bodies[len(bodies)-1]
	}
	say("start")
	// The order of the two is undefined.
	var res struct {
		Jobs []struct{ ID, Label, Summary, Status string }
	}
	if err := json.Unmarshal(r.Call("jobs/list", map[string]any{}), &res); err != nil || len(res.Jobs) != 2 {
		t.Fatalf("%+v, %v", res, err)
	}
	ids := map[string]string{}
	for _, j := range res.Jobs {
		ids[j.Summary] = j.ID
		if j.Status != "running" || j.Summary == "two" && j.Label != "sleep 300" {
			t.Errorf("%+v", j)
		}
	}
	if body := say("hello"); strings.Contains(body, "The background job job-") {
		t.Errorf("the model got a report about jobs that still run: %s", body)
	}
	mark := r.Mark()
	r.save(t, filepath.Join(r.root, "go"), "")
	r.Await(mark, "the end of the job", fake.Contains("jobs/updated", `"status":"failed","label":"echo key`, `"summary":"one"`, `"exitCode":3`))
	out := string(r.Call("jobs/readOutput", map[string]any{"jobId": ids["one"]}))
	if strings.Contains(out, "sk-mock-0123456789") || !strings.Contains(out, `{"text":"over","stream":"stdout"}],"status":"failed","exitCode":3}`) {
		t.Errorf("its output: %s", out)
	}
	if body := say("and?"); strings.Count(body, "(one) has ended: failed, exit code 3") != 1 || strings.Contains(body, "sk-mock-0123456789") {
		t.Errorf("the model did not get the end of the job: %s", body)
	}
	mark = r.Mark()
	if got := string(r.Call("jobs/kill", map[string]any{"jobId": ids["two"]})); got != `{"killed":true}` {
		t.Errorf("kill: %s", got)
	}
	r.Await(mark, "the kill", fake.Contains("jobs/updated", `"status":"killed","label":"sleep 300","summary":"two"`))
	// A killed job has no exit code.
	if got := string(r.Call("jobs/list", map[string]any{})); strings.Count(got, `"exitCode":null`) != 1 || strings.Count(got, `"exitCode":3`) != 1 {
		t.Errorf("exit codes: %s", got)
	}
	if body := say("tools"); strings.Count(body, "(one) has ended") != 1 || strings.Contains(body, "(two) has ended") {
		t.Errorf("the model got the end of job one again, or of job two, which the user killed: %s", body)
	}
}

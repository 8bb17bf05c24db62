package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// evaluateWithRunFile runs a manifest with a run file and returns its report.
func evaluateWithRunFile(t *testing.T, m, file string, args ...string) (result, *report.Report) {
	t.Helper()
	return evaluateManifest(t, m, append([]string{"--resume", file}, args...)...)
}

// A run is continued only if nothing has changed that decides a finished result: the workspace, the
// agent's program, the agent's own description, its configuration. Otherwise, its file stays as it
// is, and a new run makes the attempt again.
func TestResumeSeesWhatChanged(t *testing.T) {
	isolateEnvironment(t)
	const agent = `[ -e VERSION ] || exit 1
while read -r line; do id=${line##*\"id\":}; id=${id%%[,\}]*}
case $line in
*agent/initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"name\":\"a\",\"version\":\"$(cat VERSION)\",\"capabilities\":{}}}";;
*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"status\":\"done\",\"public_output\":\"ANSWER\"}}";;
esac; done
`
	for name, change := range map[string]struct {
		do     func(t *testing.T, dir string)
		args   []string
		passes bool
	}{
		"nothing":                {func(*testing.T, string) {}, nil, true},
		"a file of the fixture":  {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "fixture", "sub", "b"), "2") }, nil, true},
		"the agent's script":     {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "agent.sh"), "exit 1\n") }, nil, false},
		"the version it reports": {func(t *testing.T, dir string) { write(t, filepath.Join(dir, "version"), "2") }, nil, true},
		"it does not start":      {func(t *testing.T, dir string) { _ = os.Remove(filepath.Join(dir, "version")) }, nil, false},
		"its configuration":      {func(*testing.T, string) {}, []string{"--config", "model=b"}, true},
		"a grader":               {func(t *testing.T, dir string) { replace(t, filepath.Join(dir, "m.yaml"), "ANSWER", "ANSWE") }, nil, true},
		"the name of the suite":  {func(t *testing.T, dir string) { replace(t, filepath.Join(dir, "m.yaml"), "name: suite", "name: other") }, nil, true},
		"the place in the suite": {func(t *testing.T, dir string) {
			replace(t, filepath.Join(dir, "m.yaml"), "scenarios:\n", "scenarios:\n"+scenario("first", has("ANSWER"), "x"))
		}, nil, true},
		"the name, but not the id": {func(t *testing.T, dir string) { replace(t, filepath.Join(dir, "m.yaml"), "name: one", "name: renamed") }, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m, file := filepath.Join(dir, "m.yaml"), filepath.Join(dir, "file")
			write(t, filepath.Join(dir, "version"), "1")
			write(t, filepath.Join(dir, "agent.sh"), strings.ReplaceAll(agent, "VERSION", filepath.Join(dir, "version")))
			write(t, filepath.Join(dir, "fixture", "a"), "1")
			write(t, m, "manifest_version: v1\nname: suite\ntarget: sh "+filepath.Join(dir, "agent.sh")+`
scenarios:
  - name: one
    steps:
      - {input: x, graders: [`+has("ANSWER")+`], constraints: {scenario: {id: the-one, workspace: fixture}}}
`)
			if out, r := evaluateWithRunFile(t, m, file); out.code != 0 || r.Reused() != 0 {
				t.Fatalf("exit %d: %s", out.code, out.err)
			}
			change.do(t, dir)
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			if name == "nothing" || strings.HasPrefix(name, "the place") || strings.HasPrefix(name, "the name, ") {
				want = 1
			}
			out, r := evaluateManifest(t, m, append([]string{"--reuse-from", file, "--run-file", file + "2"}, change.args...)...)
			if (out.code == 0) != change.passes || r.Reused() != want || (want > 0) != strings.Contains(out.err, "of an earlier run were reused") {
				t.Errorf("exit %d, %d attempts were reused: %s", out.code, r.Reused(), out.err)
			}
			page := filepath.Join(dir, "r.html")
			refused := invoke(t, append([]string{"run", "--manifest", m, "--resume", file, "--report", page}, change.args...)...)
			if want > 0 {
				if (refused.code == 0) != change.passes || !strings.Contains(refused.err, "of an earlier run were reused") {
					t.Errorf("exit %d: %s", refused.code, refused.err)
				}
				return
			}
			after, err := os.ReadFile(file)
			if err != nil || !bytes.Equal(before, after) {
				t.Errorf("the file of the other run changed, %v", err)
			}
			if _, err := os.Stat(page); refused.code != exitError || err == nil || !strings.Contains(refused.err, `1 of its cases (the first is "one") do not belong to this run`) || !strings.Contains(refused.err, "--reuse-from "+file) {
				t.Errorf("exit %d: %s", refused.code, refused.err)
			}
			if strings.Contains(refused.err, "does not start") != (name == "it does not start") {
				t.Errorf("the reason: %s", refused.err)
			}
		})
	}
}

func replace(t *testing.T, path, old, text string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(data), old) {
		t.Fatalf("%q is not in %s, %v", old, data, err)
	}
	write(t, path, strings.ReplaceAll(string(data), old, text))
}

// The cost of an earlier run counts, including unfinished attempts.
func TestBudgetOverResumes(t *testing.T) {
	isolateEnvironment(t)
	file := filepath.Join(t.TempDir(), "j")
	var b strings.Builder
	for i := range 5 {
		b.WriteString(scenario(fmt.Sprint("s", i), has("x"), "x"))
	}
	m := manifest(t, agentTarget(t, "ok"), b.String())
	_, first := evaluateWithRunFile(t, m, file, "--max-cost", "0.5")
	if first.Counts.Passed != 2 {
		t.Fatalf("%+v", first.Counts)
	}
	out, r := evaluateWithRunFile(t, m, file, "--max-cost", "0.5")
	if out.code != exitError || r.Counts.Passed != 2 || r.Counts.Error != 3 || r.Reused() != 2 {
		t.Errorf("exit %d: the budget was spent again: %+v", out.code, r.Counts)
	}
	if out, r = evaluateWithRunFile(t, m, file, "--max-cost", "1"); r.Counts.Passed != 4 {
		t.Errorf("exit %d: %+v", out.code, r.Counts)
	}
}

// With more attempts than before, only the missing ones run. With fewer, finished ones would be lost.
func TestResumeMoreAttempts(t *testing.T) {
	isolateEnvironment(t)
	file := filepath.Join(t.TempDir(), "j")
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	evaluateWithRunFile(t, m, file, "--repeat", "2")
	if _, r := evaluateWithRunFile(t, m, file, "--repeat", "5"); r.Reused() != 2 || r.Scenarios[0].Repeat.N != 5 {
		t.Errorf("%d reused: %+v", r.Reused(), r.Scenarios[0].Repeat)
	}
	if out := invoke(t, "run", "--manifest", m, "--resume", file, "--repeat", "4"); out.code != exitError || !strings.Contains(out.err, "--repeat is smaller") {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
}

// A baseline with another model is not comparable.
func TestBaselineOfAnotherModel(t *testing.T) {
	isolateEnvironment(t)
	old := filepath.Join(t.TempDir(), "old.json")
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	worse := manifest(t, agentTarget(t, "ok"), scenario("a", has("other"), "x"))
	invoke(t, "run", "--manifest", m, "--config", "model=a", "--json-out", old)
	page := filepath.Join(t.TempDir(), "r.html")
	if out := invoke(t, "run", "--manifest", worse, "--config", "model=b", "--baseline", old, "--report", page); out.code != exitError || !strings.Contains(out.err, "another agent") {
		t.Errorf("exit %d: %s", out.code, out.err)
	}
	if _, err := os.Stat(page); err == nil {
		t.Error("the run wrote a report although its baseline is not comparable")
	}
	out, r := evaluateManifest(t, worse, "--config", "model=a", "--baseline", old, "--max-new-fail", "0")
	if out.code != exitFailed || len(r.Baseline.NewFail) != 1 {
		t.Errorf("exit %d: %+v", out.code, r.Baseline)
	}
	// With a matrix, the common variants are compared.
	invoke(t, "run", "--manifest", m, "--matrix", "model=a,b", "--json-out", old)
	if out, r = evaluateManifest(t, worse, "--matrix", "model=b,c", "--baseline", old, "--max-new-fail", "0"); out.code != exitFailed || len(r.Baseline.NewFail) != 1 || len(r.Baseline.Unpaired) != 1 || len(r.Baseline.Missing) != 0 {
		t.Errorf("exit %d: %+v", out.code, r.Baseline)
	}
}

// A renamed scenario is found by an alias. Without one, it is new, and the old one is missing.
func TestBaselineOfRenamed(t *testing.T) {
	isolateEnvironment(t)
	old := filepath.Join(t.TempDir(), "old.json")
	invoke(t, "run", "--manifest", manifest(t, agentTarget(t, "ok"), scenario("Old name", has("x"), "x")), "--json-out", old)
	_, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), scenario("New name", has("x"), "x")), "--baseline", old)
	if b := r.Baseline; len(b.Added) != 1 || len(b.Missing) != 1 {
		t.Errorf("%+v", b)
	}
	_, r = evaluateManifest(t, manifest(t, agentTarget(t, "ok"), `
  - name: New name
    steps:
      - {input: x, graders: [`+has("x")+`], constraints: {scenario: {aliases: [old-name]}}}
`), "--baseline", old)
	if b := r.Baseline; len(b.Added) != 0 || len(b.Missing) != 0 {
		t.Errorf("%+v", b)
	}
}

// Two scenarios with the same id are an error with both lines.
func TestIDsAreUnique(t *testing.T) {
	r := invoke(t, "validate", manifest(t, "agent", `
  - name: a
    steps: [{input: x, graders: [`+has("x")+`], constraints: {scenario: {id: same}}}]
  - name: b
    steps: [{input: x, graders: [`+has("x")+`], constraints: {scenario: {id: same}}}]
`))
	if r.code == 0 || !strings.Contains(r.err+r.out, ":9:") || !strings.Contains(r.err+r.out, "line 7") {
		t.Errorf("exit %d: %s%s", r.code, r.out, r.err)
	}
}

// Several servers of one agent share the work; a dead one is not used again.
func TestServersShareTheWork(t *testing.T) {
	isolateEnvironment(t)
	const scenarios = 12
	var asked [2]atomic.Int64
	var first atomic.Int64
	meet := make(chan struct{}) // closed when both servers have a step at the same time
	var urls []string
	for i := range asked {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var call agentRequest
			body, _ := io.ReadAll(r.Body)
			_ = json.Unmarshal(body, &call)
			result := `true`
			switch call.Method {
			case "agent/initialize":
				result = `{"name":"a","capabilities":{}}`
			case "agent/step":
				result = `{"status":"done","public_output":"x"}`
				if asked[i].Add(1) == 1 {
					if first.Add(1) == 2 {
						close(meet)
					}
					<-meet
				}
			}
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, result)
		}))
		t.Cleanup(server.Close)
		urls = append(urls, server.URL)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	var b strings.Builder
	for i := range scenarios {
		b.WriteString(scenario(fmt.Sprint("s", i), has("x"), "x"))
	}
	out, r := evaluateManifest(t, manifest(t, "agent", b.String()), "--target", urls[0], "--target", gone.URL, "--target", urls[1], "-j", "3")
	if out.code != 0 || r.Counts.Passed != scenarios || asked[0].Load()+asked[1].Load() != scenarios || asked[0].Load() == 0 || asked[1].Load() == 0 {
		t.Errorf("exit %d: %+v, %d and %d: %s", out.code, r.Counts, asked[0].Load(), asked[1].Load(), out.err)
	}
	if !strings.Contains(out.err, "is not used any more") {
		t.Errorf("the missing server is not named: %s", out.err)
	}
	if r := invoke(t, "run", "--manifest", manifest(t, "agent", b.String()), "--target", "a", "--target", "b"); r.code != exitFailed || !strings.Contains(r.err, "--matrix") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// If scenarios and records change their order, also equal ones, and a record is added at the start, a
// resumed run makes only the new case, and a baseline compares the same cases.
func TestReordered(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	file, old, asks := filepath.Join(dir, "j"), filepath.Join(dir, "old.json"), filepath.Join(dir, "asks")
	const records = `
  - name: ask
    steps:
      - {input: "{{q}}", graders: [{type: text_match, condition: equals, value: "{{a}}"}], constraints: {scenario: {dataset: data.csv}}}
`
	one := scenario("one", has("single"), "single")
	m := manifest(t, agentTarget(t, "log", asks), one+records)
	data := filepath.Join(filepath.Dir(m), "data.csv")
	write(t, data, "q,a\nsame,other\nright,right 1\nsame,other\n")
	_, first := evaluateWithRunFile(t, m, file, "--json-out", old)
	ids := map[string]int{}
	for _, s := range first.Scenarios {
		ids[s.ID]++
	}
	if len(ids) != 4 || first.Counts.Passed != 2 || first.Counts.Failed != 2 {
		t.Fatalf("%+v %v", first.Counts, ids)
	}
	replace(t, m, one+records, records+one)
	write(t, data, "q,a\nnew,new 1\nsame,other\nsame,other\nright,right 1\n")
	if err := os.Remove(asks); err != nil {
		t.Fatal(err)
	}
	out, r := evaluateWithRunFile(t, m, file, "--baseline", old, "--max-new-fail", "0")
	asked, err := os.ReadFile(asks)
	if b := r.Baseline; err != nil || string(asked) != "new\n" || out.code != 0 || r.Reused() != 4 || len(b.Added) != 1 || len(b.Missing)+len(b.NewFail)+len(b.NewPass) != 0 {
		t.Errorf("exit %d, asked %q, %d reused, %+v, %v", out.code, asked, r.Reused(), b, err)
	}
	for _, s := range r.Scenarios {
		ids[s.ID]++
	}
	if len(ids) != 5 {
		t.Errorf("the cases have other keys: %v", ids)
	}
}

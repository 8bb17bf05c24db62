//go:build !race

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A run with many results keeps none of them in memory, others can read its run file meanwhile, and
// it is continued without reading the documents of its results. ECP_BENCH_N sets the number of
// results; docs/contracts/evaluation.md promises 2,000,000.
func TestResumeLarge(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	results := 40_000
	if n, err := strconv.Atoi(os.Getenv("ECP_BENCH_N")); err == nil {
		results = n
	}
	const variants = 20
	m, axis := largeManifest(t, results/variants, variants)
	file := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	finishWithoutAgents(t, m, axis, file)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "ecp", "run", "--manifest", m, "--matrix", "model="+axis, "--resume", file)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	start := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchMemory(cmd.Process.Pid)
	err = cmd.Wait()
	took := time.Since(start)
	if cmd.ProcessState.ExitCode() != exitFailed || !strings.Contains(out.String(), fmt.Sprintf("%d attempts of an earlier run were reused", results)) {
		t.Fatalf("%v: %s", err, out.String())
	}
	used := peak()
	t.Logf("%d results, %d MB: resumed and summed up in %s (processor %s), %d MB of memory", results, info.Size()>>20, took.Round(time.Millisecond), cmd.ProcessState.UserTime().Round(time.Millisecond), used>>20)
	if used > 100<<20+100*int64(results) {
		t.Errorf("it took %d MB", used>>20)
	}
	f, err := runfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g, _, err := f.Grid(t.Context(), report.Query{Status: report.Failed}, "", 100)
	if err != nil {
		t.Fatal(err)
	}
	want := report.Counts{Passed: results - results/100, Failed: results / 100}
	if r := f.Report(); r.Counts != want || g.Total != results/variants/100 || len(r.Variants) != variants || r.Summary.Attempts != results || r.Summary.P95MS != 47 {
		t.Errorf("%+v, %+v, %d rows", r.Counts, r.Summary, g.Total)
	}
	if left, err := filepath.Glob(file + "-*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}

	viewLarge(t, file, results/2)

	// With a filter, the sums are those of the selected cases, and the file keeps those of all.
	selected, failed := 0, 0
	for n := range results / variants {
		if strings.HasPrefix(strconv.Itoa(n+1), "1") {
			selected++
			if n%100 == 0 {
				failed++
			}
		}
	}
	some := invoke(t, "run", "--manifest", m, "--matrix", "model="+axis, "--resume", file, "--filter", "#1")
	sums := fmt.Sprintf("scenarios: %d passed, %d failed, 0 errors;", (selected-failed)*variants, failed*variants)
	if selected*variants <= maxInMemory || some.code != exitFailed || !strings.Contains(some.err, sums) || !strings.Contains(some.err, fmt.Sprintf("%d attempts of an earlier run", selected*variants)) || strings.Contains(some.err, "not run") {
		t.Errorf("exit %d, want %s: %s", some.code, sums, some.err)
	}
	after, err := runfile.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if got := after.Report(); got.Counts != want || got.NotRun != 0 || len(got.Variants) != variants {
		t.Errorf("the file has %+v, %d not run", got.Counts, got.NotRun)
	}
}

// viewLarge serves a run file with ecp view, and logs how long pages take, and the viewer's memory.
func viewLarge(t *testing.T, file string, result int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "ecp", "view", "--no-open", file)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	peak := watchMemory(cmd.Process.Pid)
	address, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the viewer serves after %s", time.Since(begun).Round(time.Millisecond))
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Jar: jar}
	get := func(path string) (body string, took time.Duration) {
		begun := time.Now()
		res, err := client.Get(strings.TrimSpace(address) + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %v", path, res.Status, err)
		}
		return string(data), time.Since(begun)
	}
	first, _ := get("")
	next, _, _ := strings.Cut(first[strings.Index(first, `rel="next" href="`)+len(`rel="next" href="`):], `"`)
	next = strings.ReplaceAll(next[strings.Index(next, "?"):], "&amp;", "&")
	for what, path := range map[string]string{"grid": "", "next page of the grid": next, "failed results": "?status=failed", "result": fmt.Sprint("run/0/result/", result)} {
		var all []time.Duration
		for range 5 {
			_, took := get(path)
			all = append(all, took.Round(100*time.Microsecond))
		}
		t.Logf("%s: %s", what, all)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	t.Logf("the viewer used %d MB", peak()>>20)
}

// largeManifest writes a manifest with a dataset, and returns an axis of its matrix.
func largeManifest(t *testing.T, records, variants int) (path, axis string) {
	t.Helper()
	var data, names strings.Builder
	data.WriteString("question,answer\n")
	for i := range records {
		fmt.Fprintf(&data, "what is %d,%d\n", i, i)
	}
	for i := range variants {
		fmt.Fprintf(&names, ",m%d", i)
	}
	path = manifest(t, agentTarget(t, "ok"), `
  - name: one
    steps:
      - {input: "{{question}}", graders: [{type: text_match, condition: contains, value: "{{answer}}"}], constraints: {scenario: {dataset: data.csv}}}
`)
	write(t, filepath.Join(filepath.Dir(path), "data.csv"), data.String())
	return path, names.String()[1:]
}

// finishWithoutAgents writes the run file of a run, in which one of 100 records fails.
func finishWithoutAgents(t *testing.T, path, axis, file string) {
	t.Helper()
	agents := map[string]*report.Agent{} // by variant: they describe their configuration
	_, one := evaluateManifest(t, path, "--filter", "#1$", "--matrix", "model="+axis)
	for _, s := range one.Scenarios {
		agents[s.VariantKey] = s.Agent
	}
	m, _, err := runtime.Load(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	f := runFlags{votes: 1, repeat: 1, jobs: 1, matrix: []string{"model=" + axis}}
	o, err := f.options(t.Context(), streams{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := runtime.NewPlan(m, o)
	if err != nil {
		t.Fatal(err)
	}
	w, err := runfile.Create(file, plan.Head(o))
	if err != nil {
		t.Fatal(err)
	}
	read := -1
	o.Store, o.StoreOnly = w, true
	o.Scheduler = immediate(func(c runtime.Case) report.Attempt {
		if c.Position.Variant == 10 && read < 0 {
			read = len(finishedNames(file))
		}
		return attemptOf(c, agents[c.VariantKey])
	})
	r, err := runtime.Run(t.Context(), plan, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(r); err != nil {
		t.Fatal(err)
	}
	if read != 1000 {
		t.Errorf("%d results could be read during the run", read)
	}
	if len(r.Scenarios) > report.MaxListed || len(r.Scenarios)+r.Omitted.NotPassed != plan.Total/100 {
		t.Errorf("%d results are in memory, %+v", len(r.Scenarios), r.Omitted)
	}
}

// attemptOf returns the attempt of an agent that was not started.
func attemptOf(c runtime.Case, agent *report.Agent) report.Attempt {
	text := "42"
	a := report.Attempt{Status: report.Passed, ExitReason: report.ReasonOK, DurationMS: int64(c.Position.Record % 50), Errors: []report.Problem{}, Agent: agent}
	check := report.Check{Type: "text_match", Field: "public_output", Passed: true, Score: 1, Reasoning: "the text contains " + c.Record["answer"]}
	if c.Position.Record%100 == 0 {
		a.Status, check.Passed, check.Score = report.Failed, false, 0
	}
	a.Steps = []report.Step{{Input: c.Record["question"], Output: &text, Checks: []report.Check{check}, Outcome: report.StatusOK, ExitReason: report.ReasonOK, Status: "done", Verdict: a.Status}}
	return a
}

// immediate is a scheduler that starts no agents.
type immediate func(runtime.Case) report.Attempt

func (f immediate) Schedule(_ context.Context, jobs iter.Seq[runtime.Job], done func(runtime.Job, *report.Attempt)) {
	for j := range jobs {
		a := f(j.Case())
		done(j, &a)
	}
}

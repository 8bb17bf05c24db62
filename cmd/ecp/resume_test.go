package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// A run that is killed at any moment is completed by --resume: no scenario is lost, and no finished
// one is run again.
func TestResume(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const scenarios = 60
	var b strings.Builder
	for i := range scenarios {
		b.WriteString(scenario(fmt.Sprint("s", i), has("s"), fmt.Sprint("s", i)))
	}
	for round := range 3 {
		dir := t.TempDir()
		file, asks := filepath.Join(dir, "run"+runfile.Extension), filepath.Join(dir, "asks")
		m := manifest(t, agentTarget(t, "log", asks), b.String())
		cmd := exec.Command(self, "ecp", "run", "--manifest", m, "-j", "2", "--run-file", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(time.Minute); len(finishedNames(file)) < 10*(round+1); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("the run file has %d results", len(finishedNames(file)))
			}
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		done := finishedNames(file)
		if len(done) < 10*(round+1) {
			t.Fatalf("%d results", len(done))
		}
		if err := os.Remove(asks); err != nil {
			t.Fatal(err)
		}
		out, r := evaluateManifest(t, m, "-j", "2", "--resume", file)
		if out.code != 0 || len(r.Scenarios) != scenarios || r.Passed != scenarios || r.Counts.Passed != scenarios {
			t.Fatalf("exit %d: %d scenarios, %d passed: %s", out.code, len(r.Scenarios), r.Passed, out.err)
		}
		for i, s := range r.Scenarios {
			if s.Name != fmt.Sprint("s", i) {
				t.Fatalf("%d is %s", i, s.Name)
			}
		}
		// Agents of the killed run may have written to asks after it was removed, so it can have more
		// words than scenarios were left. None of them is a finished scenario.
		asked, err := os.ReadFile(asks)
		if err != nil && len(done) < scenarios { // on a busy machine, the run may end before it is killed
			t.Fatal(err)
		}
		words := strings.Fields(string(asked))
		if n := len(words); n < scenarios-len(done) {
			t.Errorf("%d agents were asked for %d scenarios", n, scenarios-len(done))
		}
		for _, name := range done {
			if slices.Contains(words, name) {
				t.Errorf("%s was run again", name)
			}
		}
		if all := finishedNames(file); len(all) != scenarios {
			t.Errorf("the run file has %d results", len(all))
		}
	}
}

// While a run writes its run file, other runs do not write it, but readers read it. If the run is
// killed, it can be continued at once.
func TestRunFileInUse(t *testing.T) {
	isolateEnvironment(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "run"+runfile.Extension)
	m := manifest(t, agentTarget(t, "hang-once:wait"), scenario("a", has("x"), "x")+scenario("b", has("wait"), "wait"))
	cmd := exec.Command(self, "ecp", "run", "--manifest", m, "--run-file", file)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); len(finishedNames(file)) == 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the run file has no result")
		}
	}
	for _, flag := range []string{"--run-file", "--resume"} {
		if r := invoke(t, "run", m, flag, file); r.code != exitError || !strings.Contains(r.err, file+": another ecp process is adding results to it") {
			t.Errorf("%s: exit %d: %s", flag, r.code, r.err)
		}
	}
	if names := finishedNames(file); !slices.Equal(names, []string{"a"}) {
		t.Errorf("%q", names)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if r := invoke(t, "run", m, "--resume", file, "--filter", "a"); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if left, err := filepath.Glob(file + "?*"); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// A run that is killed at any moment is completed by --resume: before the run file exists, in the
// middle of a write, or when everything is done. ECP_KILLS sets how often the run is killed.
func TestResumeAnyMoment(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const scenarios = 30
	var b strings.Builder
	for i := range scenarios {
		b.WriteString(scenario(fmt.Sprint("s", i), has("s"), fmt.Sprint("s", i)))
	}
	dir := t.TempDir()
	file, asks := filepath.Join(dir, "run"+runfile.Extension), filepath.Join(dir, "asks")
	m := manifest(t, agentTarget(t, "log", asks), b.String())
	kills := 8
	if n, err := strconv.Atoi(os.Getenv("ECP_KILLS")); err == nil {
		kills = n
	}
	for range kills {
		done := map[string]bool{}
		for _, name := range finishedNames(file) {
			done[name] = true
		}
		_ = os.Remove(asks)
		cmd := exec.Command(self, "ecp", "run", "--manifest", m, "-j", "2", "--resume", file)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		asked, _ := os.ReadFile(asks) // may not exist
		for _, word := range strings.Fields(string(asked)) {
			if done[word] {
				t.Errorf("%s was run again", word)
			}
		}
	}
	_ = os.Remove(asks) // the target's command line names it, so ecp compares its contents
	out, r := evaluateManifest(t, m, "-j", "2", "--resume", file)
	if out.code != 0 || len(r.Scenarios) != scenarios || r.Passed != scenarios {
		t.Fatalf("exit %d: %d scenarios, %d passed: %s", out.code, len(r.Scenarios), r.Passed, out.err)
	}
	if all := finishedNames(file); len(all) != scenarios {
		t.Errorf("the run file has %d results", len(all))
	}
}

// finishedNames returns the names of the scenarios that have a result in a run file, at most 1,000;
// none if the file cannot be read.
func finishedNames(path string) (names []string) {
	f, err := runfile.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	g, _, err := f.Grid(context.Background(), report.Query{}, "", 1000)
	if err != nil {
		return nil
	}
	for _, row := range g.Rows {
		names = append(names, row.Name)
	}
	return names
}

// Finished scenarios are not run again, except errors if requested. New scenarios are added at
// their position in the manifest. A new run with --reuse-from reuses the results of scenarios that did
// not change.
func TestResumeChanged(t *testing.T) {
	isolateEnvironment(t)
	file := filepath.Join(t.TempDir(), "j")
	m := manifest(t, agentTarget(t, "fail:bad"), scenario("a", has("x"), "x")+scenario("b", has("bad"), "bad"))
	if r := invoke(t, "run", "--manifest", m, "--run-file", file); r.code != exitError {
		t.Fatalf("exit %d: %s", r.code, r.err)
	}
	if _, r := evaluateManifest(t, m, "--resume", file); r.Reused() != 2 {
		t.Errorf("something was run again: %d reused", r.Reused())
	}
	if _, r := evaluateManifest(t, m, "--resume", file, "--retry-errors"); r.Reused() != 1 {
		t.Errorf("the error was not tried again: %d reused", r.Reused())
	}
	replace(t, m, "scenarios:\n", "scenarios:\n"+scenario("first", has("x"), "x"))
	if _, r := evaluateManifest(t, m, "--resume", file); r.Reused() != 2 || len(r.Scenarios) != 3 {
		t.Errorf("%d reused", r.Reused())
	}
	if names := finishedNames(file); !slices.Equal(names, []string{"first", "a", "b"}) {
		t.Errorf("the run file has %v", names)
	}
	if _, r := evaluateManifest(t, m, "--resume", file, "--filter", "^a$"); r.Reused() != 1 || len(r.Scenarios) != 1 || r.NotRun != 0 {
		t.Errorf("%d reused of %d", r.Reused(), len(r.Scenarios))
	}
	if names := finishedNames(file); !slices.Equal(names, []string{"first", "a", "b"}) {
		t.Errorf("the run file has %v", names)
	}
	replace(t, m, `name: "a"`, "name: new")
	other := filepath.Join(t.TempDir(), "k")
	if _, r := evaluateManifest(t, m, "--reuse-from", file, "--run-file", other, "--retry-errors"); r.Reused() != 1 || len(r.Scenarios) != 3 {
		t.Errorf("%d reused", r.Reused())
	}
	for path, want := range map[string][]string{file: {"first", "a", "b"}, other: {"first", "new", "b"}} {
		if names := finishedNames(path); !slices.Equal(names, want) {
			t.Errorf("the run file %s has %v", path, names)
		}
	}
	for _, args := range [][]string{{"--resume", m}, {"--reuse-from", m, "--run-file", other}} {
		if r := invoke(t, append([]string{"run", "--manifest", m}, args...)...); r.code != exitError || !strings.Contains(r.err, "not a run file") || !strings.Contains(r.err, "start again") {
			t.Errorf("exit %d: %s", r.code, r.err)
		}
	}
	for _, args := range [][]string{{"--reuse-from", file}, {"--reuse-from", file, "--resume", other}, {"--resume", file, "--watch"}, {"--retry-errors"}} {
		if r := invoke(t, append([]string{"run", "--manifest", m}, args...)...); r.code != exitFailed {
			t.Errorf("%v: exit %d: %s", args, r.code, r.err)
		}
	}
}

// A run that reaches a limit reports the results that it has. The other scenarios count as errors.
func TestBudgets(t *testing.T) {
	isolateEnvironment(t)
	var b strings.Builder
	for i := range 5 {
		b.WriteString(scenario(fmt.Sprint("s", i), has("x"), "x"))
	}
	for _, limit := range [][]string{{"--max-tokens", "30"}, {"--max-cost", "0.5"}} {
		out, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), b.String()), limit...)
		if out.code != exitError || r.Counts.Passed != 2 || r.Counts.Error != 3 || r.Errors[0].Kind != "budget" {
			t.Errorf("%v: exit %d: %+v", limit, out.code, r.Counts)
		}
	}
	out, r := evaluateManifest(t, manifest(t, agentTarget(t, "hang"), b.String()), "--max-time", "0.5")
	if out.code != exitError || r.Counts.Error != 5 || r.Errors[0].Kind != "budget" {
		t.Errorf("exit %d: %+v %+v", out.code, r.Counts, r.Errors)
	}
}

func TestRepeat(t *testing.T) {
	isolateEnvironment(t)
	flip := filepath.Join(t.TempDir(), "n")
	// Every second agent gives another answer.
	target := fmt.Sprintf("echo >> %s; if [ $(($(wc -l < %[1]s) %% 2)) = 0 ]; then exec %s; else exec %s; fi", flip, agentTarget(t, "say:good"), agentTarget(t, "say:bad"))
	out, r := evaluateManifest(t, manifest(t, target, scenario("a", has("good"), "x")), "--repeat", "4")
	s := r.Scenarios[0]
	if out.code != exitFailed || s.Status != report.Failed || len(s.Attempts) != 4 || s.Repeat.Passed != 2 || s.Repeat.PassRate != 0.5 || s.PassAtK["1"] != 0.5 || s.PassAtK["4"] != 1 || r.Total != 4 || r.Passed != 2 {
		t.Errorf("exit %d: %+v %+v", out.code, s.Repeat, s.PassAtK)
	}
	if low, high := s.Repeat.CI95[0], s.Repeat.CI95[1]; low < 0.14 || low > 0.16 || high < 0.84 || high > 0.86 {
		t.Errorf("%v", s.Repeat.CI95)
	}
	if out, _ = evaluateManifest(t, manifest(t, target, scenario("a", has("good"), "x")), "--repeat", "4", "--min-pass-rate", "0.5"); out.code != 0 {
		t.Errorf("exit %d", out.code)
	}
}

func TestBaseline(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	old := filepath.Join(dir, "old.json")
	two := func(a, b string) string { return scenario("a", has(a), "x") + scenario("b", has(b), "x") }
	m := manifest(t, agentTarget(t, "ok"), two("x", "other"))
	invoke(t, "run", "--manifest", m, "--json-out", old)
	out, r := evaluateManifest(t, manifest(t, agentTarget(t, "ok"), two("other", "x")), "--baseline", old)
	if b := r.Baseline; out.code != exitFailed || len(b.NewFail) != 1 || len(b.NewPass) != 1 || !strings.HasPrefix(b.NewFail[0], "a: step 1") {
		t.Errorf("exit %d: %+v", out.code, b)
	}
	if out, r = evaluateManifest(t, m, "--baseline", old, "--max-new-fail", "0"); out.code != 0 || len(r.Baseline.NewFail) != 0 {
		t.Errorf("known failures: exit %d: %+v", out.code, r.Baseline)
	}
	for rate, want := range map[string]int{"0.5": 0, "0.6": exitFailed} { // all limits count
		if out, _ = evaluateManifest(t, m, "--baseline", old, "--max-new-fail", "0", "--min-pass-rate", rate); out.code != want {
			t.Errorf("known failures and a pass rate of %s: exit %d", rate, out.code)
		}
	}
	more := manifest(t, agentTarget(t, "ok"), two("x", "other")+scenario("new", has("x"), "x"))
	if out, r = evaluateManifest(t, more, "--baseline", old, "--max-new-fail", "0"); out.code != 0 || len(r.Baseline.Added) != 1 {
		t.Errorf("a new scenario that passes: exit %d: %+v", out.code, r.Baseline)
	}
	more = manifest(t, agentTarget(t, "ok"), two("x", "other")+scenario("new", has("other"), "x"))
	if out, r = evaluateManifest(t, more, "--baseline", old, "--max-new-fail", "0"); out.code != exitFailed || len(r.Baseline.NewFail) != 1 {
		t.Errorf("a new scenario that does not: exit %d: %+v", out.code, r.Baseline)
	}
	out, r = evaluateManifest(t, m, "--rerun-failed", old)
	if out.code != exitFailed || len(r.Scenarios) != 1 || r.Scenarios[0].Name != "b" {
		t.Errorf("exit %d: %v", out.code, statuses(r))
	}
}

func TestWorkspaces(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "write"), `
  - name: a
    steps:
      - input: x
        constraints:
          scenario: {workspace: {copy: fixture, git: true}}
          checks:
            - {type: file, path: answer.txt, condition: equals, value: "42\n"}
            - {type: file, path: old.txt, exists: false}
            - {type: file, path: kept.txt}
            - {type: file, path: answer.txt, condition: contains, value: "43"}
            - {type: changes, only: ["*.txt"], includes: [answer.txt, old.txt]}
            - {type: changes, only: ["src/**"]}
            - {type: command, run: "test -d .git && cat answer.txt", condition: contains, value: "42"}
            - {type: command, run: "exit 3", exit_code: 3}
            - {type: command, run: "exit 3"}
            - {type: command, run: "sleep 100", timeout_s: 0.1}
`)
	dir := filepath.Dir(m)
	write(t, filepath.Join(dir, "fixture", "old.txt"), "old")
	write(t, filepath.Join(dir, "fixture", "kept.txt"), "kept")
	_, r := evaluateManifest(t, m)
	got, want := verdicts(r), []bool{true, true, true, false, true, false, true, true, false, false}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v %+v", got, r.Scenarios[0])
	}
	if _, err := os.Stat(filepath.Join(dir, "fixture", "old.txt")); err != nil {
		t.Errorf("the fixture was changed: %v", err)
	}
	config := options(t, r.Agent, "config")
	space, _ := config["workspace"].(string)
	if _, err := os.Stat(space); space == "" || !os.IsNotExist(err) {
		t.Errorf("%q is left: %v", space, err)
	}
}

func TestMatrixAndDataset(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "ok"), `
  - name: "ask {{name}}"
    steps:
      - input: "who is {{name}}"
        constraints: {scenario: {dataset: people.csv}}
        graders: [{type: text_match, condition: contains, value: "{{answer}}"}]
`)
	write(t, filepath.Join(filepath.Dir(m), "people.csv"), "name,answer\nAda,Ada 1\n\"Bob, the\",nobody\n")
	_, r := evaluateManifest(t, m, "--matrix", "model=p/a,p/b", "--matrix", "seed=1,2", "-j", "4")
	if len(r.Scenarios) != 8 || r.Counts.Passed != 4 || r.Scenarios[1].Name != "ask Bob, the" || r.Scenarios[7].Variant["model"] != "p/b" || r.Scenarios[7].Variant["seed"] != "2" {
		t.Errorf("%v", statuses(r))
	}
	config := options(t, r.Scenarios[7].Agent, "config")
	if config["model"] != "p/b" || config["seed"] != 2.0 {
		t.Errorf("%v", config)
	}
	if _, r = evaluateManifest(t, m, "--filter", "^ask Ada"); len(r.Scenarios) != 1 {
		t.Errorf("%v", statuses(r))
	}
	write(t, filepath.Join(filepath.Dir(m), "people.csv"), "other\nx\n")
	if r := invoke(t, "run", "--manifest", m); r.code != exitError || !strings.Contains(r.err, "{{name}}") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

func TestInit(t *testing.T) {
	isolateEnvironment(t)
	python := needs.Program(t, "python3", "python3")
	t.Chdir(t.TempDir())
	if r := invoke(t, "init"); r.code != 0 {
		t.Fatal(r.err)
	}
	if r := invoke(t, "init"); r.code != exitError || !strings.Contains(r.err, "--force") {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	if r := invoke(t, "init", "--force"); r.code != 0 {
		t.Error(r.err)
	}
	if r := invoke(t, "run", "-m", "ecp_eval/manifest.yaml", "--timeout", "60"); r.code != 0 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
	r := invoke(t, "conformance", "--target", python+" ecp_eval/agent.py", "--extended", "--timeout", "60")
	if r.code != 0 || strings.Contains(r.out, "FAIL") || !strings.Contains(r.out, "Conformance: 3/3 checks passed") {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
	if r := invoke(t, "doctor"); r.code != 0 || !strings.Contains(r.out, "python3") {
		t.Errorf("exit %d: %s", r.code, r.out)
	}
}

// options returns the value of a capability that the agent reported, such as config.
func options(t *testing.T, a *report.Agent, name string) (out map[string]any) {
	t.Helper()
	if err := json.Unmarshal(a.Capabilities[name], &out); err != nil {
		t.Fatalf("%s: %v", a.Capabilities[name], err)
	}
	return out
}

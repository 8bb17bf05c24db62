package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// documentedCommands returns the commands of the documentation's walkthrough: the shell commands,
// and the one of the CI job.
func documentedCommands(t *testing.T) (commands []string, job string) {
	t.Helper()
	data, err := os.ReadFile("../../docs/ecp-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	_, walk, found := strings.Cut(string(data), "## An evaluation of your own")
	walk, _, _ = strings.Cut(walk, "\n## ")
	for _, m := range regexp.MustCompile(`(?m)^(      - run: )?ecp (.*)$`).FindAllStringSubmatch(walk, -1) {
		if m[1] != "" {
			job = m[2]
		} else {
			commands = append(commands, m[2])
		}
	}
	if !found || len(commands) != 5 || job == "" {
		t.Fatalf("%q, %q", commands, job)
	}
	return commands, job
}

// The documentation leads from nothing to a job that fails when the agent gets worse, and passes
// otherwise.
func TestNewcomer(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	needs.Program(t, "python3", "python3")
	commands, job := documentedCommands(t)
	t.Chdir(t.TempDir())
	walk := func(line string, want int) {
		t.Helper()
		if r := invoke(t, strings.Fields(line)...); r.code != want {
			t.Fatalf("ecp %s: exit %d, want %d: %s", line, r.code, want, r.err)
		}
	}
	agent := filepath.Join("ecp_eval", "agent.py")
	change := func(old, now string) {
		t.Helper()
		data, err := os.ReadFile(agent)
		if err != nil || !strings.Contains(string(data), old) {
			t.Fatalf("%v: the agent has no %s", err, old)
		}
		write(t, agent, strings.ReplaceAll(string(data), old, now))
	}
	for _, line := range commands[:3] {
		walk(line, 0)
	}
	walk(job, 0)
	change("The sum is %d.", "Sum: %d.")
	walk(job, exitFailed)
	if _, err := os.Stat("report.html"); err != nil {
		t.Error(err)
	}
	walk(commands[4], exitFailed) // even with an allowance for chance
	change("Sum: %d.", "The sum is %d.")
	change(`"status": "paused"`, `"status": "done"`) // as bad as the baseline
	walk(commands[3], exitFailed)
	walk(job, 0)
	walk(commands[4], 0)
}

// Only a significant change is a regression: one of many scenarios may fail, most may not.
func TestFailOnRegression(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	var b strings.Builder
	for _, name := range strings.Split("abcdefghijkl", "") {
		b.WriteString(scenario(name, has(name), name))
	}
	dir := t.TempDir()
	baseline := filepath.Join(dir, "b.json")
	m := manifest(t, agentTarget(t, "fail:none"), b.String())
	if out := invoke(t, "run", "--manifest", m, "--json-out", baseline); out.code != 0 {
		t.Fatal(out.err)
	}
	for failing, want := range map[string]int{"[c]": 0, "[cd]": 0, "[cdefghijk]": exitFailed} {
		changed := regexp.MustCompile(`value: "(`+failing+`)"`).ReplaceAllString(b.String(), `value: "not $1"`)
		m := manifest(t, agentTarget(t, "fail:none"), changed)
		out := invoke(t, "run", "--manifest", m, "--baseline", baseline, "--fail-on-regression")
		if out.code != want {
			t.Errorf("%s: exit %d, want %d: %s", failing, out.code, want, out.err)
		}
	}
	for _, wrong := range [][]string{{"--fail-on-regression"}, {"--fail-on-regression", "--baseline", baseline, "--max-new-fail", "0"}} {
		if out := invoke(t, append([]string{"run", m}, wrong...)...); out.code != 2 || !strings.Contains(out.err, "--fail-on-regression") {
			t.Errorf("%v: exit %d: %s", wrong, out.code, out.err)
		}
	}
	other := manifest(t, agentTarget(t, "fail:none"), scenario("other", has("x"), "x"))
	if out := invoke(t, "run", "--manifest", other, "--baseline", baseline, "--fail-on-regression"); out.code != exitError || !strings.Contains(out.err, "no case in common") {
		t.Errorf("another manifest: exit %d: %s", out.code, out.err)
	}
	if out := invoke(t, "run", "--manifest", m, "--config", "x=1", "--baseline", baseline, "--fail-on-regression"); out.code != exitError {
		t.Errorf("another configuration: exit %d: %s", out.code, out.err)
	}
}

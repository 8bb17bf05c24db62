package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutputs(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	page := filepath.Join(dir, "summary.md")
	junit := filepath.Join(dir, "j.xml")
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_STEP_SUMMARY", page)
	m := manifest(t, agentTarget(t, "say:::error::<script>\x01|*"), scenario("a, b: 100%", has("missing"), "x")+scenario("good", has("error"), "x"))
	r := invoke(t, "run", "--manifest", m, "--junit", junit)
	if r.code != exitFailed || strings.Count(r.out, "\n") != 1 || !strings.HasPrefix(r.out, "::error file=") || !strings.Contains(r.out, "line=5,title=ECP failed%3A a%2C b%3A 100%25::step 1") {
		t.Errorf("exit %d: %q", r.code, r.out)
	}
	if data, err := os.ReadFile(page); err != nil || !strings.Contains(string(data), "| 2 | 1 | 1 | 0 | 1 of 2 |") || strings.Contains(string(data), "<script>") {
		t.Errorf("%v: %s", err, data)
	}
	data, err := os.ReadFile(junit)
	if err != nil || !strings.Contains(string(data), `tests="2" failures="1" errors="0"`) || strings.Contains(string(data), "<script>") || strings.Contains(string(data), "\x01") {
		t.Errorf("%v: %s", err, data)
	}
}

// A report replaces only a report of its format, so a wrong name does not destroy the source of an agent.
func TestReportsReplaceOnlyReports(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	m := manifest(t, agentTarget(t, "say:::hello|*"), scenario("a", has("hello"), "x"))
	source := filepath.Join(dir, "agent.py")
	const text = "# an agent\nprint('{}')\n"
	write(t, source, text)
	refused := func(args ...string) {
		t.Helper()
		r := invoke(t, args...)
		data, err := os.ReadFile(source)
		if r.code != exitError || !strings.Contains(r.err, source+" exists, but is not a report of this format") || err != nil || string(data) != text {
			t.Errorf("%q: exit %d: %s\n%s", args, r.code, r.err, data)
		}
	}
	json := filepath.Join(dir, "report.json")
	for _, flag := range []string{"--report", "--json-out", "--audit-out", "--junit", "--markdown"} {
		refused("run", "--manifest", m, flag, source)
		for range 2 {
			if r := invoke(t, "run", "--manifest", m, flag, filepath.Join(dir, "report"+flag)); r.code != 0 {
				t.Errorf("%s replaces its own report: exit %d: %s", flag, r.code, r.err)
			}
		}
	}
	if r := invoke(t, "run", "--manifest", m, "--json-out", json); r.code != 0 {
		t.Fatal(r.err)
	}
	refused("export", "swebench", json, "--out", source)
	refused("conformance", "--target", agentTarget(t, "say:::hello|*"), "--json-out", source)
}

// Reports that cannot be written and baselines that cannot be compared are refused before the first
// scenario.
func TestOutputsAreCheckedFirst(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	ran := filepath.Join(dir, "asks")
	m := manifest(t, agentTarget(t, "log", ran), scenario("a", has("other"), "x"))
	empty := filepath.Join(dir, "empty.json")
	write(t, empty, "{}")
	missing := filepath.Join(dir, "no", "such")
	for _, c := range []struct{ flag, value, says string }{
		{"--report", missing, "no such file"},
		{"--json-out", missing, "no such file"},
		{"--junit", missing, "no such file"},
		{"--markdown", missing, "no such file"},
		{"--audit-out", missing, "no such file"},
		{"--run-file", missing, "no such file"},
		{"--report", dir, "directory"},
		{"--baseline", missing, "no such file"},
		{"--baseline", empty, "not a report"},
	} {
		r := invoke(t, "run", "--manifest", m, c.flag, c.value)
		if r.code != exitError || !strings.Contains(r.err, c.flag) || !strings.Contains(r.err, c.value) || !strings.Contains(r.err, c.says) || strings.Contains(r.err, "/.such-") {
			t.Errorf("%s %s: exit %d: %s", c.flag, c.value, r.code, r.err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Fatalf("%s %s: a scenario ran", c.flag, c.value)
		}
	}
	// Known failures are not new, an agent without costs cannot be held to a limit, and times may have units.
	old := filepath.Join(dir, "old.json")
	m = manifest(t, agentTarget(t, "no-cost"), scenario("a", has("other"), "x"))
	invoke(t, "run", "--manifest", m, "--json-out", old)
	r := invoke(t, "run", "--manifest", m, "--baseline", old, "--max-new-fail", "0", "--max-cost", "1", "--max-time", "10m")
	lines := strings.Split(strings.TrimSpace(r.err), "\n")
	if r.code != 0 || !strings.Contains(lines[len(lines)-1], "no new failures") || strings.Count(r.err, "reports no cost") != 1 {
		t.Errorf("exit %d: %s", r.code, r.err)
	}
}

// A report is written to the target of a link, and the link stays.
func TestOutputLinks(t *testing.T) {
	isolateEnvironment(t)
	dir := t.TempDir()
	link, file := filepath.Join(dir, "latest.json"), filepath.Join(dir, "1.json")
	write(t, file, "{}")
	if err := os.Symlink("1.json", link); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, "run", "--manifest", manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x")), "--json-out", link); r.code != 0 {
		t.Fatal(r.err)
	}
	if to, err := os.Readlink(link); err != nil || to != "1.json" {
		t.Errorf("the link is %q, %v", to, err)
	}
	if _, err := readReport(t.Context(), file); err != nil {
		t.Error(err)
	}
}

// An agent's text cannot control the terminal.
func TestSummary(t *testing.T) {
	isolateEnvironment(t)
	_, r := evaluateManifest(t, manifest(t, agentTarget(t, "say:\x1b[2Jfine\u202edab\r\n"), scenario("a", has("x"), "x")), "--matrix", "model=p/a,p/b")
	var out strings.Builder
	summary(&out, r)
	if text := out.String(); strings.ContainsAny(text, "\x1b\r\u202e") || !strings.Contains(text, "FAILED  a [model=p/a]\n") || !strings.Contains(text, "model=p/b  0 of 1 scenarios passed") {
		t.Errorf("%q", text)
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOutputs(t *testing.T) {
	quiet(t)
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
	if r = invoke(t, "run", "--manifest", m, "--json-out", filepath.Join(dir, "no", "such", "dir.json"), "--report", filepath.Join(dir, "r.html")); r.code != exitError {
		t.Errorf("an unwritable file: exit %d", r.code)
	}
	if _, err := os.Stat(filepath.Join(dir, "r.html")); err != nil {
		t.Errorf("the other report is lost: %v", err)
	}
}

// A report is written to the target of a link, and the link stays.
func TestOutputLinks(t *testing.T) {
	quiet(t)
	dir := t.TempDir()
	link, file := filepath.Join(dir, "latest.json"), filepath.Join(dir, "1.json")
	write(t, file, "old")
	if err := os.Symlink("1.json", link); err != nil {
		t.Fatal(err)
	}
	if r := invoke(t, "run", "--manifest", manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x")), "--json-out", link); r.code != 0 {
		t.Fatal(r.err)
	}
	if to, err := os.Readlink(link); err != nil || to != "1.json" {
		t.Errorf("the link is %q, %v", to, err)
	}
	if _, err := readReport(file); err != nil {
		t.Error(err)
	}
}

// An agent's text cannot control the terminal.
func TestSummary(t *testing.T) {
	quiet(t)
	_, r := evaluated(t, manifest(t, agentTarget(t, "say:\x1b[2Jfine\u202edab\r\n"), scenario("a", has("x"), "x")), "--matrix", "model=p/a,p/b")
	var out strings.Builder
	summary(&out, r)
	if text := out.String(); strings.ContainsAny(text, "\x1b\r\u202e") || !strings.Contains(text, "FAILED  a [model=p/a]\n") || !strings.Contains(text, "model=p/b  0 of 1 scenarios passed") {
		t.Errorf("%q", text)
	}
}

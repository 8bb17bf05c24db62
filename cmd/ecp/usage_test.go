package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An error in a command line, or in a file that it names, is reported in one line with the valid
// values.
func TestWrongInputsSayWhatWouldBeRight(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "report.json")
	if err := os.WriteFile(report, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	nowhere := filepath.Join(dir, "nowhere.yaml")
	out, link := filepath.Join(dir, "out"), filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		link = dir // Windows may not allow it
	}
	for _, v := range []string{"OPENAI_API_KEY", "ECP_LLM_JUDGE_MODEL", "ECP_CACHE"} {
		t.Setenv(v, "")
	}
	started := filepath.Join(dir, "started")
	two := manifest(t, "touch "+started, scenario("One", has("x"), "x")+scenario("Two", "{type: llm_judge, prompt: be kind}", "x"))
	utf16 := func(name string) string {
		path := filepath.Join(t.TempDir(), name)
		write(t, path, "\xff\xfea\x00\n\x00")
		return path
	}
	setup := func(text string) string { // a manifest whose scenario starts with this
		path := manifest(t, "touch "+started, "  - name: a\n    steps: [{input: \"{{name}}\", constraints: {scenario: {"+text+"}}, graders: ["+has("x")+"]}]\n")
		write(t, filepath.Join(filepath.Dir(path), "rows.csv"), "q\n1\n")
		return path
	}
	for _, c := range []struct {
		args []string
		code int
		want []string
		not  []string
	}{
		{[]string{"--help"}, 0, []string{"validate"}, []string{"completion"}},
		{[]string{"rnu"}, 2, []string{"did you mean run?"}, nil},
		{[]string{"run", nowhere}, 1, []string{nowhere + ": no such file"}, []string{"stat "}},
		{[]string{"validate", nowhere}, 1, []string{nowhere + ": no such file"}, []string{"stat "}},
		{[]string{"validate", setup("workspace: gone")}, 1, []string{`manifest.yaml: scenario "a": workspace: `, "gone: no such file"}, []string{"valid:", "stat "}},
		{[]string{"run", setup("workspace: gone")}, 1, []string{`scenario "a": workspace: `, "gone: no such file"}, []string{"stat "}},
		{[]string{"validate", setup("workspace: manifest.yaml")}, 1, []string{"manifest.yaml is not a folder"}, []string{"valid:"}},
		{[]string{"validate", setup("dataset: gone.csv")}, 1, []string{`scenario "a": dataset: `, "gone.csv: no such file"}, []string{"valid:"}},
		{[]string{"validate", setup("dataset: rows.csv")}, 1, []string{"rows.csv, record 1: unknown {{name}}; the record has q"}, []string{"valid:"}},
		{[]string{"validate", setup("tests: gone, environment: local")}, 1, []string{"gone: no such file"}, []string{"valid:"}},
		{[]string{"validate", setup("environment: {kind: docker, dockerfile: gone}")}, 1, []string{"dockerfile: ", "gone: no such file"}, []string{"valid:"}},
		{[]string{"validate", utf16("manifest.yaml")}, 1, []string{"manifest.yaml:1:1: the text is UTF-16; save it as UTF-8"}, []string{"empty"}},
		{[]string{"validate", setup("dataset: " + utf16("rows.csv"))}, 1, []string{"rows.csv: the text is UTF-16; save it as UTF-8"}, nil},
		{[]string{"run", two, "--baseline", utf16("report.json")}, 1, []string{"report.json: the text is UTF-16; save it as UTF-8"}, []string{"invalid character"}},
		{[]string{"run", "--timeout", "abc", nowhere}, 2, []string{"--timeout", "number of seconds", `"abc"`}, nil},
		{[]string{"run", "--jobs", "many", nowhere}, 2, []string{"--jobs", `"many"`, "whole number"}, []string{"strconv"}},
		{[]string{"run", "--max-cost", "much", nowhere}, 2, []string{"--max-cost", `"much"`, "a number"}, []string{"strconv"}},
		{[]string{"run", "--json-out", "", nowhere}, 2, []string{"--json-out is empty"}, nil},
		{[]string{"run", nowhere, "--matrix", "model=a,b,a"}, 2, []string{`--matrix: model has the value "a" twice`}, nil},
		{[]string{"run", nowhere, "--json-out", out, "--junit", out}, 2, []string{"--json-out and --junit are the same file, " + out}, nil},
		{[]string{"run", nowhere, "--report", out, "--markdown", filepath.Join(link, "out")}, 2, []string{"--report and --markdown are the same file"}, nil},
		{[]string{"run", nowhere, "--audit-out", out, "--run-file", out}, 2, []string{"--audit-out and --run-file are the same file"}, nil},
		{[]string{"run", nowhere, "--json-out", out, "--resume", out}, 2, []string{"--resume and --json-out are the same file"}, nil},
		{[]string{"run", nowhere, "--json-out", nowhere}, 2, []string{"the manifest and --json-out are the same file"}, nil},
		{[]string{"run", two, "--json-out", filepath.Join(filepath.Dir(two), ".", "manifest.yaml")}, 2, []string{"the manifest and --json-out are the same file"}, nil},
		{[]string{"run", nowhere, "--run-file", out, "--reuse-from", report, "--json-out", report}, 2, []string{"--reuse-from and --json-out are the same file"}, nil},
		{[]string{"run", nowhere, "--json-out", os.DevNull, "--junit", out}, 1, []string{nowhere + ": no such file"}, nil},
		{[]string{"run", two, "--filter", "Nope"}, 1, []string{"--filter Nope matches none of the 2 scenarios (One, Two)"}, nil},
		{[]string{"run", two}, 1, []string{`scenario "Two": llm_judge: OPENAI_API_KEY not set`}, []string{"ERROR  "}},
		{[]string{"export", "swebench", report, "-o", report}, 2, []string{"--out is the report itself, " + report}, nil},
		{[]string{"conformance"}, 2, []string{"--target is missing", "URL"}, nil},
		{[]string{"conformance", "--target", ""}, 2, []string{"--target is"}, nil},
		{[]string{"trend", report}, 1, []string{"report.json", "no report matches"}, nil},
		{[]string{"run", two, "--filter", "One"}, 1, []string{"ERROR  One"}, []string{"OPENAI_API_KEY"}}, // last, because it starts the agent
	} {
		if _, err := os.Stat(started); err == nil {
			t.Error("an agent was started")
		}
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), c.args, streams{&stdout, &stderr})
		out := stdout.String() + stderr.String()
		if code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, code, c.code, out)
		}
		for _, part := range c.want {
			if !strings.Contains(out, part) {
				t.Errorf("%q: the output lacks %q: %s", c.args, part, out)
			}
		}
		for _, part := range c.not {
			if strings.Contains(out, part) {
				t.Errorf("%q: the output contains %q: %s", c.args, part, out)
			}
		}
	}
}

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
		{[]string{"run", "--timeout", "abc", nowhere}, 2, []string{"--timeout", "number of seconds", `"abc"`}, nil},
		{[]string{"run", "--jobs", "many", nowhere}, 2, []string{"--jobs", `"many"`, "whole number"}, []string{"strconv"}},
		{[]string{"run", "--max-cost", "much", nowhere}, 2, []string{"--max-cost", `"much"`, "a number"}, []string{"strconv"}},
		{[]string{"run", "--json-out", "", nowhere}, 2, []string{"--json-out is empty"}, nil},
		{[]string{"conformance"}, 2, []string{"--target is missing", "URL"}, nil},
		{[]string{"conformance", "--target", ""}, 2, []string{"--target is"}, nil},
		{[]string{"trend", report}, 1, []string{"report.json", "no report matches"}, nil},
	} {
		var stdout, stderr bytes.Buffer
		code := run(context.Background(), c.args, streams{&stdout, &stderr})
		out := stdout.String() + stderr.String()
		if code != c.code {
			t.Errorf("%q: exit code %d, want %d: %s", c.args, code, c.code, out)
		}
		for _, part := range c.want {
			if !strings.Contains(out, part) {
				t.Errorf("%q: %q is not said: %s", c.args, part, out)
			}
		}
		for _, part := range c.not {
			if strings.Contains(out, part) {
				t.Errorf("%q: %q is said: %s", c.args, part, out)
			}
		}
	}
}

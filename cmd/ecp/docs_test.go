package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The documentation has exactly the existing commands and flags.
func TestDocs(t *testing.T) {
	data, err := os.ReadFile("../../docs/ecp-runtime.md")
	if err != nil {
		t.Fatal(err)
	}
	doc := string(data)
	known := map[string]bool{}
	for _, command := range []string{"run", "validate", "init", "view", "import", "export", "conformance", "trend", "doctor", "submit", "watch", "worker", "cluster runs"} {
		if !strings.Contains(doc, "| `ecp "+command) {
			t.Errorf("ecp %s is not documented", command)
		}
		help := invoke(t, append(strings.Fields(command), "--help")...)
		if help.code != 0 {
			t.Fatalf("%s: exit %d", command, help.code)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +(?:-\w, )?--([a-z-]+)`).FindAllStringSubmatch(help.out, -1) {
			known[m[1]] = true
		}
	}
	if len(known) < 30 {
		t.Fatalf("only %d flags are seen", len(known))
	}
	named := map[string]bool{}
	doc = regexp.MustCompile(`--target "[^"]*"`).ReplaceAllString(doc, "--target") // flags of another program
	for _, m := range regexp.MustCompile("--([a-z][a-z-]+)").FindAllStringSubmatch(doc, -1) {
		named[m[1]] = true
		if !known[m[1]] {
			t.Errorf("there is no --%s", m[1])
		}
	}
	for _, obvious := range []string{"help", "verbose", "no-verbose"} {
		delete(known, obvious)
	}
	for flag := range known {
		if !named[flag] {
			t.Errorf("--%s is not documented", flag)
		}
	}
}

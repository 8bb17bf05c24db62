package main

import (
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

var updateDocs = flag.Bool("update", false, "rewrite the reference in docs/commands.md")

// The reference in docs/commands.md is the help of each command, so all commands and flags are
// documented, and all documented ones exist.
func TestCommandsDoc(t *testing.T) {
	const begin, end = "<!-- commands: go test ./cmd/eca -run TestCommandsDoc -update -->\n", "<!-- end of commands -->\n"
	page := filepath.Join("..", "..", "docs", "commands.md")
	raw, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "\r\n", "\n")
	before, rest, found := strings.Cut(text, begin)
	_, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s lacks the comments between which the commands belong", page)
	}
	var reference strings.Builder
	documented := map[string]bool{}
	describe(t, &reference, documented, command(strings.NewReader(""), io.Discard, io.Discard))
	want := before + begin + reference.String() + end + after
	if *updateDocs {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("%s: run go test ./cmd/eca -run TestCommandsDoc -update:\n%s", page, diff)
	}
	// The text around the reference, and the README, name existing commands only.
	readme, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("(?m)(?:^|`)(?:\\$ )?eca ([a-z][a-z0-9-]*)").FindAllStringSubmatch(before+after+string(readme), -1) {
		if !documented["eca "+m[1]] && m[1] != "is" { // a line can begin with "eca is"
			t.Errorf("there is no command eca %s", m[1])
		}
	}
	const fewest = 30
	if len(documented) < fewest {
		t.Errorf("only %d commands are seen", len(documented))
	}
}

// describe writes the help of a command and its subcommands.
func describe(t *testing.T, out *strings.Builder, documented map[string]bool, cmd *cobra.Command) {
	t.Helper()
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return
	}
	documented[cmd.CommandPath()] = true
	var help strings.Builder
	cmd.SetOut(&help)
	if err := cmd.Help(); err != nil {
		t.Fatal(err)
	}
	out.WriteString("\n### " + cmd.CommandPath() + "\n\n```\n" + strings.TrimSpace(help.String()) + "\n```\n")
	for _, sub := range cmd.Commands() {
		describe(t, out, documented, sub)
	}
	if !cmd.HasParent() {
		out.WriteString("\n")
	}
}

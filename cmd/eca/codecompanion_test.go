package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// neovim is a Neovim 0.minor or newer.
func neovim(t *testing.T, forWhat string, minor int) string {
	t.Helper()
	nvim := needs.Program(t, "nvim", "neovim")
	version, err := exec.Command(nvim, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if m := regexp.MustCompile(`NVIM v(\d+)\.(\d+)`).FindSubmatch(version); m != nil {
		if n, _ := strconv.Atoi(string(m[2])); string(m[1]) == "0" && n < minor {
			t.Skipf("NOT TESTED with %s: it needs Neovim 0.%d, this is %s; install a newer one, of neovim.io or of Debian's next release", forWhat, minor, m[0])
		}
	}
	return nvim
}

// codecompanion is a Neovim that plays testdata/codecompanion.lua.
func (p place) codecompanion(t *testing.T, out string) *exec.Cmd {
	t.Helper()
	needs.POSIX(t)
	plugin, plenary := os.Getenv("ECA_CODECOMPANION"), os.Getenv("ECA_PLENARY")
	if plugin == "" || plenary == "" {
		t.Skip("NOT TESTED with CodeCompanion: git clone https://github.com/olimorris/codecompanion.nvim and https://github.com/nvim-lua/plenary.nvim, then ECA_CODECOMPANION=DIR ECA_PLENARY=DIR")
	}
	nvim := neovim(t, "CodeCompanion", 11)
	script, err := filepath.Abs("testdata/codecompanion.lua")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const long = 10 * time.Minute // long enough: each wait of the script has its own limit
	ctx, cancel := context.WithTimeout(t.Context(), long)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, nvim, "--headless", "--clean", "-S", script)
	cmd.Dir = p.root
	cmd.Env = append([]string{"PLUGIN=" + plugin, "PLENARY=" + plenary, "ECA=" + self, "OUT=" + out, "TERM=dumb"}, p.env...)
	return cmd
}

const companionTape = `
cassette: 1
turns:
  - user: '(?i)hello'
    steps: [{reasoning: I should greet., text: "## Hello\n\nSome *Markdown*, 漢字 and\n\n- an item\n"}]
  - user: '^edit open'
    steps: [{calls: [{id: c1, tool: eca__edit_file, arguments: {path: "${workspace}/open.txt", original_content: two, new_content: TWO}}]}, {text: Edited.}]
  - user: '^edit dosopen'
    steps: [{calls: [{id: c2, tool: eca__edit_file, arguments: {path: "${workspace}/dosopen.txt", original_content: two, new_content: TWO}}]}, {text: Edited.}]
  - user: '^edit dos'
    steps: [{calls: [{id: c3, tool: eca__edit_file, arguments: {path: "${workspace}/dos.txt", original_content: two, new_content: TWO}}]}, {text: Edited.}]
  - user: '^both'
    steps: [{calls: [{id: c7, tool: eca__multi_edit, arguments: {path: "${workspace}/long.txt", edits: [{original_content: first, new_content: FIRST}, {original_content: last, new_content: LAST}]}}]}, {text: Edited.}]
  - user: '^shell'
    steps: [{calls: [{id: c4, tool: eca__shell_command, arguments: {command: "printf 'a: %s\n' a-rather-long-argument-that-labels-cut >said && echo the-end-of-it"}}]}, {text: 'It said: ${result:(the-end-of-it)}'}]
  - user: '^refuse'
    steps: [{calls: [{id: c5, tool: eca__write_file, arguments: {path: "${workspace}/no.txt", content: x}}]}, {text: Never said.}]
  - user: '^ask'
    steps: [{text: I ask., calls: [{id: c6, tool: eca__ask_user, arguments: {question: "Which colour?", options: [{label: red}]}}]}, {text: Never said.}]
  - user: '^fail'
    steps: [{text: It began, error: {status: 400, message: no such luck, late: true}}]
  - user: 'and now'
    steps: [{text: Now it is done.}]
  - user: '^slow'
    steps: [{text: 'drip ', repeat: 100000, delay: 10ms}]
`

// CodeCompanion, the plugin for Neovim, runs turns of eca as a user would. The test checks the text of
// the chat buffer and the files on the disk.
func TestCodeCompanion(t *testing.T) {
	p := newProvider(t, companionTape)
	at := newPlace(t, p.env()...)
	out := filepath.Join(t.TempDir(), "out.json")
	cmd := at.codecompanion(t, out)
	for name, text := range map[string]string{"open.txt": "one\ntwo\n", "dos.txt": "one\r\ntwo\r\n", "dosopen.txt": "one\r\ntwo\r\n", "long.txt": "first\n" + strings.Repeat("line\n", 30) + "last\n"} {
		if err := os.WriteFile(filepath.Join(at.root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said, err := cmd.CombinedOutput()
	raw, missing := os.ReadFile(out)
	if err != nil || missing != nil {
		t.Fatalf("%v, %v\n%s", err, missing, said)
	}
	var got struct {
		Error, Title, Model, Restored string
		Said                          map[string]string
		Log                           []string
		Commands                      int
		Mode, Listed, Loaded          bool
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	if got.Error != "" {
		t.Fatalf("%s\n%s\n%s", got.Error, got.Said, strings.Join(got.Log, "\n"))
	}
	for name, want := range map[string]string{"open.txt": "one\nTWO\n", "dos.txt": "one\r\nTWO\r\n", "dosopen.txt": "one\r\nTWO\r\n"} {
		if text, err := os.ReadFile(filepath.Join(at.root, name)); err != nil || string(text) != want {
			t.Errorf("%s is %q: %v", name, text, err)
		}
	}
	if _, err := os.Stat(filepath.Join(at.root, "no.txt")); err == nil {
		t.Error("what was refused was written")
	}
	for turn, pieces := range map[string][]string{
		"hello":        {"I should greet.", "\n## Hello\n\nSome *Markdown*, 漢字 and\n\n- an item"},
		"edit open":    {"Proposed edits for `open.txt`", "-two\n+TWO\n", "Edit: open.txt", "\nEdited."},
		"edit dos":     {"-two\n+TWO\n", "\nEdited."},
		"edit dosopen": {"-two\n+TWO\n", "\nEdited."},
		"both":         {"-first\n+FIRST\n", "-last\n+LAST\n"},
		"shell":        {"Execute: `printf 'a: %s ⏎ ' a-rather-long-argument-that-labels-cut >said && echo the-end-of-it`\n", "It said: the-end-of-it"},
		"refuse":       {"Proposed edits for `no.txt`", "You selected: Reject"},
		"ask":          {"I ask.\n", "\n\nWhich colour?\n- red"},
		"fail":         {"It began\n", "\n````txt\n", "no such luck\n````\n"},
		"hello again":  {"\n## Hello\n"},
		"and now":      {"Now it is done."},
	} {
		for _, piece := range pieces {
			if !strings.Contains(got.Said[turn], piece) {
				t.Errorf("%s: %q is not in:\n%s", turn, piece, got.Said[turn])
			}
		}
	}
	if n := strings.Count(got.Said["fail"], "no such luck"); n != 1 {
		t.Errorf("the buffer has the error %d times, want once:\n%s", n, got.Said["fail"])
	}
	if got.Commands == 0 || !strings.HasPrefix(got.Model, "openai/") || !got.Mode || !got.Listed || !got.Loaded {
		t.Errorf("commands %d, model %q, mode %v, listed %v, loaded %v", got.Commands, got.Model, got.Mode, got.Listed, got.Loaded)
	}
	for _, piece := range []string{"edit open", "Edited.", "Which colour?", "Now it is done."} {
		if !strings.Contains(got.Restored, piece) {
			t.Errorf("%q is not in what was restored:\n%s", piece, got.Restored)
		}
	}
	for i, line := range got.Log {
		if strings.HasPrefix(line, "[ERROR]") && !strings.Contains(strings.Join(got.Log[i:min(i+2, len(got.Log))], "\n"), "no such luck") {
			t.Errorf("the client's log: %s", strings.Join(got.Log[i:min(i+3, len(got.Log))], "\n"))
		}
	}
}

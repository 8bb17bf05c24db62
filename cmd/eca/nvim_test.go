package main

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

const nvimTape = `
cassette: 1
turns:
  - user: '^hello'
    steps: [{reasoning: I should greet., text: "Hello, **world**."}]
  - user: '^write'
    steps: [{calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "one\ntwo\n"}}]}, {text: Written.}]
  - user: '^shell'
    steps: [{calls: [{id: c2, tool: eca__shell_command, arguments: {command: "printf a-first-part-that-is-long\ntouch second"}}]}, {text: It ran.}]
  - user: '^refuse'
    steps: [{calls: [{id: c3, tool: eca__write_file, arguments: {path: "${workspace}/refused", content: x}}]}, {text: Never said.}]
  - user: '^last'
    steps: [{text: 'The last.'}]
`

// TestNvim plays two sessions in eca-nvim, in a real Neovim. It checks the windows and the files,
// and that the second session does not continue the chat of the first.
func TestNvim(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	plugin, nui := os.Getenv("ECA_NVIM"), os.Getenv("ECA_NUI")
	if plugin == "" || nui == "" {
		t.Skip("NOT TESTED with eca-nvim: git clone https://github.com/editor-code-assistant/eca-nvim and https://github.com/MunifTanjim/nui.nvim, then ECA_NVIM=DIR ECA_NUI=DIR")
	}
	nvim := neovim(t, "eca-nvim", 10)
	script, err := filepath.Abs("testdata/nvim.lua")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	provider := newProvider(t, nvimTape)
	at := newPlace(t, provider.env()...)
	type session struct {
		Error, Model, Welcome string
		Approvals, Said       map[string]string
		Chats                 []string
	}
	play := func() (got session) {
		t.Helper()
		const long = 10 * time.Minute // each wait of the script has its own limit
		ctx, cancel := context.WithTimeout(t.Context(), long)
		defer cancel()
		out := filepath.Join(t.TempDir(), "out.json")
		cmd := exec.CommandContext(ctx, nvim, "--headless", "--clean", "-S", script)
		cmd.Dir = at.root
		cmd.Env = append([]string{"PLUGIN=" + plugin, "NUI=" + nui, "ECA=" + self, "OUT=" + out, "TERM=dumb"}, at.env...)
		said, err := cmd.CombinedOutput()
		raw, missing := os.ReadFile(out)
		if err != nil || missing != nil {
			t.Fatalf("%v, %v\n%s", err, missing, said)
		}
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if got.Error != "" {
			t.Fatalf("%s\n%s\n%s", got.Error, got.Said, said)
		}
		return got
	}

	first := play()
	for what, pieces := range map[string][]string{
		"write":  {"Creating new.txt", "new.txt\n@@", "+one\n+two"},
		"shell":  {"$ printf a-first-part-that-is-long ⏎ touch second", "Tool Arguments:"},
		"refuse": {"Creating refused"},
	} {
		for _, piece := range pieces {
			if !strings.Contains(first.Approvals[what], piece) {
				t.Errorf("the approval of %s does not show %q:\n%s", what, piece, first.Approvals[what])
			}
		}
	}
	for _, piece := range []string{"Hello, **world**.", "Written.", "It ran.", "Tell ECA what to do differently", "The last."} {
		if !strings.Contains(first.Said["last"], piece) {
			t.Errorf("the chat does not show %q:\n%s", piece, first.Said["last"])
		}
	}
	if first.Model == "" || first.Welcome == "" || len(first.Chats) != 1 {
		t.Errorf("model %q, welcome %q, chats %q", first.Model, first.Welcome, first.Chats)
	}
	for name, want := range map[string]bool{"new.txt": true, "second": true, "refused": false} {
		if _, err := os.Stat(filepath.Join(at.root, name)); (err == nil) != want {
			t.Errorf("%s is there: %v", name, err == nil)
		}
		_ = os.Remove(filepath.Join(at.root, name))
	}

	second := play()
	if len(second.Chats) != 1 || second.Chats[0] == first.Chats[0] {
		t.Errorf("the second session is in the chat %q, the first was in %q", second.Chats, first.Chats)
	}
}

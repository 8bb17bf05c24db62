package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Text of a model or a file never controls the terminal, especially not within a question to the
// user.
func TestTerminalOrders(t *testing.T) {
	p := newProvider(t, `cassette: 1
turns:
  - steps:
      - text: "before\e[2J\e]0;title\aafter\r\nand\u202e so on \u009b1A"
        calls: [{id: c1, tool: eca__shell_command, arguments: {command: "touch x \e[1A\e[2K"}}]
      - text: done
`)
	here := newPlace(t, p.env()...)
	out, errOut, code := runProgram(t, here, "", "exec", "--approve", "none", "Go")
	if code != exitRefused || strings.ContainsAny(out+errOut, "\x1b\a\r\u202e\u009b") {
		t.Errorf("exit %d: %q %q", code, out, errOut)
	}
	if !strings.Contains(out, `before\u001b[2J\u001b]0;title\u0007after`+"\n"+`and\u202e so on \u009b1A`) || !strings.Contains(errOut, "touch x") {
		t.Errorf("%q %q", out, errOut)
	}
	call := pendingCall{Name: "shell_command", Summary: "$ rm -r x\x1b[2K\rls", Args: []byte("{\"command\":\"\u009b2K\"}")}
	call.Details.Diff = "+a\x1b[1A\n+\u202eb👩\u200d💻"
	question := call.question()
	call.Details.Diff = ""
	question += call.question()
	if strings.ContainsAny(question, "\x1b\r\u009b\u202e") {
		t.Errorf("%q", question)
	}
	for _, part := range []string{`$ rm -r x\u001b[2K\u000dls`, `\u009b2K`, "+a\\u001b[1A\n", "👩\u200d💻", "Allow? "} {
		if !strings.Contains(question, part) {
			t.Errorf("%q is missing in %q", part, question)
		}
	}
}

// A project that is not trusted, and a provider, do not control the terminal through what eca says
// about them.
func TestTerminalOrdersOfProjects(t *testing.T) {
	models := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"data":[{"id":"ev\u001b[2Jil"},{"id":"m1"}]}`)
	}))
	defer models.Close()
	fake := `{"providers":{"fake":{"api":"openai-chat","url":"` + models.URL + `","key":"k"}}}`
	matcher := `{"toolCall":{"approval":{"deny":{"t\u001b[2J":{"argsMatchers":{"c":["("]}}}}}}`
	for _, c := range []struct{ config, args, want string }{
		{`{"defaultModel":"a\u001b]0;owned\u0007\u001b[2J"}`, "exec hi", `defaultModel: a\u001b]0;owned\u0007\u001b[2J does not name its provider`},
		{`{"mcpServers":{"s\u001b[2J":{"command":"x"}}}`, "models", `s\u001b[2J`},
		{`{"hooks":{"h\u001b[2J":{"type":"preRequest","actions":[{"type":"shell","shell":"x"}]}}}`, "models", `h\u001b[2J`},
		{matcher, "exec hi", `t\u001b[2J`},
		{matcher, "config show --origin toolCall.approval.deny", `t\u001b[2J`},
		{`{"agent":{"x\u009b2J":{"prompts":{"chat":"\u202e"}}}}`, "config show agent", `"x\u009b2J"`},
		{fake, "exec -m fake/nope hi", `ev\u001b[2Jil`},
		{`{}`, "remote pair --name x\x1b[2Jy", `without control characters, not "x\x1b[2Jy"`},
		{`{}`, "remote pair --name " + strings.Repeat("é", 101), "at most 100 characters"},
	} {
		here := newPlace(t, newProvider(t, "cassette: 1\nturns: []\n").env()...)
		file := filepath.Join(here.root, ".eca", "config.json")
		if c.config == fake { // of the user: a project that is not trusted has no providers
			file = filepath.Join(filepath.Dir(here.root), "config", "eca", "config.json")
		}
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errOut, _ := runProgram(t, here, "", strings.Split(c.args, " ")...)
		if strings.ContainsAny(out+errOut, "\x1b\a\r\u202e\u009b") || !strings.Contains(out+errOut, c.want) {
			t.Errorf("eca %s with %s: %q %q, want %s", c.args, c.config, out, errOut, c.want)
		}
	}
}

package main

import (
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
	call := toolRun{Name: "shell_command", Summary: "$ rm -r x\x1b[2K\rls", Args: []byte("{\"command\":\"\u009b2K\"}")}
	call.Details.Diff = "+a\x1b[1A\n+\u202eb👩\u200d💻"
	question := call.question()
	call.Details.Diff = ""
	question += call.question()
	if strings.ContainsAny(question, "\x1b\r\u009b\u202e") {
		t.Errorf("%q", question)
	}
	for _, part := range []string{`$ rm -r x\u001b[2Kls`, `\u009b2K`, "+a\\u001b[1A\n", "👩\u200d💻", "Allow? "} {
		if !strings.Contains(question, part) {
			t.Errorf("%q is missing in %q", part, question)
		}
	}
}

package main

import (
	"strings"
	"testing"
)

// Shells offer values that this machine has, without requests.
func TestCompletion(t *testing.T) {
	here := newPlace(t)
	here.env = append(here.env, `ECA_CONFIG={"providers": {"local": {"api": "openai-chat", "url": "http://127.0.0.1:1/v1", "key": "k", "models": {"small": {}}}}, "mcpServers": {"files": {"command": "false"}}}`)
	for _, test := range []struct {
		args string
		want []string
	}{
		{"exec --approve ", []string{"ask", "auto-edit", "workspace", "all", "none"}},
		{"exec --agent ", []string{"code", "plan"}},
		{"exec --model ", []string{"local/small"}},
		{"mcp test ", []string{"files"}},
	} {
		out, errOut, code := runProgram(t, here, "", append([]string{"__complete"}, strings.Split(test.args, " ")...)...)
		if code != 0 {
			t.Errorf("%s: exit %d, %s", test.args, code, errOut)
		}
		for _, want := range test.want {
			if !strings.Contains("\n"+out, "\n"+want+"\n") {
				t.Errorf("%s: %q is not offered:\n%s", test.args, want, out)
			}
		}
	}
}

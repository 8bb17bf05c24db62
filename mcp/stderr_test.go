package mcp

import (
	"log/slog"
	"strings"
	"testing"
)

// Of everything that a server writes before it ends, the user sees the line with the reason.
func TestReasonOfAServerThatEnded(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Node":      {"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/x/server.js'\n    at Function._load (node:internal:1)\n    at node:internal/main {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0\n", "Error: Cannot find module '/x/server.js'"},
		"Python":    {"Traceback (most recent call last):\n  File \"/x.py\", line 1, in <module>\n    import nope\nModuleNotFoundError: No module named 'nope'\n", "ModuleNotFoundError: No module named 'nope'"},
		"Go":        {"starting\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\nexit status 2\n", "panic: boom"},
		"npm":       {"npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x\nnpm error A complete log of this run can be found in: /root/.npm/x.log\n", "npm error 404 Not Found - GET https://registry.example/x"},
		"a word":    {"listening on 1\nbye\n", "bye"},
		"long":      {"Error: the key is missing\n" + strings.Repeat("    at frame (file.js:1)\n", 400), "Error: the key is missing"},
		"nothing":   {"\n \n", ""},
		"noise":     {"}\n^\n", ""},
		"many":      {"error: first\nerror: second\nready\n", "error: second"},
		"one of it": {"fatal: no licence", "fatal: no licence"},
	} {
		s := &stderr{log: slog.New(slog.DiscardHandler), clean: func(s string) string { return s }}
		_, _ = s.Write([]byte(c.text))
		if got, _ := s.reason(); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

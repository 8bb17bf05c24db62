package lineproc

import (
	"strings"
	"testing"
)

// Reason finds the line that explains why a program ended.
func TestReason(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"Node":                   {"node:internal/modules/cjs/loader:1228\n  throw err;\n  ^\n\nError: Cannot find module '/x/server.js'\n    at Function._load (node:internal:1)\n    at node:internal/main {\n  code: 'MODULE_NOT_FOUND',\n  requireStack: []\n}\n\nNode.js v22.1.0\n", "Error: Cannot find module '/x/server.js'"},
		"Python":                 {"Traceback (most recent call last):\n  File \"/x.py\", line 1, in <module>\n    import nope\nModuleNotFoundError: No module named 'nope'\n", "ModuleNotFoundError: No module named 'nope'"},
		"Python, a key":          {"Traceback (most recent call last):\n  File \"/x.py\", line 3, in <module>\n    TOKEN = os.environ[\"API_TOKEN\"]\n            ~~~~~~~~~~^^^^^^^^^^^^^\n  File \"<frozen os>\", line 714, in __getitem__\nKeyError: 'API_TOKEN'\n", "KeyError: 'API_TOKEN'"},
		"Python, a cut end":      {"    TOKEN = os.environ[\"API_TOKEN\"]\n            ~~~~~~~~~~^^^^^^^^^^^^^\nKeyError: 'API_TOKEN'\n", "KeyError: 'API_TOKEN'"},
		"Python, other words":    {"Traceback (most recent call last):\n  File \"/x.py\", line 3, in <module>\n    raise errors.Stop(\"no licence\")\nerrors.Stop: no licence\n", "errors.Stop: no licence"},
		"Python, handled":        {"Traceback (most recent call last):\n  File \"/x.py\", line 3, in <module>\nKeyError: 'a'\nfatal: no licence\n", "fatal: no licence"},
		"Node, its properties":   {"Error: no licence\n  code: 'FAILED',\n  requireStack: []\n", "Error: no licence"},
		"Go":                     {"starting\npanic: boom\n\ngoroutine 1 [running]:\nmain.main()\nexit status 2\n", "panic: boom"},
		"Go, names of functions": {"panic: open cfg: no file\n\tpanic: again\n[signal SIGSEGV]\n\ngoroutine 7 [running]:\nmain.failed(0x1)\n\t/src/errors/errors.go:3 +0x25\nexit status 2\n", "panic: open cfg: no file"},
		"Go, runtime":            {"fatal error: all goroutines are asleep - deadlock!\n\ngoroutine 1 [chan receive]:\nmain.fatal()\n\t/x.go:3\n", "fatal error: all goroutines are asleep - deadlock!"},
		"a log, no crash":        {"panic: handled\nfatal: no licence\n", "fatal: no licence"},
		"Rust":                   {"\nthread 'main' (12) panicked at src/main.rs:2:5:\nno configuration in here\nnote: run with `RUST_BACKTRACE=1`\n", "thread 'main' (12) panicked at src/main.rs:2:5: no configuration in here"},
		"Java":                   {"Exception in thread \"main\" java.lang.IllegalStateException: no port\r\n\tat a.ErrorHandler.main(ErrorHandler.java:3)\r\n\t... 3 more\r\n", "Exception in thread \"main\" java.lang.IllegalStateException: no port"},
		"Ruby":                   {"/a/x.rb:1:in 'read': no port (RuntimeError)\n\tfrom /a/error.rb:3:in 'run'\n", "/a/x.rb:1:in 'read': no port (RuntimeError)"},
		"npm":                    {"npm error code E404\nnpm error 404 Not Found - GET https://registry.example/x\nnpm error A complete log of this run can be found in: /root/.npm/x.log\n", "npm error 404 Not Found - GET https://registry.example/x"},
		"a word":                 {"listening on 1\nbye\n", "bye"},
		"long":                   {"Error: the key is missing\n" + strings.Repeat("    at frame (file.js:1)\n", 400), "Error: the key is missing"},
		"nothing":                {"\n \n", ""},
		"noise":                  {"}\n^\n", ""},
		"many":                   {"error: first\nerror: second\nready\n", "error: second"},
		"one of it":              {"fatal: no licence", "fatal: no licence"},
	} {
		if got := Reason(c.text); got != c.want {
			t.Errorf("%s: %q, not %q", name, got, c.want)
		}
	}
}

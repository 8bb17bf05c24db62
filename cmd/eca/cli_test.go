package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

func TestVersionAndHelp(t *testing.T) {
	here := newPlace(t)
	out, _, code := runProgram(t, here, "", "--version")
	if code != 0 || !regexp.MustCompile(`^eca \S+\n$`).MatchString(out) {
		t.Errorf("--version: exit %d, %q", code, out)
	}
	for _, flag := range []string{"--help", "-h"} {
		out, _, code = runProgram(t, here, "", flag)
		if code != 0 || !strings.Contains(out, "server") {
			t.Errorf("%s: exit %d, %q", flag, code, out)
		}
	}
}

func TestWrongUsage(t *testing.T) {
	here := newPlace(t)
	for _, args := range [][]string{{}, {"frobnicate"}, {"server", "extra"}, {"server", "--log-level", "loud"}, {"server", "--log-level=loud"}} {
		out, errOut, code := runProgram(t, here, "", args...)
		if code != usage.ExitCode || errOut == "" || out != "" {
			t.Errorf("%q: exit %d, stdout %q, stderr %q", args, code, out, errOut)
		}
	}
	for _, args := range [][]string{{"exec"}, {"exec", "a", "b"}, {"exec", "--approve", "maybe", "x"}, {"exec", "--wrong", "x"}} {
		if _, errOut, code := runProgram(t, here, "", args...); code != usage.ExitCode || errOut == "" {
			t.Errorf("%q: exit %d, stderr %q", args, code, errOut)
		}
	}
}

// Editors keep flags in their settings across versions, before or after the command.
func TestServerFlags(t *testing.T) {
	here := newPlace(t)
	for _, args := range [][]string{
		{"server", "--log-level", "debug"},
		{"--log-level=debug", "server"},
		{"server", "--future-flag", "--log-level=warn"},
		{"--future-flag", "server"},
		{"--future-flag=1", "-x", "server"},
		{"--stdio"},
	} {
		out, errOut, code := runProgram(t, here, "", args...)
		if code != 0 || out != "" {
			t.Errorf("%q at end of input: exit %d, stdout %q, stderr %q", args, code, out, errOut)
		}
		if strings.Contains(strings.Join(args, " "), "future") && !strings.Contains(errOut, "--future-flag") {
			t.Errorf("the unknown flag was not named: %q", errOut)
		}
	}
}

// In every case, stdout only has frames, and the trace has no secrets.
func TestVerboseStaysOffStdout(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: hi}\n")
	here := newPlace(t, append(p.env(), "MY_SERVICE_TOKEN=plain-looking-value-2")...)
	proc := here.serve(t, "--verbose", "--log-level", "debug")
	proc.Open(here.root, map[string]any{"initializationOptions": map[string]any{"providers": map[string]any{"x": map[string]any{"key": "sk-very-secret-value-1"}}}})
	proc.Call("chat/prompt", map[string]any{"message": "hello, is \"plain-looking-value-2\" a good key?"})
	proc.Await(0, "the end", fake.Finished())
	shutDown(t, proc)
	if log := proc.stderr.String(); !strings.Contains(log, "chat/prompt") || !strings.Contains(log, "a good key") || strings.Contains(log, "very-secret") || strings.Contains(log, "plain-looking") {
		t.Errorf("trace: %s", log)
	}
}

func TestExitWithoutShutdown(t *testing.T) {
	here := newPlace(t)
	proc := here.serve(t)
	proc.Open(here.root, nil)
	proc.Notify("exit", nil)
	if code := proc.wait(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// Input that no editor sends is named, and the error says what is expected.
func TestServerNamesStrangeInput(t *testing.T) {
	const (
		framed = "framed with Content-Length"
		good   = "Content-Type: x\r\nContent-Length: 2\r\n\r\n{}"
	)
	for in, want := range map[string]struct {
		said string // in the only line on stderr; empty: nothing
		code int
	}{
		"":                                     {"", 0},
		good:                                   {"", 0},
		"X: y\r\n" + good:                      {"", 0},
		"garbage\n":                            {framed, 0},
		`{"jsonrpc": "2.0"}` + "\n":            {framed, 0},
		`{"jsonrpc": "2.0"}`:                   {framed, 0},
		"Content-Type: x\r\n\r\n{}":            {framed, 0},
		good + "garbage\n\n{}":                 {framed, 0},
		"Content-Length: many\r\n\r\n{}":       {"bad Content-Length", 0},
		"Content-Length: 3\r\n\r\n{}}" + good:  {"not valid JSON", 0},
		"Content-Length: 100\r\n\r\n{\"id\":1": {"unexpected EOF after 7 of the 100 bytes", 1},
		good + "Content-Length: 9\r\n\r\n":     {"unexpected EOF after 0 of the 9 bytes", 1},
		good + "Content-Length: 9":             {"unexpected EOF in the header", 1},
	} {
		_, stderr, code := runProgram(t, newPlace(t), in, "server")
		lines := 1
		if want.said == "" {
			lines = 0
		}
		if code != want.code || !strings.Contains(stderr, want.said) || strings.Count(stderr, "\n") != lines {
			t.Errorf("%q: exit code %d\n%s", in, code, stderr)
		}
	}
}

// The daemon ends when its client dies.
func TestParentWatchdog(t *testing.T) {
	here := newPlace(t)
	sleeper := exec.Command(here.command().Path, "server")
	sleeper.Env = here.env
	hold, err := sleeper.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	proc := here.serve(t)
	proc.Open(here.root, map[string]any{"processId": sleeper.Process.Pid})
	_ = sleeper.Process.Kill()
	_ = sleeper.Wait()
	if code := proc.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, proc.stderr)
	}
	// A process that has ended already counts as dead.
	late := here.serve(t)
	_, _ = late.TryCall("initialize", map[string]any{"processId": sleeper.Process.Pid}) // the daemon may end before it answers
	if code := late.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, late.stderr)
	}
}

// The README's first command: no configuration, no network, no key.
func TestExecDemo(t *testing.T) {
	here := unconfiguredPlace(t)
	if err := os.WriteFile(filepath.Join(here.root, "main.go"), []byte("package main\n\nfunc main() {\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "Where does this program start? Show me.")
	if code != 0 || !strings.Contains(out, "func main() {") || !strings.Contains(errOut, "demo/offline") || !strings.Contains(errOut, "Reading main.go") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errOut)
	}
}

// With a configuration, the demo model answers if it is chosen by its name.
func TestDemoByItsName(t *testing.T) {
	here := unconfiguredPlace(t)
	here.env = append(here.env, `ECA_CONFIG={"defaultModel": "demo/offline"}`)
	if out, errOut, code := runProgram(t, here, "", "exec", "hi"); code != 0 || !strings.Contains(out, "I am the demo model") {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
}

// The demo's quotation consists of whole lines, and its hint names the ways to get real answers.
func TestDemoQuotesWholeLines(t *testing.T) {
	here := unconfiguredPlace(t)
	text := "package main\n\nfunc main() {\n" + strings.Repeat("\tprintln(\"some rather long words\")\n", 60) + "}\n"
	if err := os.WriteFile(filepath.Join(here.root, "main.go"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "Where does this program start? Show me.")
	_, quoted, _ := strings.Cut(out, "```\n")
	quoted, _, closed := strings.Cut(quoted, "\n```")
	if code != 0 || !closed || !strings.HasSuffix(strings.TrimSpace(quoted), "long words\")") {
		t.Errorf("exit %d, quoted: %q\n%s", code, quoted, errOut)
	}
	for _, way := range []string{"eca login", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "config.json"} {
		if !strings.Contains(out, way) {
			t.Errorf("the hint does not name %s: %s", way, out)
		}
	}
}

func TestExecApproval(t *testing.T) {
	needs.POSIX(t)
	const tape = `
cassette: 1
default:
  steps:
    - calls:
        - {id: edit, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "x\n"}}
        - {id: hook, tool: eca__write_file, arguments: {path: "${workspace}/.envrc", content: "x\n"}}
        - {id: shell, tool: eca__shell_command, arguments: {command: "touch ${workspace}/shell.txt"}}
        - {id: out, tool: eca__write_file, arguments: {path: "${workspace}/../out.txt", content: "x\n"}}
    - {text: "The model went on."}
turns: []
`
	for _, c := range []struct {
		approve string
		files   string // the files that exist afterwards
		code    int
	}{
		{"all", "new.txt .envrc shell.txt ../out.txt", 0},
		{"none", "", exitRefused},
		{"auto-edit", "new.txt", exitRefused},
		{"", "", exitRefused}, // a test has no terminal
	} {
		t.Run("approve="+c.approve, func(t *testing.T) {
			p := newProvider(t, tape)
			here := newPlace(t, p.env()...)
			args := []string{"exec", "go"}
			if c.approve != "" {
				args = append(args, "--approve", c.approve)
			}
			cmd := here.command(args...)
			detachTerminal(cmd)
			out, err := cmd.Output()
			if code := cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d (%v), want %d", code, err, c.code)
			}
			if !strings.Contains(string(out), "The model went on.") {
				t.Errorf("stdout: %s", out)
			}
			var have []string
			for _, f := range []string{"new.txt", ".envrc", "shell.txt", "../out.txt"} {
				if _, err := os.Stat(filepath.Join(here.root, f)); err == nil {
					have = append(have, f)
				}
			}
			if got := strings.Join(have, " "); got != c.files {
				t.Errorf("files: %q, want %q", got, c.files)
			}
			checkHistory(t, p.last(t))
		})
	}
}

func TestExecContinuesChatWithStdinAndJSON(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: first}\n  - steps:\n      - {text: second}\n")
	here := newPlace(t, p.env()...)
	_, errOut, code := runProgram(t, here, "piped text", "exec", "one")
	m := regexp.MustCompile(`--chat (\S+)`).FindStringSubmatch(errOut)
	if code != 0 || m == nil {
		t.Fatalf("exit %d, stderr %s", code, errOut)
	}
	if got := transcriptOf(p.last(t)); !strings.Contains(got, "piped text") {
		t.Errorf("stdin did not reach the model: %s", got)
	}
	out, _, code := runProgram(t, here, "", "exec", "two", "--chat", m[1], "--json")
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	for line := range strings.Lines(out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if got := transcriptOf(p.last(t)); !strings.Contains(got, "assistant:first") || !strings.Contains(got, "user:two") {
		t.Errorf("the chat was not continued: %s", got)
	}
}

func TestExecFails(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n    - error: {status: 401, message: bad key}\nturns: []\n")
	here := newPlace(t, p.env()...)
	_, errOut, code := runProgram(t, here, "", "exec", "go")
	if code != exitFailed || !strings.Contains(errOut, "bad key") {
		t.Errorf("exit %d, stderr %s", code, errOut)
	}
	_, errOut, code = runProgram(t, here, "", "exec", "go", "--model", "nowhere/x")
	if code != exitFailed || !strings.Contains(errOut, "nowhere") {
		t.Errorf("exit %d, stderr %s", code, errOut)
	}
}

func TestExecWithUnusableChatID(t *testing.T) {
	_, errOut, code := runProgram(t, newPlace(t), "", "exec", "go", "--chat", "a b")
	if code != exitFailed || !strings.Contains(errOut, "a b") {
		t.Errorf("exit %d, stderr %s", code, errOut)
	}
}

func TestExecInterrupted(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, "cassette: 1\nturns:\n  - steps:\n      - {text: hanging, hang: true}\n")
	here := newPlace(t, p.env()...)
	kept := filepath.Join(here.root, "kept.txt")
	if err := os.WriteFile(kept, []byte("an earlier answer\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := here.command("exec", "go", "-o", kept)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 100)
	if _, err := out.Read(buf); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Process.Signal(os.Interrupt)
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != exitInterrupted {
		t.Errorf("exit code %d", code)
	}
	if text, err := os.ReadFile(kept); err != nil || string(text) != "an earlier answer\n" {
		t.Errorf("the file of --output: %q, %v", text, err)
	}
}

// A recording of --record can be played back, and contains no key.
func TestRecordAndReplay(t *testing.T) {
	p := newProvider(t, `
cassette: 1
turns:
  - steps:
      - text: "The key is sk-abcdefghijklmnopqrstuvwx."
        calls: [{id: c1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
      - {text: "Recorded answer."}
`)
	here := newPlace(t, p.env()...)
	tapes := filepath.Join(filepath.Dir(here.root), "tapes")
	if _, errOut, code := runProgram(t, here, "", "exec", "go", "--record", tapes); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	files, _ := filepath.Glob(filepath.Join(tapes, "*.yaml"))
	if len(files) != 1 {
		t.Fatalf("recorded %v", files)
	}
	data, err := os.ReadFile(files[0])
	if err != nil || strings.Contains(string(data), "sk-abc") {
		t.Fatalf("recording (%v): %s", err, data)
	}
	config, _ := json.Marshal(map[string]any{
		"providers": map[string]any{"tape": map[string]any{"api": "cassette", "url": files[0], "models": map[string]any{"m": map[string]any{}}}},
	})
	there := newPlace(t, "ECA_CONFIG="+string(config))
	out, errOut, code := runProgram(t, there, "", "exec", "go", "--model", "tape/m")
	if code != 0 || !strings.Contains(out, "Recorded answer.") {
		t.Errorf("exit %d\nstdout: %s\nstderr: %s", code, out, errOut)
	}
}

// If an MCP server cannot start, the server's log has a line of the level ERROR.
func TestServerLogsAFailedMCPServerAsAnError(t *testing.T) {
	here := newPlace(t, `ECA_CONFIG={"mcpServers": {"gone": {"command": "no-such-program-of-eca"}}}`)
	proc := here.serve(t)
	proc.Open(here.root, nil)
	proc.Await(0, "the failure", fake.Contains("tool/serverUpdated", `"name":"gone"`, `"status":"failed"`))
	proc.Notify("exit", nil)
	proc.wait(t)
	if !strings.Contains(proc.stderr.String(), `level=ERROR msg="MCP server failed"`) {
		t.Errorf("the log: %s", proc.stderr)
	}
}

// The server answers requests that change nothing, and requests that have a member twice, without an
// error. The log has one line for each.
func TestServerLogsRequestsWithoutEffect(t *testing.T) {
	here := newPlace(t)
	proc := here.serve(t)
	proc.Open(here.root, nil)
	proc.Call("chat/rollback", map[string]any{"chatId": "nope-1", "contentId": "x"})
	proc.Call("chat/delete", map[string]any{"chatId": "nope-2"})
	proc.Call("chat/queryContext", json.RawMessage(`{"query": "a", "query": "b", "contexts": []}`))
	proc.Notify("exit", nil)
	proc.wait(t)
	for _, want := range []string{"chat=nope-1", "chat=nope-2", "method=chat/queryContext member=query"} {
		if strings.Count(proc.stderr.String(), want) != 1 {
			t.Errorf("the log must contain %q exactly once:\n%s", want, proc.stderr)
		}
	}
}

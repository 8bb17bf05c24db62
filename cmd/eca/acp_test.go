package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// acpx runs ACP's headless client, which starts the program as its agent.
func (p place) acpx(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	node, modules := testkit.NodeTools(t, os.Getenv)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cli := filepath.Join(modules, "acpx", "dist", "cli.js")
	cmd := exec.Command(node, append([]string{cli, "--format", "json", "--cwd", p.root, "--agent", self + " acp"}, args...)...)
	cmd.Dir, cmd.Env = p.root, p.env
	return cmd
}

const acpWrites = `
cassette: 1
turns: []
default:
  steps:
    - text: I write.
      calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "hello"}}]
    - text: Written.
`

// The headless client completes a turn with a tool: an allowed call runs, a denied one does not.
func TestACPX(t *testing.T) {
	p := newProvider(t, acpWrites)
	for _, allowed := range []bool{true, false} {
		at := newPlace(t, p.env()...)
		policy := "--deny-all"
		if allowed {
			policy = "--approve-all"
		}
		cmd := at.acpx(t, policy, "exec", "Write.")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if allowed && err != nil {
			t.Errorf("%v\n%s\n%s", err, out, stderr.Bytes())
		}
		_, missing := os.Stat(filepath.Join(at.root, "out.txt"))
		if allowed != (missing == nil) {
			t.Errorf("allowed %v: %v\n%s\n%s", allowed, missing, out, stderr.Bytes())
		}
		stops, asked := "", false
		for line := range bytes.Lines(out) {
			var m struct {
				Method string
				Result struct{ StopReason string }
			}
			if json.Unmarshal(line, &m) == nil {
				asked = asked || m.Method == "session/request_permission"
				stops += m.Result.StopReason
			}
		}
		if !asked || stops != "end_turn" {
			t.Errorf("asked %v, stopped with %q\n%s", asked, stops, out)
		}
	}
}

// The headless client's interrupt cancels the turn.
func TestACPXCancel(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, `
cassette: 1
turns: []
default:
  steps:
    - text: I wait.
      calls: [{id: c1, tool: eca__shell_command, arguments: {command: "sleep 600"}}]
`)
	at := newPlace(t, p.env()...)
	cmd := at.acpx(t, "--approve-all", "exec", "Wait.")
	stdin, stdout := startPiped(t, cmd)
	defer stdin.Close()
	var all strings.Builder
	lines, interrupted := bufio.NewScanner(stdout), false
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		all.WriteString(lines.Text() + "\n")
		if !interrupted && strings.Contains(lines.Text(), `"in_progress"`) {
			interrupted = true
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	err := cmd.Wait()
	if !interrupted || !strings.Contains(all.String(), `"stopReason":"cancelled"`) {
		t.Errorf("interrupted %v, %v\n%s", interrupted, err, all.String())
	}
}

// The program answers a client that sends requests and disconnects, and ends with it.
func TestACPProgram(t *testing.T) {
	at := newPlace(t, newProvider(t, acpWrites).env()...)
	cmd := at.command("acp")
	stdin, stdout := startPiped(t, cmd)
	answers := bufio.NewScanner(stdout)
	answers.Buffer(nil, 1<<20)
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"auth":{"terminal":true}}}}`
	if _, err := stdin.Write([]byte(hello + "\n")); err != nil {
		t.Fatal(err)
	}
	if !answers.Scan() || !strings.Contains(answers.Text(), `"args":["login"]`) {
		t.Errorf("it answers %s", answers.Text())
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if answers.Scan() {
		t.Errorf("it says more: %s", answers.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// Some editors start their agents with only a PATH.
func TestACPWithoutHome(t *testing.T) {
	at := newPlace(t)
	cmd := at.command("acp")
	cmd.Env = []string{asProgram + "=1", "PATH=" + os.Getenv("PATH"), "OLLAMA_API_URL=http://127.0.0.1:1"}
	if runtime.GOOS == "windows" {
		cmd.Env = append(cmd.Env, "SystemRoot="+os.Getenv("SystemRoot"))
	}
	in, out := startAndSpeak(t, cmd, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`+"\n"+
		`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":`+quoted(at.root)+`,"mcpServers":[]}}`, `"id":2`)
	var made struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(out.last), &made); err != nil || made.Result.SessionID == "" {
		t.Fatalf("%s %v", out.last, err)
	}
	say(t, in, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":`+quoted(made.Result.SessionID)+`,"prompt":[{"type":"text","text":"Hello?"}]}}`)
	out.readUntil(t, `"stopReason"`)
}

// A client that loads a session whose process was killed in a turn learns that the turn and its calls
// were interrupted, both before and after the next prompt.
func TestACPLoadsAnInterruptedSession(t *testing.T) {
	p := newProvider(t, `
cassette: 1
turns:
  - steps: [{text: Begun., calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/out.txt", content: "hello"}}]}]
  - steps: [{text: Again.}]
  - steps: [{text: Again.}]
`)
	at := newPlace(t, p.env()...)
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}` + "\n"
	cmd := at.command("acp")
	in, out := startAndSpeak(t, cmd, initialize+`{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":`+quoted(at.root)+`,"mcpServers":[]}}`, `"id":2`)
	var made struct{ Result struct{ SessionID string } }
	if err := json.Unmarshal([]byte(out.last), &made); err != nil || made.Result.SessionID == "" {
		t.Fatalf("%s %v", out.last, err)
	}
	session := quoted(made.Result.SessionID)
	prompt := `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":` + session + `,"prompt":[{"type":"text","text":"Write."}]}}`
	load := initialize + `{"jsonrpc":"2.0","id":2,"method":"session/load","params":{"sessionId":` + session + `,"cwd":` + quoted(at.root) + `,"mcpServers":[]}}`
	say(t, in, prompt)
	out.readUntil(t, "session/request_permission")
	_ = cmd.Process.Kill()
	_ = cmd.Wait()

	for range 2 { // the second client loads it after a prompt has ended the turn
		cmd = at.command("acp")
		in, out = startAndSpeak(t, cmd, load, `"status":"failed"`)
		out.readUntil(t, "Interrupted: eca ended before this turn was finished")
		out.readUntil(t, `"id":2`)
		say(t, in, prompt)
		out.readUntil(t, `"stopReason"`)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
}

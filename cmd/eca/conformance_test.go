package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// TestConformance has the parts of the checklist of eca-protocol.md 15 that need the process; the
// rest is in server.
func TestConformance(t *testing.T) {
	t.Run("1 single header, single write, compact body", conformWrites)
	t.Run("4 stdout carries nothing else under a crash, child processes, --verbose", conformStdout)
	t.Run("8 initialize answers fast", conformFast)
	t.Run("11 exit code 0 on exit and at end of input, parent death ends us", conformExit)
	t.Run("12 format of --version", conformVersion)
}

// session is a program that gets literal client messages; it keeps all of stdout.
type session struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader
	all   bytes.Buffer // all output on stdout
	err   bytes.Buffer
}

func startSession(t *testing.T, cmd *exec.Cmd) *session {
	t.Helper()
	s := &session{t: t, cmd: cmd}
	cmd.Stderr = &s.err
	stdin, stdout := startPiped(t, cmd)
	watchdog := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		_ = cmd.Process.Kill()
	})
	s.stdin, s.out = stdin, bufio.NewReader(io.TeeReader(stdout, &s.all))
	return s
}

func (s *session) send(body string) {
	s.t.Helper()
	if _, err := fmt.Fprintf(s.stdin, "Content-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		s.t.Fatal(err)
	}
}

// await reads frames strictly until one has the pieces.
func (s *session) await(pieces ...string) {
	s.t.Helper()
	for {
		body, err := strictFrame(s.out)
		if err != nil {
			s.t.Fatalf("in front of %q: %v\nstdout: %q\nstderr: %s", pieces, err, s.all.String(), s.err.String())
		}
		missing := false
		for _, p := range pieces {
			missing = missing || !strings.Contains(body, p)
		}
		if !missing {
			return
		}
	}
}

var header = regexp.MustCompile(`^Content-Length: ([0-9]+)\r\n$`)

// strictFrame reads a frame like the strictest client: one header with the exact spelling, and
// compact JSON.
func strictFrame(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	m := header.FindStringSubmatch(line)
	if blank, err := r.ReadString('\n'); m == nil || err != nil || blank != "\r\n" {
		return "", fmt.Errorf("a header %q, then %q", line, blank)
	}
	n, _ := strconv.Atoi(m[1])
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return "", err
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, body); err != nil || compact.Len() != n {
		return "", fmt.Errorf("not compact: %s", body)
	}
	return string(body), nil
}

// end waits for the process and returns the rest of stdout.
func (s *session) end() (rest string, code int) {
	s.t.Helper()
	left, _ := io.ReadAll(s.out)
	_ = s.cmd.Wait()
	return string(left), s.cmd.ProcessState.ExitCode()
}

const noisy = `
cassette: 1
default:
  steps:
    - calls:
        - {id: call_1, tool: eca__shell_command, arguments: {command: "echo to stdout; echo to stderr >&2"}}
        - {id: call_2, tool: eca__shell_command, arguments: {command: "echo more; sleep 300", background: "noise"}}
    - {text: "Done."}
turns: []
`

// turn plays a session up to the end of a turn.
func (s *session) turn(root string) {
	s.t.Helper()
	s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"capabilities":{},"workspaceFolders":[{"uri":"file://` + root + `","name":"ws"}]}}`)
	s.await(`"id":1,"result":{`)
	s.send(`{"jsonrpc":"2.0","method":"initialized","params":{}}`)
	s.send(`{"jsonrpc":"2.0","id":2,"method":"chat/prompt","params":{"message":"go","trust":true}}`)
	s.await(`"state":"finished"`)
}

func conformStdout(t *testing.T) {
	needs.POSIX(t)
	p := newProvider(t, noisy)
	here := newPlace(t, p.env()...)
	s := startSession(t, here.command("server", "--verbose", "--log-level", "debug", "--no-such-flag"))
	s.turn(here.root)
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil { // the runtime prints all goroutines
		t.Fatal(err)
	}
	rest, code := s.end()
	for r := bufio.NewReader(strings.NewReader(rest)); ; {
		if _, err := strictFrame(r); err != nil {
			if err != io.EOF { //nolint:errorlint // strictFrame returns it bare
				t.Errorf("stdout goes on with %q: %v", rest, err)
			}
			break
		}
	}
	if log := s.err.String(); code == 0 || !strings.Contains(log, "goroutine ") || !strings.Contains(log, "rpc received") {
		t.Errorf("no crash, exit %d: %s", code, log)
	}
}

// The network accepts connections and never answers, and the chat store has to be opened: the
// answer waits for neither.
func conformFast(t *testing.T) {
	here := newPlace(t, "OPENAI_API_KEY=sk-x", "OPENAI_API_URL=http://192.0.2.1")
	s := startSession(t, here.command("server"))
	s.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
	s.await(`"id":1,"result":{`)
	s.send(`{"jsonrpc":"2.0","method":"exit"}`)
	if _, code := s.end(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func conformExit(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null}}`
	for name, end := range map[string]func(s *session){
		"exit": func(s *session) { s.send(`{"jsonrpc":"2.0","method":"exit"}`) },
		"exit after shutdown": func(s *session) {
			s.send(`{"jsonrpc":"2.0","id":3,"method":"shutdown"}`)
			s.await(`"id":3,"result":null`)
			s.send(`{"jsonrpc":"2.0","method":"exit","params":[]}`)
		},
		"end of input": func(s *session) { _ = s.stdin.Close() },
		"in a turn": func(s *session) {
			s.send(`{"jsonrpc":"2.0","method":"initialized"}`)
			s.send(`{"jsonrpc":"2.0","id":2,"method":"chat/prompt","params":{"message":"go"}}`)
			s.await(`"assistant"`)
			_ = s.stdin.Close()
		},
	} {
		p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n    - {text: on, hang: true}\nturns: []\n")
		s := startSession(t, newPlace(t, p.env()...).command("server"))
		s.send(initialize)
		s.await(`"id":1,"result":{`)
		end(s)
		if _, code := s.end(); code != 0 {
			t.Errorf("%s: exit code %d, %s", name, code, s.err.String())
		}
	}
	t.Run("parent", TestParentWatchdog)
}

func conformVersion(t *testing.T) {
	out, errOut, code := runProgram(t, newPlace(t), "", "--version")
	if code != 0 || errOut != "" || !regexp.MustCompile(`^eca [0-9]+\.[0-9]+\.[0-9]+\S*\n$`).MatchString(out) {
		t.Errorf("exit %d, stdout %q, stderr %q", code, out, errOut)
	}
}

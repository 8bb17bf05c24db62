package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// onTerminal is a program that runs on its own terminal.
type onTerminal struct {
	t    *testing.T
	cmd  *exec.Cmd
	keys io.WriteCloser
	out  *bufio.Reader
	said string // since the last await
}

func runOnTerminal(t *testing.T, here place, args ...string) *onTerminal {
	t.Helper()
	needs.Program(t, "script", "bsdutils")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("script", "-qec", "exec "+self+" "+strings.Join(args, " "), "/dev/null")
	cmd.Dir, cmd.Env = here.root, append(here.env, "SHELL=/bin/sh")
	keys, out := startPiped(t, cmd)
	timer := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	t.Cleanup(func() { timer.Stop() })
	return &onTerminal{t: t, cmd: cmd, keys: keys, out: bufio.NewReader(out)}
}

// await waits until a text is shown.
func (o *onTerminal) await(text string) string {
	o.t.Helper()
	o.said = ""
	for !strings.Contains(o.said, text) {
		b, err := o.out.ReadByte()
		if err != nil {
			o.t.Fatalf("it ends after %q: %v", o.said, err)
		}
		o.said += string(b)
	}
	return o.said
}

// press presses keys.
func (o *onTerminal) press(keys string) {
	o.t.Helper()
	if _, err := io.WriteString(o.keys, keys); err != nil {
		o.t.Fatal(err)
	}
}

// end waits for the end of the program and returns the rest of its output, and its exit code.
func (o *onTerminal) end() (string, int) {
	rest, _ := io.ReadAll(o.out)
	_ = o.cmd.Wait()
	return string(rest), o.cmd.ProcessState.ExitCode()
}

// The server says what it waits for if a user starts it by hand.
func TestServerOnATerminalSaysWhatItWaitsFor(t *testing.T) {
	o := runOnTerminal(t, newPlace(t), "server")
	o.await("waiting for an editor")
	o.await("eca web or eca exec.")
	o.press("\x03")
	o.end()
}

// Keys that were pressed before a question was shown do not answer it.
func TestExecKeysBeforeTheQuestionDoNotAnswerIt(t *testing.T) {
	second := strings.ReplaceAll(writeCall, "new.txt", "unseen.txt")
	p := newProvider(t, callCassette(writeCall, second))
	here := newPlace(t, p.env()...)
	o := runOnTerminal(t, here, "exec", "go")
	o.await("/N] ")
	o.press("y\ny\ny\n")
	o.await("/N] ")
	o.press("n\n")
	rest, code := o.end()
	_, seen := os.Stat(filepath.Join(here.root, "new.txt"))
	if _, err := os.Stat(filepath.Join(here.root, "unseen.txt")); err == nil || seen != nil || code != exitRefused {
		t.Errorf("exit code %d, the file that nobody saw was written: %v, the other: %v\n%s", code, err == nil, seen, rest)
	}
}

// After Ctrl-D at a question, the next output begins on a new line.
func TestExecQuestionEndsWithCtrlD(t *testing.T) {
	p := newProvider(t, callCassette(writeCall))
	o := runOnTerminal(t, newPlace(t, p.env()...), "exec", "go")
	o.await("/N] ")
	o.press("\x04")
	if rest, code := o.end(); code != exitRefused || !strings.HasPrefix(strings.TrimLeft(rest, "^D\b"), "\r\n") || !strings.Contains(rest, "· refused: ") || !strings.Contains(rest, "new.txt: not approved: the user refused it") {
		t.Errorf("exit code %d: %q", code, rest)
	}
}

// Ctrl-C at a question interrupts the run; it does not count as a refusal by the user.
func TestExecQuestionEndsWithCtrlC(t *testing.T) {
	p := newProvider(t, callCassette(writeCall))
	here := newPlace(t, p.env()...)
	for _, args := range [][]string{{"exec", "go"}, {"exec", "--json", "go"}} {
		o := runOnTerminal(t, here, args...)
		o.await("/N] ")
		o.press("\x03")
		rest, code := o.end()
		said := "· interrupted: "
		if args[1] == "--json" {
			said = `"exitCode":130`
		}
		if code != exitInterrupted || strings.Contains(rest, "efused") || !strings.Contains(rest, said) {
			t.Errorf("%v: exit code %d: %s", args, code, rest)
		}
	}
}

// Remembering is offered if it covers the whole call, and after a key that is not an answer, the
// question is repeated.
func TestExecQuestionIsRepeatedAfterAKeyThatIsNoAnswer(t *testing.T) {
	p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "echo bad >&2; make nothing; touch made"}}`))
	here := newPlace(t, p.env()...)
	o := runOnTerminal(t, here, "exec", "go")
	if said := o.await("[y/N] "); !strings.Contains(said, "make nothing cannot be remembered") {
		t.Errorf("it says: %s", said)
	}
	for _, key := range []string{"s", "x"} {
		o.press(key + "\n")
		if said := o.await("[y/N] "); !strings.Contains(said, "y allows this call once") {
			t.Errorf("after %s it says: %s", key, said)
		}
	}
	o.press("y\n")
	rest, code := o.end()
	if _, err := os.Stat(filepath.Join(here.root, "made")); err != nil || code != 0 {
		t.Errorf("exit code %d: %v\n%s", code, err, rest)
	}

	o = runOnTerminal(t, newPlace(t, p.env()...), "exec", "go")
	for range 1 + maxRepeats {
		o.await("[y/N] ")
		o.press("x\n")
	}
	if rest, code := o.end(); code != exitRefused {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
}

// A remembered call is not asked about again.
func TestExecDoesNotAskAboutWhatItOfferedToRemember(t *testing.T) {
	call := `{tool: eca__shell_command, arguments: {command: "mkdir -p made && git add made"}}`
	p := newProvider(t, callCassette(call, call))
	o := runOnTerminal(t, newPlace(t, p.env()...), "exec", "go")
	o.await("[y/s/w/g/N] ")
	o.press("s\n")
	if rest, code := o.end(); code != 0 || strings.Contains(rest, "Allow?") {
		t.Errorf("exit code %d:\n%s", code, rest)
	}
}

// On a terminal, the prompt is typed if it is not an argument.
func TestExecPromptIsTyped(t *testing.T) {
	p := newProvider(t, "cassette: 1\nturns:\n  - {user: 'two\\nlines', steps: [{text: Answered.}]}\n")
	here := newPlace(t, p.env()...)
	for _, args := range [][]string{{"exec"}, {"exec", "-"}} {
		for keys, want := range map[string]struct {
			code int
			said string
		}{"two\nlines\n\x04": {0, "Answered."}, "\x04": {2, "the prompt is empty"}, "\x03": {exitInterrupted, "interrupted"}} {
			o := runOnTerminal(t, here, args...)
			o.await("Ctrl-D in a line of its own ends it")
			o.press(keys)
			if said, code := o.end(); code != want.code || !strings.Contains(said, want.said) {
				t.Errorf("%v, %q: exit code %d: %q", args, keys, code, said)
			}
		}
	}
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// askedUser is an editor whose user answers questions about stopped commands.
type askedUser struct {
	mu        sync.Mutex // guards the fields below
	answer    string     // a label; empty closes the question
	questions []string   // with their labels
}

func (u *askedUser) handle(_ context.Context, params json.RawMessage) (any, error) {
	var q struct {
		Question string
		Options  []struct{ Label string }
	}
	if err := json.Unmarshal(params, &q); err != nil {
		return nil, err
	}
	text := q.Question
	for _, o := range q.Options {
		text += " [" + o.Label + "]"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.questions = append(u.questions, text)
	return map[string]any{"answer": u.answer, "cancelled": u.answer == ""}, nil
}

// take returns the questions since the last call.
func (u *askedUser) take() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := u.questions
	u.questions = nil
	return out
}

func (u *askedUser) says(answer string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answer = answer
}

// needIsolation skips a test on machines where a command cannot have all namespaces.
func needIsolation(t *testing.T) {
	t.Helper()
	p := proc.NewPool(os.Args[0], 0)
	defer p.Close()
	if here := p.Isolation(); here.Missing() != "" {
		t.Skip("NOT TESTED: no " + here.Missing() + " on this machine: " + here.Without)
	}
}

// If the sandbox stops a command that the user has not approved, the user is asked once, with the
// blocked access. Each answer has its effect: for a host, for a folder, and for a new file in the
// home folder.
func TestUserIsAskedAboutWhatTheSandboxStopped(t *testing.T) {
	needs.Long(t)
	needIsolation(t)
	listener, err := net.Listen("tcp", "127.0.0.2:0") // commands do not take it for their own loopback
	if err != nil {
		t.Fatal(err)
	}
	registry := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "REACHED") }))
	_ = registry.Listener.Close()
	registry.Listener = listener
	registry.Start()
	defer registry.Close()
	home := testkit.OutOfTemp(t)
	kept := filepath.Join(home, ".tool")
	if err := os.Mkdir(kept, 0o755); err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(registry.URL, "http://")
	type sandboxed struct {
		name, script, wants, denied string
		done                        func(output string) bool
		always                      bool
	}
	written := func(path string) func(string) bool {
		return func(string) bool {
			_, err := os.Stat(path)
			_ = os.Remove(path)
			return err == nil
		}
	}
	for i, c := range []sandboxed{
		{"a host", "curl -sf http://" + address + "/x", "tried to connect to " + address, "connection to " + address + " refused", func(out string) bool { return strings.Contains(out, "REACHED") }, true},
		{"a folder", "echo x > " + kept + "/x", "tried to write to " + kept, "use of " + kept + "/x refused", written(kept + "/x"), true},
		{"a folder, with the message on stdout", "exec 2>&1\necho x > " + kept + "/x", "tried to write to " + kept, "use of " + kept + "/x refused", written(kept + "/x"), true},
		{"a file in the home folder", "echo x > " + home + "/new", "use of " + home + "/new refused", "use of " + home + "/new refused", written(home + "/new"), false},
	} {
		p := newProvider(t, fmt.Sprintf("cassette: 1\ndefault:\n  steps:\n    - calls: [{id: c%d, tool: eca__shell_command, arguments: {command: \"sh ./task.sh\"}}]\n    - {text: Done.}\nturns: []\n", i))
		here := newPlace(t, p.env()...)
		here.env = append(here.env, "HOME="+home, "TMPDIR="+t.TempDir(), `ECA_CONFIG={"chat":{"title":false},"toolCall":{"unasked":"workspace"}}`)
		if err := os.WriteFile(filepath.Join(here.root, "task.sh"), []byte(c.script+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		user := &askedUser{}
		e := here.serve(t)
		e.Answer("chat/askQuestion", user.handle)
		e.Open(here.root, capableParams())
		run := func() string {
			t.Helper()
			mark := e.Mark()
			e.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
			e.Await(mark, "the end", fake.Finished())
			for _, m := range e.Since(mark) {
				if strings.Contains(string(m.Params), `"toolCalled"`) {
					return string(m.Params)
				}
			}
			return ""
		}
		deny := "No"
		if c.always {
			deny = "Never"
		}
		for _, answer := range []string{"", "Once", "Once"} {
			user.says(answer)
			out := run()
			asked := user.take()
			if len(asked) != 1 || !strings.Contains(asked[0], c.wants) || !strings.Contains(asked[0], "[Once]") || !strings.Contains(asked[0], "["+deny+"]") || strings.Contains(asked[0], "[Always]") != c.always {
				t.Errorf("%s: asked %q", c.name, asked)
			}
			if got := c.done(out); got != (answer != "") || !strings.Contains(out, c.denied) {
				t.Errorf("%s: after %q it is done: %v: %s", c.name, answer, got, out)
			}
		}
		if c.always {
			user.says("Always")
			if out := run(); !c.done(out) {
				t.Errorf("%s: always: %s", c.name, out)
			}
			user.take()
			if out, asked := run(), user.take(); !c.done(out) || len(asked) > 0 {
				t.Errorf("%s: later: asked %q: %s", c.name, asked, out)
			}
			list, _, _ := runProgram(t, here, "", "permission", "list")
			key, _, _ := strings.Cut(list, "\t")
			if out, stderr, code := runProgram(t, here, "", "permission", "forget", key); code != 0 || out != "Forgotten: "+key+"\n" || !strings.HasPrefix(key, "sandbox: sh may ") {
				t.Errorf("%s: remembered: %s: %s", c.name, list, stderr)
			}
		}
		user.says(deny)
		if out := run(); c.done(out) || !strings.Contains(out, "the user denied this") || len(user.take()) != 1 {
			t.Errorf("%s: never: %s", c.name, out)
		}
		if out, asked := run(), user.take(); c.always && (c.done(out) || len(asked) > 0 || !strings.Contains(out, "the user has denied this permanently")) {
			t.Errorf("%s: after never: asked %q: %s", c.name, asked, out)
		}
		shutDown(t, e)
		var stats struct {
			Total struct{ Calls, Unasked, Asked, Denied, Stopped, AllowedAfterStop int }
			Chats []struct{ ID string }
		}
		text, stderr, _ := runProgram(t, here, "", "stats", "--json")
		if err := json.Unmarshal([]byte(text), &stats); err != nil {
			t.Fatalf("%s %s", err, stderr)
		}
		calls, again := 5, 2
		if c.always {
			calls, again = 7, 3
		}
		if got := stats.Total; got.Calls != calls || got.Unasked != calls || got.AllowedAfterStop != again || got.Stopped < calls-1 || len(stats.Chats) != 1 {
			t.Errorf("%s: stats: %s", c.name, text)
		}
		if text, _, _ := runProgram(t, here, "", "stats"); !strings.Contains(text, "sandbox.workspace") || !strings.Contains(text, "stopped by the sandbox") {
			t.Errorf("%s: stats: %s", c.name, text)
		}
	}
}

// On a terminal, eca exec asks about stopped commands, with the same answers as an editor. Without
// a terminal, it reports what was stopped and how to allow it.
func TestExecAsksAboutWhatTheSandboxStopped(t *testing.T) {
	needs.Long(t)
	needIsolation(t)
	for _, approve := range []string{"workspace", "all"} {
		home := testkit.OutOfTemp(t)
		if err := os.Mkdir(filepath.Join(home, ".tool"), 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(home, ".tool", "x")
		p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n    - calls: [{id: c, tool: eca__shell_command, arguments: {command: \"sh ./task.sh\"}}]\n    - {text: Done.}\nturns: []\n")
		here := newPlace(t, p.env()...)
		here.env = append(here.env, "HOME="+home, "TMPDIR="+t.TempDir(), `ECA_CONFIG={"chat":{"title":false}}`)
		if err := os.WriteFile(filepath.Join(here.root, "task.sh"), []byte("echo x > "+file+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		args := []string{"exec", "--approve", approve, "go"}
		done := func() bool {
			_, err := os.Stat(file)
			_ = os.Remove(file)
			return err == nil
		}
		_, said, code := runProgram(t, here, "", args...)
		if done() || code != 0 || !strings.Contains(said, "sandbox: use of "+file+" refused") || !strings.Contains(said, "On a terminal, eca exec asks whether to allow that") {
			t.Errorf("%s, without a terminal: exit code %d:\n%s", approve, code, said)
		}
		for _, c := range []struct {
			keys  string // empty: no question
			done  bool
			says  string // after the answer
			model string
		}{
			{"\n", false, "use of " + file + " refused", ""},
			{"x\no\n", true, "the user allowed it", "this is the output of the second run"},
			{"\x04", false, "", ""},
			{"a\n", true, "", ""},
			{"", true, "", ""},
		} {
			o := runOnTerminal(t, here, args...)
			if c.keys != "" {
				if asked := o.await("Answer? "); !strings.Contains(asked, "which tried to write to "+filepath.Dir(file)) || !strings.Contains(asked, "a: Always.") || !strings.Contains(asked, "n: Never.") {
					t.Errorf("%s: asked %s", approve, asked)
				}
			}
			for i, line := range strings.SplitAfter(c.keys, "\n") {
				if i > 0 && line != "" {
					o.await("Answer? ")
				}
				o.press(line)
			}
			rest, code := o.end()
			done := done()
			if code != 0 || done != c.done || !strings.Contains(rest, c.says) || c.keys == "" && strings.Contains(rest, "Answer?") || done && strings.Contains(rest, "To run commands outside") {
				t.Errorf("%s: after %q exit code %d:\n%s", approve, c.keys, code, rest)
			}
			if got := transcriptOf(p.last(t)); !strings.Contains(got, c.model) {
				t.Errorf("%s: after %q the model is told %s", approve, c.keys, got)
			}
		}
		list, _, _ := runProgram(t, here, "", "permission", "list")
		if key, _, _ := strings.Cut(list, "\t"); key != "sandbox: sh may write to "+filepath.Dir(file) {
			t.Errorf("%s: remembered: %s", approve, list)
		} else if _, said, code := runProgram(t, here, "", "permission", "forget", key); code != 0 {
			t.Errorf("%s: %s", approve, said)
		}
		o := runOnTerminal(t, here, args...)
		o.await("Answer? ")
		o.press("n\n")
		if rest, _ := o.end(); done() || !strings.Contains(rest, "the user denied this") {
			t.Errorf("%s: never: %s", approve, rest)
		}
		if rest, _ := runOnTerminal(t, here, args...).end(); done() || strings.Contains(rest, "Answer?") || !strings.Contains(rest, "the user has denied this permanently") {
			t.Errorf("%s: after never: %s", approve, rest)
		}
	}
}

// Without a terminal, the run names the setting for what the sandbox stopped: hosts or ports, and no
// other one.
func TestExecNamesTheSettingForWhatWasStopped(t *testing.T) {
	needIsolation(t)
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(server.URL, "http://"), ":")
	for said, want := range map[string]string{
		"curl: (6) Could not resolve host: one.example":                                  "list one.example in toolCall.sandboxHosts",
		"curl: (7) Failed to connect to localhost port " + port + ": Connection refused": "list " + port + " in toolCall.sandboxPorts",
	} {
		p := newProvider(t, callCassette(`{tool: eca__shell_command, arguments: {command: "touch made; echo '`+said+`' >&2; exit 7"}}`))
		_, errOut, _ := runProgram(t, newPlace(t, p.env()...), "", "exec", "--approve", "workspace", "go")
		if !strings.Contains(errOut, want) || strings.Count(errOut, " in toolCall.sandbox") != 1 {
			t.Errorf("%s: %q is not said, or more:\n%s", said, want, errOut)
		}
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// A killed daemon loses no streamed text that was shown, and the chat continues with a valid
// history.
func TestKillWhileStreaming(t *testing.T) {
	p := newProvider(t, `
cassette: 1
turns:
  - steps:
      - {text: "one two kumquat", hang: true}
  - steps:
      - {text: "welcome back"}
`)
	here := newPlace(t, p.env()...)
	first := here.serve(t)
	first.Open(here.root, nil)
	first.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "count"})
	first.Await(0, "the text", fake.Content("text", "kumquat"))
	first.kill9(t)

	second := here.serve(t)
	second.Open(here.root, nil)
	second.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "go on"})
	second.Await(0, "the end", fake.Finished())
	in := p.last(t)
	if got := transcriptOf(in); got != "user:count|assistant:one two kumquat|user:go on" {
		t.Errorf("history after the restart: %s", got)
	}
	for _, m := range second.Since(0) {
		if m.Method == "chat/opened" {
			t.Error("the chat was announced as new")
		}
	}
	shutDown(t, second)
}

// If a daemon is killed during a tool call, the next history has a result for the call.
func TestKillInToolCall(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, `
cassette: 1
turns:
  - steps:
      - calls: [{id: call_1, tool: eca__shell_command, arguments: {command: "echo $$ >pids; setsid sh -c 'echo $$ >>pids; exec sleep 300' & sleep 300"}}]
  - steps:
      - {text: "welcome back"}
`)
	here := newPlace(t, p.env()...)
	first := here.serve(t)
	first.Open(here.root, nil)
	first.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "sleep", "trust": true})
	first.Await(0, "the command", fake.Content("toolCallRunning"))
	pids := awaitPids(t, here, 2)
	first.kill9(t)
	if runtime.GOOS == "linux" {
		awaitGone(t, pids)
	}

	second := here.serve(t)
	second.Open(here.root, nil)
	second.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "go on"})
	second.Await(0, "the end", fake.Finished())
	in := p.last(t)
	checkHistory(t, in)
	if got := transcriptOf(in); !strings.HasPrefix(got, "user:sleep|call:call_1|output:call_1:This call was interrupted") {
		t.Errorf("history after the restart: %s", got)
	}
	shutDown(t, second)
}

// If a daemon is killed, none of the processes that it started is left, not even those in the
// background, in their own session, or without a parent.
func TestKillLeavesNothing(t *testing.T) {
	needs.Long(t)
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: only Linux can hold this; docs/sandbox.md says what is left elsewhere")
	}
	const call = "      - calls: [{id: call_1, tool: eca__%s, arguments: %s}]\n"
	for name, c := range map[string]struct{ config, step string }{
		"command":        {`{"welcomeMessage": ""}`, fmt.Sprintf(call, "shell_command", `{command: "sh ./spawn.sh"}`)},
		"background job": {`{"welcomeMessage": ""}`, fmt.Sprintf(call, "shell_command", `{command: "sh ./spawn.sh", background: "server"}`)},
		"custom tool":    {`{"customTools": {"mine": {"description": "d", "command": "sh ./spawn.sh", "schema": {"properties": {}}}}}`, fmt.Sprintf(call, "mine", "{}")},
		"hook":           {`{"hooks": {"mine": {"type": "preRequest", "actions": [{"type": "shell", "shell": "sh ./spawn.sh"}]}}}`, "      - {text: hello}\n"},
		"hook of a tool": {`{"hooks": {"mine": {"type": "preToolCall", "actions": [{"type": "shell", "shell": "sh ./spawn.sh"}]}}}`, fmt.Sprintf(call, "shell_command", `{command: "true"}`)},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n"+c.step+"      - {text: done}\nturns: []\n")
			here := newPlace(t, append(p.env(), `ECA_CONFIG={"chat":{"title":false},`+strings.TrimPrefix(c.config, "{"))...)
			if err := os.WriteFile(filepath.Join(here.root, "spawn.sh"), []byte(spawnScript), 0o644); err != nil {
				t.Fatal(err)
			}
			daemon := here.serve(t)
			daemon.Open(here.root, nil)
			daemon.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "go", "trust": true})
			pids := awaitPids(t, here, 3)
			daemon.kill9(t)
			awaitGone(t, pids)
		})
	}
}

// A daemon that is killed leaves no temporary folder of its commands.
func TestKillLeavesNoTemp(t *testing.T) {
	if s := sandbox.Probe(); runtime.GOOS != "linux" || !s.Holds {
		t.Skip("NOT TESTED: no sandbox on this machine: " + s.Without)
	}
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n      - calls: [{id: call_1, tool: eca__shell_command, arguments: {command: tail -f a.txt}}]\n      - {text: done}\nturns: []\n")
	here := newPlace(t, p.env()...)
	temp := t.TempDir()
	here.env = append(here.env, "TMPDIR="+temp)
	if err := os.WriteFile(filepath.Join(here.root, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon := here.serve(t)
	daemon.Open(here.root, nil)
	daemon.Call("chat/prompt", map[string]any{"chatId": "c1", "message": "go", "agent": "plan"})
	for n := 0; !runsIn(t, here.root, "tail\x00-f\x00a.txt\x00"); n++ {
		const enough = 6000
		if n == enough {
			t.Fatal("the command does not start")
		}
		time.Sleep(10 * time.Millisecond)
	}
	left := func() []string {
		found, err := filepath.Glob(filepath.Join(temp, "eca-*"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if len(left()) == 0 {
		t.Error("the command has no folder: the test sees nothing")
	}
	daemon.kill9(t)
	for n := 0; len(left()) > 0; n++ {
		const enough = 6000
		if n == enough {
			t.Fatalf("left behind: %v", left())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// runsIn reports whether a process with some words in its command line runs in a folder.
func runsIn(t *testing.T, dir, words string) bool {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		data, _ := os.ReadFile(path)
		cwd, _ := os.Readlink(filepath.Join(filepath.Dir(path), "cwd"))
		if string(data) == words && cwd == dir {
			return true
		}
	}
	return false
}

// awaitPids reads the process ids that a command has written, and returns their ids on this
// machine: a sandboxed command has its own namespace of ids.
func awaitPids(t *testing.T, here place, n int) []int {
	t.Helper()
	missing := "the command"
	for range 6000 {
		data, _ := os.ReadFile(filepath.Join(here.root, "pids"))
		if fields := strings.Fields(string(data)); len(fields) >= n && strings.HasSuffix(string(data), "\n") {
			var out []int
			for _, f := range fields {
				if pid := pidHere(t, here, f); pid != 0 {
					out = append(out, pid)
				} else { // a process that just runs exec has no environment for a moment
					missing = "process " + f
				}
			}
			if len(out) == len(fields) {
				return out
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%s does not run", missing)
	return nil
}

// pidHere returns the process of a place that has an id in its innermost namespace.
func pidHere(t *testing.T, here place, id string) int {
	t.Helper()
	found, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range found {
		status, _ := os.ReadFile(filepath.Join(dir, "status"))
		_, ids, _ := strings.Cut(string(status), "NSpid:")
		ids, _, _ = strings.Cut(ids, "\n")
		if fields := strings.Fields(ids); len(fields) == 0 || fields[len(fields)-1] != id {
			continue
		}
		environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
		for pair := range strings.SplitSeq(string(environ), "\x00") {
			if slices.Contains(here.env, pair) && strings.HasPrefix(pair, "HOME=") {
				pid, err := strconv.Atoi(filepath.Base(dir))
				if err != nil {
					t.Fatal(err)
				}
				return pid
			}
		}
	}
	return 0
}

// awaitGone reports processes that outlive the daemon; their own end would take minutes.
func awaitGone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		gone := false
		for range 6000 {
			stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			if gone = err != nil || strings.Contains(string(stat), ") Z "); gone {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		if !gone {
			t.Errorf("process %d outlives the daemon", pid)
		}
	}
}

// The daemon is killed at any moment of an answer. The next start shows everything that was shown
// of it.
func TestKillKeepsWhatWasShown(t *testing.T) {
	needs.Long(t)
	words := strings.Repeat("many words of an answer ", 40)
	p := newProvider(t, fmt.Sprintf(`
cassette: 1
default:
  steps:
    - {reasoning: %q, text: %[1]q, delay: 1ms, calls: [{id: call_1, tool: eca__read_file, arguments: {path: %[1]q}}]}
    - {text: %[1]q, delay: 1ms}
turns: []
`, words))
	here := newPlace(t, p.env()...)
	said := func(list []fake.Message) map[string]string {
		out := map[string]string{}
		for _, m := range list {
			var c struct {
				Role    string
				Content struct{ Type, Text string }
			}
			if json.Unmarshal(m.Params, &c) == nil && c.Role == "assistant" {
				out[c.Content.Type] += c.Content.Text
			}
		}
		return out
	}
	shown := 0
	for round := 0; round < 10 || shown == 0 && round < 60; round++ {
		id := fmt.Sprintf("c%d", round)
		first := here.serve(t)
		first.Open(here.root, nil)
		first.Call("chat/prompt", map[string]any{"chatId": id, "message": "go"})
		first.Await(0, "the answer", fake.Contains("chat/contentReceived", `"reasonText"`))
		time.Sleep(time.Duration(rand.IntN(400)) * time.Millisecond)
		first.kill9(t)
		before := said(first.Since(0))
		shown += len(before["reasonText"] + before["text"])

		second := here.serve(t)
		second.Open(here.root, nil)
		second.Call("chat/open", map[string]any{"chatId": id})
		after := said(second.Since(0))
		for kind, text := range before {
			if !strings.HasPrefix(after[kind], text) {
				t.Errorf("round %d: %d bytes of %s were shown, %d are left", round, len(text), kind, len(after[kind]))
			}
		}
		second.kill9(t)
	}
	if shown == 0 {
		t.Error("nothing was ever shown; the test tests nothing")
	}
}

// The daemon is killed at any moment. The next start has everything that was shown, and continues.
func TestKillAtAnyMoment(t *testing.T) {
	needs.Long(t)
	var steps strings.Builder
	for i := range 10 {
		fmt.Fprintf(&steps, "      - text: 'step %d of many words '\n        delay: 1ms\n        calls: [{id: call_%d, tool: eca__read_file, arguments: {path: \"${workspace}/a.txt\"}}]\n", i, i)
	}
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n"+steps.String()+"      - {text: done}\nturns: []\n")
	here := newPlace(t, p.env()...)
	if err := os.WriteFile(filepath.Join(here.root, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{} // calls whose result was shown

	for round := 0; round < 6 || len(shown) == 0 && round < 60; round++ { // a busy machine shows little in that time
		proc := here.serve(t)
		proc.Open(here.root, nil)
		proc.Call("chat/prompt", map[string]any{"chatId": "c1", "message": fmt.Sprintf("round %d", round)})
		if round > 0 {
			// The first request after the kill has everything that was shown before it.
			proc.Await(0, "an answer", fake.Content("progress", "Generating"))
			in := p.last(t)
			checkHistory(t, in)
			have := transcriptOf(in)
			for id := range shown {
				if !strings.Contains(have, "output:"+id+":hello") {
					t.Errorf("round %d: the result of %s was shown but is not in the history: %s", round, id, have)
				}
			}
		}
		time.Sleep(time.Duration(rand.IntN(120)) * time.Millisecond)
		proc.kill9(t)
		for _, m := range proc.Since(0) {
			var c struct{ Content struct{ Type, ID string } }
			if json.Unmarshal(m.Params, &c) == nil && c.Content.Type == "toolCalled" {
				shown[c.Content.ID] = true
			}
		}
	}
	if len(shown) == 0 {
		t.Error("no call was ever shown; the test tests nothing")
	}
}

// transcriptOf renders the input of a Responses request.
func transcriptOf(input []map[string]any) string {
	var out []string
	for _, item := range input {
		switch item["type"] {
		case "function_call":
			out = append(out, fmt.Sprintf("call:%v", item["call_id"]))
		case "function_call_output":
			out = append(out, fmt.Sprintf("output:%v:%v", item["call_id"], item["output"]))
		default:
			text := ""
			parts, _ := item["content"].([]any)
			for _, p := range parts {
				text += fmt.Sprint(p.(map[string]any)["text"])
			}
			out = append(out, fmt.Sprintf("%v:%v", item["role"], text))
		}
	}
	return strings.Join(out, "|")
}

// checkHistory reports a history that a provider would refuse.
func checkHistory(t *testing.T, input []map[string]any) {
	t.Helper()
	if problem := historyProblem(input); problem != "" {
		t.Error(problem)
	}
}

// historyProblem says why a provider would refuse a history, if it would: every call needs exactly one
// output, after it.
func historyProblem(input []map[string]any) string {
	open := map[any]bool{}
	for _, item := range input {
		id := item["call_id"]
		switch item["type"] {
		case "function_call":
			open[id] = true
		case "function_call_output":
			if !open[id] {
				return fmt.Sprintf("output without a call: %v in %s", id, transcriptOf(input))
			}
			delete(open, id)
		default:
			if len(open) > 0 {
				return fmt.Sprintf("calls without output before %v: %v", item["content"], open)
			}
		}
	}
	if len(open) > 0 {
		return fmt.Sprintf("calls without output: %v", open)
	}
	return ""
}

func shutDown(t testing.TB, p *process) {
	t.Helper()
	if res := p.Call("shutdown", nil); string(res) != "null" {
		t.Errorf("shutdown answered %s", res)
	}
	p.Notify("exit", nil)
	if code := p.wait(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.stderr)
	}
}

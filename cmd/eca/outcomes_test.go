package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// `eca chats show` shows how each call ended, and `eca stats` counts each call once. The calls: one that
// the user rejects, one stopped before an answer, one stopped while it runs, one that runs when eca is
// killed, and one in `eca exec`, which has no user to ask.
func TestOutcomesOfCalls(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	p := newProvider(t, "cassette: 1\ntitle: A title\ndefault:\n  steps:\n    - calls: [{tool: eca__shell_command, arguments: {command: \"touch planted; sleep 300\"}}]\n    - {text: done}\nturns: []\n")
	here := newPlace(t, p.env()...)
	daemon := here.serve(t)
	daemon.Open(here.root, nil)
	asked := func(prompt string) (mark int, id string) {
		t.Helper()
		mark = daemon.Mark()
		daemon.Call("chat/prompt", map[string]any{"chatId": "c1", "message": prompt})
		daemon.Await(mark, "the question", fake.Content("toolCallRun"))
		for _, m := range daemon.Since(mark) {
			var p struct{ Content struct{ Type, ID string } }
			if json.Unmarshal(m.Params, &p) == nil && p.Content.Type == "toolCallRun" {
				id = p.Content.ID
			}
		}
		return mark, id
	}
	answer := func(method, id string) {
		daemon.Notify("chat/"+method, map[string]any{"chatId": "c1", "toolCallId": id})
	}
	stop := func(mark int) {
		t.Helper()
		daemon.Notify("chat/promptStop", map[string]any{"chatId": "c1"})
		daemon.Await(mark, "the end", fake.Finished())
	}
	mark, id := asked("to be rejected")
	answer("toolCallReject", id)
	daemon.Await(mark, "the end", fake.Finished())
	mark, _ = asked("to be stopped")
	stop(mark)
	mark, id = asked("to be stopped while it runs")
	answer("toolCallApprove", id)
	daemon.Await(mark, "the command", fake.Content("toolCallRunning"))
	stop(mark)
	mark, id = asked("to be killed")
	answer("toolCallApprove", id)
	daemon.Await(mark, "the command", fake.Content("toolCallRunning"))
	daemon.kill9(t)

	shows := func(want ...string) {
		t.Helper()
		out, errOut, code := runProgram(t, here, "", "chats", "show", "c1")
		for _, w := range want {
			if code != 0 || !strings.Contains(out, w) {
				t.Errorf("no %q: exit %d: %s%s", w, code, out, errOut)
			}
		}
	}
	before := []string{"(did not run: rejected by the user)", "(did not run: stopped before it ran)", "(stopped while it ran)"}
	shows(append(before, "(still running, or eca was killed while it ran)", "This turn has not finished")...)
	daemon = here.serve(t) // the next prompt notes what was interrupted
	daemon.Open(here.root, nil)
	mark, _ = asked("go on")
	stop(mark)
	shutDown(t, daemon)
	shows(append(before, "(interrupted: eca ended while it ran)", "Interrupted: eca ended before this turn was finished")...)

	if _, errOut, code := runProgram(t, here, "", "exec", "nobody is there"); code != exitRefused {
		t.Errorf("exec: exit %d: %s", code, errOut)
	}
	var stats struct{ Total callStats }
	out, errOut, _ := runProgram(t, here, "", "stats", "--json")
	if err := json.Unmarshal([]byte(out), &stats); err != nil {
		t.Fatal(err, errOut)
	}
	want := callStats{Calls: 6, Asked: 5, Approved: 2, Rejected: 1, Unanswered: 2, NoUserToAsk: 1}
	if got := stats.Total; got.Calls != want.Calls || got.Asked != want.Asked || got.Approved != want.Approved || got.Rejected != want.Rejected ||
		got.Unanswered != want.Unanswered || got.NoUserToAsk != want.NoUserToAsk || got.Unasked+got.Denied+got.Invalid != 0 {
		t.Errorf("stats: %s", out)
	}
}

// A run whose answer is not read any more, as with `eca exec | head`, stops instead of going on to
// its end, with text and with --json.
func TestExecStopsWithoutAReader(t *testing.T) {
	needs.POSIX(t)
	steps := ""
	for i := range 12 {
		steps += fmt.Sprintf("    - {text: \"step %d\\n\", calls: [{tool: eca__directory_tree, arguments: {path: \"${workspace}\", max_depth: %d}}]}\n", i, i+1)
	}
	p := newProvider(t, "cassette: 1\ntitle: A title\nturns: []\ndefault:\n  steps:\n"+steps+"    - {text: the end}\n")
	for _, args := range [][]string{{"exec", "go"}, {"exec", "--json", "go"}} {
		before := p.requests()
		here := newPlace(t, p.env()...)
		cmd := here.command(args...)
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = out.Close()
		}
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != usage.Unread || p.requests()-before > 10 {
			t.Errorf("%q: exit %d after %d requests", args, code, p.requests()-before)
		}
	}
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/tools"
)

// chainOf is the journal of a place.
func chainOf(t *testing.T, here place) *journal.Chain {
	t.Helper()
	c := journal.At(filepath.Join(filepath.Dir(here.root), "state", "eca"))
	t.Cleanup(c.Close)
	return c
}

// Two daemons write one journal and are killed at any moment: the chain stays valid and can be
// continued.
func TestKillKeepsJournal(t *testing.T) {
	needs.Long(t)
	var steps strings.Builder
	for i := range 12 {
		fmt.Fprintf(&steps, "      - text: 'step %d'\n        calls: [{id: call_%d, tool: eca__read_file, arguments: {path: \"${workspace}/a.txt\"}}]\n", i, i)
	}
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n"+steps.String()+"      - {text: done}\nturns: []\n")
	here := newPlace(t, p.env()...)
	if err := os.WriteFile(filepath.Join(here.root, "a.txt"), []byte("hello\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	c, lines := chainOf(t, here), 0
	for round := range 5 {
		var wg sync.WaitGroup
		for n := range 2 {
			proc := here.serve(t)
			proc.Open(here.root, nil)
			proc.Call("chat/prompt", map[string]any{"chatId": fmt.Sprint("c", n), "message": fmt.Sprintf("round %d", round)})
			proc.Await(0, "an answer", fake.Content("progress", "Generating"))
			wg.Go(func() {
				time.Sleep(time.Duration(rand.IntN(80)) * time.Millisecond)
				proc.kill9(t)
			})
		}
		wg.Wait()
		r, err := c.Verify()
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if r.Lines < lines {
			t.Fatalf("round %d: %d lines, fewer than the %d of the round before", round, r.Lines, lines)
		}
		lines = r.Lines
	}
	// A slow machine may have recorded nothing so far. The chain can be continued.
	proc := here.serve(t)
	proc.Open(here.root, nil)
	mark := proc.Mark()
	proc.Call("chat/prompt", map[string]any{"chatId": "last", "message": "to the end", "trust": true})
	proc.Await(mark, "the end", fake.Finished())
	shutDown(t, proc)
	if r, err := c.Verify(); err != nil || r.Lines <= lines {
		t.Errorf("%d lines, want more than %d; %v", r.Lines, lines, err)
	}
}

// Neither deleting a chat nor the end of the program waits for the journal. The next start
// completes the work: nothing is lost, and the texts of the deleted chat are removed.
func TestNothingWaitsForTheJournal(t *testing.T) {
	needs.Long(t)
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n      - {text: an answer}\nturns: []\n")
	here := newPlace(t, p.env()...)
	state := filepath.Join(filepath.Dir(here.root), "state", "eca")
	lock := flock.New(filepath.Join(state, "journal", "lock"))
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock.Path()), 0o700), lock.Lock()); err != nil { // like a slow process
		t.Fatal(err)
	}
	defer lock.Close()
	first := here.serve(t)
	first.Open(here.root, nil)
	say := func(proc *process, chat, text string) {
		mark := proc.Mark()
		proc.Call("chat/prompt", map[string]any{"chatId": chat, "message": text})
		proc.Await(mark, "the end", fake.Finished())
	}
	say(first, "gone", "an orange kumquat")
	say(first, "kept", "a green papaya")
	first.Call("chat/delete", map[string]any{"chatId": "gone"})
	shutDown(t, first)
	if left, err := os.ReadDir(filepath.Join(state, "journal", "pending")); err != nil || len(left) == 0 {
		t.Errorf("pending is %v, %v", left, err)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}

	second := here.serve(t)
	second.Open(here.root, nil)
	say(second, "new", "a blue plum")
	shutDown(t, second)
	c := chainOf(t, here)
	if r, err := c.Verify(); err != nil || r.Erased == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for chat, want := range map[string]string{"kept": "a green papaya", "new": "a blue plum"} {
		if got, err := c.Conversation(chat); err != nil || len(got.Turns) != 1 || got.Turns[0].Prompt != want {
			t.Errorf("%s: %+v, %v", chat, got, err)
		}
	}
	if left, err := os.ReadDir(filepath.Join(state, "journal", "pending")); err != nil || len(left) > 0 {
		t.Errorf("%d are pending, %v", len(left), err)
	}
	_ = filepath.WalkDir(state, func(path string, _ os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte("kumquat")) && !strings.Contains(path, ".db") { // SQLite's own files
			t.Errorf("what was deleted is still in %s", path)
		}
		return err
	})
}

// The record of a chat with tools and a subagent has cause and effect of each call. It is replayed
// without a model, and its bodies are deleted with the chat.
func TestJournalOfChat(t *testing.T) {
	p := newProvider(t, `
cassette: 1
turns:
  - user: '^change'
    steps:
      - calls:
          - {id: c1, tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}
          - {id: c2, tool: eca__directory_tree, arguments: {path: "${workspace}"}}
      - calls: [{id: c3, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: "planted after\n"}}]
      - {text: "changed it"}
  - user: '^delegate'
    steps:
      - calls: [{id: c4, tool: eca__spawn_agent, arguments: {agent: explorer, task: look}}]
      - {text: "it looked"}
  - {user: '^look', steps: [{text: "seen"}]}
`)
	here := newPlace(t, p.env()...)
	path := filepath.Join(here.root, "a.txt")
	if err := os.WriteFile(path, []byte("planted before\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	proc := here.serve(t)
	proc.Open(here.root, nil)
	for _, text := range []string{"change it", "delegate it"} {
		mark := proc.Mark()
		proc.Call("chat/prompt", map[string]any{"chatId": "c", "message": text, "trust": true})
		proc.Await(mark, "the end of "+text, fake.Finished())
	}
	shutDown(t, proc)

	c := chainOf(t, here)
	if _, err := c.Verify(); err != nil {
		t.Fatal(err)
	}
	calls, err := c.Calls("c")
	if err != nil {
		t.Fatal(err)
	}
	operations, ids, asks := []string{}, map[esrp.UUID]string{}, 0
	for _, call := range calls {
		cause, name := "user", call.Request.Target.Operation
		if id := call.Request.CausationID; id != nil {
			cause = ids[*id]
		}
		operations = append(operations, cause+">"+name)
		if name == "chat" {
			name = fmt.Sprint(name, asks)
			asks++
		}
		ids[call.Request.ID] = name
		if call.Response == nil || call.Response.Status != esrp.Succeeded {
			t.Errorf("line %d: the response is %+v", call.Seq, call.Response)
		}
	}
	if len(operations) > 2 {
		slices.Sort(operations[1:3]) // they run concurrently, so either may be recorded first
	}
	got := strings.Join(operations, " ")
	// With several results, the last one in the model's order counts as the cause.
	const want = "user>chat chat0>eca__directory_tree chat0>eca__read_file eca__directory_tree>chat chat1>eca__write_file eca__write_file>chat" +
		" user>chat chat3>eca__spawn_agent eca__spawn_agent>chat"
	if got != want {
		t.Errorf("causes and their operations:\n%s, want\n%s", got, want)
	}

	p.mu.Lock()
	asked := len(p.bodies)
	p.mu.Unlock()
	r, err := daemon.Replay(context.Background(), c, "c")
	if err != nil || r != (daemon.Replayed{Turns: 2, Requests: 5, Tools: 4}) {
		t.Errorf("replayed %+v, %v", r, err)
	}
	// The subagent's chat can be replayed as well.
	all, err := c.Calls("")
	if err != nil {
		t.Fatal(err)
	}
	sub := slices.IndexFunc(all, func(c journal.Call) bool { return strings.HasPrefix(*c.Request.Caller.RunID, tools.SubagentPrefix) })
	if sub < 0 {
		t.Fatal("no subagent is on record")
	}
	if r, err := daemon.Replay(context.Background(), c, *all[sub].Request.Caller.RunID); err != nil || r != (daemon.Replayed{Turns: 1, Requests: 1}) {
		t.Errorf("the subagent: replayed %+v, %v", r, err)
	}
	p.mu.Lock()
	if len(p.bodies) != asked {
		t.Error("the replay asked a model")
	}
	p.mu.Unlock()
	if data, err := os.ReadFile(path); err != nil || string(data) != "planted after\n" {
		t.Errorf("the file has %q, %v", data, err)
	}

	proc = here.serve(t)
	proc.Open(here.root, nil)
	proc.Call("chat/delete", map[string]any{"chatId": "c"})
	shutDown(t, proc)
	report, err := c.Verify()
	if err != nil || report.Erased == 0 {
		t.Errorf("after the chat was deleted: %+v, %v", report, err)
	}
	bodies, err := os.ReadDir(filepath.Join(filepath.Dir(here.root), "state", "eca", "artifacts", "sha256"))
	if err != nil || len(bodies) != 0 {
		t.Errorf("%d bodies are left, %v", len(bodies), err)
	}
}

// With the journal disabled, nothing is recorded.
func TestJournalOff(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault:\n  steps:\n      - {text: done}\nturns: []\n")
	here := newPlace(t, append(p.env(), `ECA_CONFIG={"chat":{"title":false},"journal":{"enabled":false}}`)...)
	proc := here.serve(t)
	proc.Open(here.root, nil)
	proc.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
	proc.Await(0, "the end", fake.Finished())
	shutDown(t, proc)
	if _, err := os.Stat(filepath.Join(filepath.Dir(here.root), "state", "eca", "journal")); !os.IsNotExist(err) {
		t.Errorf("there is a journal: %v", err)
	}
}

// If the record of calls was changed after it was written, the next run reports it.
func TestChangedJournalIsNamed(t *testing.T) {
	p := newProvider(t, callCassette(writeCall))
	here := newPlace(t, p.env()...)
	if _, stderr, _ := runProgram(t, here, "", "exec", "--approve", "all", "go"); strings.Contains(stderr, "journal") {
		t.Errorf("while it is whole: %s", stderr)
	}
	path := filepath.Join(here.root, "..", "state", "eca", "journal", "00000000000000000001.jsonl")
	if err := os.WriteFile(path, []byte("garbage {"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"config", "check"}, {"exec", "--approve", "all", "go"}} {
		stdout, stderr, _ := runProgram(t, here, "", args...)
		if said := stdout + stderr; !strings.Contains(said, "journal is damaged: 00000000000000000001.jsonl") || !strings.Contains(said, "To begin another journal, move the folder away") {
			t.Errorf("%q: %s", args, said)
		}
	}
}

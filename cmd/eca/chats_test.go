package main

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Stored chats are listed, found, shown, pinned, exported and deleted; an unknown chat is an error.
func TestChats(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault:\n  steps: [{text: \"The ferret \\e[31manswers.\"}]\nturns: []\n")
	here := newPlace(t, p.env()...)
	if _, errOut, code := runProgram(t, here, "", "exec", "where is the walrus"); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	chats := func(want int, args ...string) string {
		t.Helper()
		out, errOut, code := runProgram(t, here, "", append([]string{"chats"}, args...)...)
		if code != want || strings.ContainsRune(out+errOut, '\x1b') {
			t.Errorf("%q: exit %d, want %d: %q %q", args, code, want, out, errOut)
		}
		return out
	}
	var listed struct{ ID string }
	if err := json.Unmarshal([]byte(chats(0, "list", "--json")), &listed); err != nil || listed.ID == "" {
		t.Fatalf("list: %+v, %v", listed, err)
	}
	var found struct {
		Results []struct{ ChatID, Role, Text string }
	}
	if err := json.Unmarshal([]byte(chats(0, "search", "--json", "walr*", "role:user")), &found); err != nil || len(found.Results) != 1 || found.Results[0].ChatID != listed.ID {
		t.Errorf("search: %+v, %v", found, err)
	}
	for _, filter := range []string{"since:yesterday", "role:bot", "workspace:"} { // is not left out
		for _, asJSON := range []string{"--json=true", "--json=false"} {
			if out := chats(2, "search", asJSON, filter, "walrus"); out != "" {
				t.Errorf("search %s: %s", filter, out)
			}
		}
	}
	if out := chats(0, "search", "ferret"); !strings.Contains(out, listed.ID) || !strings.Contains(out, "The ferret") {
		t.Errorf("search: %s", out)
	}
	if out := chats(0, "show", listed.ID); !strings.Contains(out, "where is the walrus") || !strings.Contains(out, "The ferret") {
		t.Errorf("show: %s", out)
	}
	if out := chats(0, "export", listed.ID); !json.Valid([]byte(out)) || !strings.Contains(out, "eca-chat") {
		t.Errorf("export: %s", out)
	}
	// Without a title, which a model may give too late, the list has the first prompt.
	if out := chats(0, "list"); !strings.Contains(out, here.root+"  where is the walrus\n") {
		t.Errorf("list: %s", out)
	}
	file := filepath.Join(here.root, "out.json")
	chats(0, "export", listed.ID, file)
	chats(1, "export", listed.ID, file) // it exists
	for _, args := range [][]string{{"show", "none"}, {"export", "none"}, {"delete", "none"}, {"pin", "none"}} {
		chats(1, args...)
	}
	chats(0, "pin", listed.ID)
	chats(0, "unpin", listed.ID)
	chats(0, "delete", listed.ID)
	if out := chats(0, "list"); out != "" {
		t.Errorf("after its deletion: %s", out)
	}
	if out := chats(0, "search", "walrus"); out != "" {
		t.Errorf("after its deletion: %s", out)
	}
}

// The beginning of a chat's id names the chat if no other chat has it; else the command fails and
// lists the chats. Chats with nothing but slash commands are not listed.
func TestChatsByTheBeginningOfTheirIDs(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault:\n  steps: [{text: The ferret answers.}]\nturns: []\n")
	here := newPlace(t, p.env()...)
	run := func(want int, args ...string) (string, string) {
		t.Helper()
		out, errOut, code := runProgram(t, here, "", args...)
		if code != want {
			t.Errorf("%q: exit %d, want %d: %q %q", args, code, want, out, errOut)
		}
		return out, errOut
	}
	run(0, "exec", "/costs")
	if out, _ := run(0, "chats", "list"); out != "" {
		t.Errorf("a chat with nothing but a command is listed: %s", out)
	}
	run(0, "exec", "where is the walrus")
	var listed struct{ ID string }
	out, _ := run(0, "chats", "list", "--json")
	if err := json.Unmarshal([]byte(out), &listed); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	prefix := listed.ID[:8]
	if out, _ := run(0, "chats", "show", prefix); !strings.Contains(out, "where is the walrus") {
		t.Errorf("show: %s", out)
	}
	file := filepath.Join(here.root, "out.json")
	run(0, "chats", "export", prefix, file)
	if _, errOut := run(1, "chats", "export", prefix, file); !strings.Contains(errOut, "exists already and is not overwritten; remove it") {
		t.Errorf("export: %s", errOut)
	}
	if _, errOut := run(1, "chats", "export", prefix, here.root); !strings.Contains(errOut, "is a folder: name a file in it") {
		t.Errorf("export to a folder: %s", errOut)
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	events := func(document string) string {
		_, out, _ := strings.Cut(document, "\"events\":")
		return out
	}
	for _, to := range [][]string{{}, {"-"}} {
		if out, _ := run(0, append([]string{"chats", "export", prefix}, to...)...); events(out) != events(string(written)) {
			t.Errorf("export to stdout %q: %q, want the events of %q", to, out, written)
		}
	}
	run(1, "chats", "delete", listed.ID[:3])
	if _, errOut := run(1, "chats", "list", "--workspace", filepath.Join(here.root, "gone")); !strings.Contains(errOut, "there is no folder ") || !strings.Contains(errOut, ", and no chats were made there") {
		t.Errorf("a folder that is gone: %s", errOut)
	}
	if _, errOut := run(0, "chats", "search", "walrus rol:user"); !strings.Contains(errOut, "did you mean role:?") {
		t.Errorf("a misspelled filter: %s", errOut)
	}
	copyChat(t, here, listed.ID, prefix+"-copy")
	for _, command := range []string{"show", "export", "delete", "pin"} {
		_, errOut := run(1, "chats", command, prefix)
		for _, want := range []string{"several chats", listed.ID, prefix + "-copy"} {
			if !strings.Contains(errOut, want) {
				t.Errorf("%s: %q is not in %q", command, want, errOut)
			}
		}
	}
	run(0, "chats", "delete", prefix+"-co") // an id is hexadecimal: no other one begins so
	if out, _ := run(0, "chats", "delete", prefix); !strings.Contains(out, "deleted "+listed.ID) {
		t.Errorf("delete: %s", out)
	}
}

// copyChat copies the row of a chat to another id.
func copyChat(t *testing.T, here place, id, copied string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(filepath.Dir(here.root), "state", "eca", "chats.db"))+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // the temporary table is the connection's
	if _, err := db.Exec(`CREATE TEMP TABLE one AS SELECT * FROM chats WHERE id = ?`, id); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{`UPDATE one SET id = '` + copied + `', title = 'copy'`, `INSERT INTO chats SELECT * FROM one`} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
}

// A title that cannot be stored is not confirmed, and the message does not claim that the stored chat
// is lost.
func TestRenameOnAFullDisk(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	if _, stderr, code := runProgram(t, here, "", "exec", "hi"); code != 0 {
		t.Fatal(stderr)
	}
	db, err := sql.Open("sqlite", "file:"+filepath.ToSlash(filepath.Join(filepath.Dir(here.root), "state", "eca", "chats.db"))+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, change := range []string{"UPDATE ON chats", "INSERT ON events"} {
		if _, err := db.Exec("CREATE TRIGGER " + strings.Fields(change)[2] + "_full BEFORE " + change + " BEGIN SELECT RAISE(ABORT, 'disk full'); END"); err != nil {
			t.Fatal(err)
		}
	}
	out, stderr, code := runProgram(t, here, "", "exec", "--continue", "/rename Foo")
	if said := out + stderr; code != exitFailed || strings.Contains(said, "is now called") || !strings.Contains(said, "New messages of this chat cannot be saved") || !strings.Contains(said, "disk full") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// The chats that eca exec makes for slash commands are of no use to continue.
func TestResumeListsNoChatsOfCommands(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	for _, prompt := range []string{"/help", "hi", "/costs"} {
		if _, stderr, code := runProgram(t, here, "", "exec", prompt); code != 0 {
			t.Fatalf("%s: exit code %d: %s", prompt, code, stderr)
		}
	}
	out, stderr, code := runProgram(t, here, "", "exec", "/resume")
	if code != 0 || strings.Count(out, "message") != 1 || !strings.Contains(out, "- 1. **hi**") {
		t.Errorf("exit code %d: %s%s", code, out, stderr)
	}
}

// A fork is named with its id, and its earlier answers are not shown as those of the run.
func TestExecNamesTheFork(t *testing.T) {
	p := newProvider(t, answerCassette("fine"))
	here := newPlace(t, p.env()...)
	if _, errOut, code := runProgram(t, here, "", "exec", "hi"); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	out, errOut, code := runProgram(t, here, "", "exec", "--continue", "/fork")
	_, fork, found := strings.Cut(errOut, "Continue the fork with: eca exec --chat ")
	fork, _, _ = strings.Cut(fork, " ")
	if code != 0 || out != "" || !found || strings.Contains(errOut, "Continue with: eca exec --chat "+fork) {
		t.Fatalf("exit %d: %s%s", code, out, errOut)
	}
	if out, errOut, _ := runProgram(t, here, "", "chats", "show", fork); !strings.Contains(out, "fine") {
		t.Errorf("the fork: %s%s", out, errOut)
	}
}

// An answer is shown with its lines, without characters that control a terminal.
func TestChatsShowKeepsLines(t *testing.T) {
	p := newProvider(t, "cassette: 1\ndefault:\n  steps: [{text: \"# Ferrets\\n\\n- one\\n\\t- two\\e[2J\\n\"}]\nturns: []\n")
	here := newPlace(t, p.env()...)
	if _, errOut, code := runProgram(t, here, "", "exec", "first line\nsecond line"); code != 0 {
		t.Fatalf("exit %d: %s", code, errOut)
	}
	list, _, _ := runProgram(t, here, "", "chats", "list")
	id, _, _ := strings.Cut(list, " ")
	out, errOut, code := runProgram(t, here, "", "chats", "show", id)
	if code != 0 || !strings.Contains(out, ":\nfirst line\nsecond line\n\n") || !strings.Contains(out, ":\n# Ferrets\n\n- one\n\t- two\\u001b[2J\n") {
		t.Errorf("exit %d: %q %s", code, out, errOut)
	}
}

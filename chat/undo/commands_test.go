package undo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
)

// commandFiles records every call's files below a state directory.
func commandFiles(state string) *Files {
	kept := artifact.New(filepath.Join(state, "kept"), artifact.Options{})
	return New(Options{
		Artifacts: func() *artifact.Store { return kept }, Dir: func() string { return filepath.Join(state, "undo") },
		OwnFolders: []string{state}, Now: time.Now, Covers: func(tools.Call, tools.Plan) (bool, error) { return true, nil },
	})
}

// chatLog is the part of a chat's log that is about files.
type chatLog struct {
	t      *testing.T
	files  *Files
	id     string
	root   string
	events []event.Event
}

func (l *chatLog) add(b event.Body) {
	l.events = append(l.events, event.Event{Seq: event.Seq(len(l.events) + 1), Time: time.Now(), Body: b})
}

// begin makes an undo point. The returned function ends it.
func (l *chatLog) begin() (end func()) {
	l.t.Helper()
	p, _, err := l.files.Begin(l.t.Context(), l.id, tools.Call{ID: fmt.Sprint("call-", len(l.events)), Roots: []string{l.root}}, tools.Plan{})
	if err != nil {
		l.t.Fatal(err)
	}
	l.add(*p)
	return func() {
		l.t.Helper()
		if err := l.files.End(*p); err != nil {
			l.t.Fatal(err)
		}
		p.Ended = true
		l.add(*p)
	}
}

// command runs a shell command with an undo point.
func (l *chatLog) command(line string) {
	l.t.Helper()
	end := l.begin()
	sh(l.t, l.root, line)
	end()
}

// write changes a file as a file tool does.
func (l *chatLog) write(name, text string) {
	l.t.Helper()
	path := filepath.Join(l.root, name)
	c, err := l.files.Writing(l.t.Context(), l.id, path, []byte(text))
	if err != nil {
		l.t.Fatal(err)
	}
	l.add(c)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func (l *chatLog) rollback(problems ...string) {
	l.t.Helper()
	got := l.files.Rollback(context.Background(), l.events)
	if len(got) != len(problems) {
		l.t.Fatalf("problems %q, want %q", got, problems)
	}
	for i := range got {
		if !strings.Contains(got[i], problems[i]) {
			l.t.Errorf("problem %q, want %q", got[i], problems[i])
		}
	}
}

func sh(t *testing.T, dir, line string) {
	t.Helper()
	needs.POSIX(t)
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", line, err, out)
	}
}

// project makes a directory with files that are difficult to restore: odd names, modes, links and
// binary contents.
func project(t *testing.T) string {
	t.Helper()
	root := testkit.TempDir(t)
	sh(t, root, `
		mkdir -p src/deep empty ignored
		printf 'one\r\ntwo\r\n' >src/crlf.txt
		printf '\000\377binary' >src/deep/data
		printf secret >src/private; chmod 600 src/private
		printf '#!/bin/sh\n' >src/run; chmod 755 src/run
		printf fixed >src/fixed; chmod 444 src/fixed
		ln -s deep/data src/link; ln -s nowhere src/dangling; ln -s "$(printf 'no\377where')" src/odd-link
		chmod 750 src/deep
		printf '* text eol=lf filter=evil\n' >.gitattributes
		printf 'ignored\n' >.gitignore
		printf build >ignored/out
		name=$(printf 'caf\351 \n'); printf odd >"src/$name"
	`)
	return root
}

func newLog(t *testing.T) *chatLog {
	t.Helper()
	return &chatLog{t: t, files: commandFiles(testkit.TempDir(t)), id: "chat", root: project(t)}
}

func (l *chatLog) same(want map[string]string) {
	l.t.Helper()
	if diff := cmp.Diff(want, testkit.Tree(l.t, l.root)); diff != "" {
		l.t.Errorf("not as before (-want +got):\n%s", diff)
	}
}

// After each of these commands, a rollback restores all bytes, modes and links.
func TestRollbackOfCommands(t *testing.T) {
	needs.Long(t)
	outside := testkit.TempDir(t)
	if err := os.WriteFile(filepath.Join(outside, "data"), []byte("outside"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`sed -i s/two/three/ src/crlf.txt`,
		`rm src/private src/link`,
		`rm -r src`,
		`mv src elsewhere`,
		`mv src/crlf.txt src/private`,
		`chmod 777 src/private src/deep; chmod 000 src/run`,
		`rm -r src/deep; ln -s ` + outside + ` src/deep`,
		`rm src/link; mkdir src/link; echo x >src/link/x`,
		`rm -r src/deep; echo x >src/deep`,
		`ln -sf run src/link; rmdir empty`,
		`mkdir -p a/b/c; echo new >a/b/c/d; echo new >src/deep/new`,
		`echo '*' >.gitignore; rm src/crlf.txt; echo x >src/private`,
		`chmod 555 src/deep; chmod 500 src`,
		`mkfifo pipe`,
	} {
		l := newLog(t)
		before := testkit.Tree(t, l.root)
		l.command(line)
		l.rollback()
		l.same(before)
		l.rollback() // a second rollback changes nothing
		l.same(before)
		if t.Failed() {
			t.Fatal(line)
		}
	}
	if got := testkit.Tree(t, outside)["data"]; !strings.HasSuffix(got, "outside") {
		t.Errorf("a rollback changed the file outside to %q", got)
	}
}

// A rollback undoes commands and tools that ran one after the other or at the same time.
func TestRollbackOfSeveral(t *testing.T) {
	l := newLog(t)
	before := testkit.Tree(t, l.root)
	l.command(`echo 1 >src/private; echo new >new`)
	l.write("src/private", "2")
	l.command(`echo 3 >src/private; rm new; mv src/run run`)
	l.write("run", "mine")
	first := l.begin()
	sh(t, l.root, `echo 4 >src/private; echo first >first`)
	second := l.begin()
	l.write("src/private", "5")
	sh(t, l.root, `echo 6 >src/private; echo second >first`)
	first()
	sh(t, l.root, `echo 7 >src/private; echo 3 >third`)
	second()
	l.write("third", "mine")
	l.rollback()
	l.same(before)
}

// A rollback keeps and reports files that the user changed later, and undoes all other changes.
func TestRollbackLeavesWhatTheUserChanged(t *testing.T) {
	l := newLog(t)
	l.command(`echo 1 >src/private; echo new >new; rm src/crlf.txt; mkdir made; echo x >made/x`)
	before := testkit.Tree(t, l.root)
	sh(t, l.root, `echo mine >src/private; echo mine >src/crlf.txt; echo y >made/y; rm new`)
	l.rollback("src/crlf.txt was changed since", "src/private was changed since", "made was not removed, because it contains files that the command did not create")
	got := testkit.Tree(t, l.root)
	for _, name := range []string{"src/private", "src/crlf.txt"} {
		if !strings.HasSuffix(got[name], "mine\n") {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if got["made/y"] == "" || got["made/x"] != "" || got["src/run"] != before["src/run"] {
		t.Errorf("%v", got)
	}
}

// A file that the user has changed since is reported once, however often it was changed before.
func TestRollbackReportsAFileOnce(t *testing.T) {
	l := newLog(t)
	l.write("src/private", "1")
	l.command(`echo 2 >src/private`)
	l.write("src/private", "3")
	l.write("src/private", "4")
	l.command(`echo 5 >src/private`)
	sh(t, l.root, `echo mine >src/private`)
	l.rollback("src/private was changed since")
}

// A rollback does not follow a folder that has become a link.
func TestRollbackOfCommandsFollowsNoLinks(t *testing.T) {
	l := newLog(t)
	outside := testkit.TempDir(t)
	l.command(`echo 1 >src/deep/data`)
	sh(t, l.root, `cp src/deep/data `+outside+`; mv src/deep aside; ln -s `+outside+` src/deep`)
	want := testkit.Tree(t, outside)
	l.rollback("was changed since")
	if diff := cmp.Diff(want, testkit.Tree(t, outside)); diff != "" {
		t.Error(diff)
	}
}

// If another chat runs a command or writes a file during a command, eca cannot tell which chat made a
// change. The rollback does not undo such a change, and undoes the other changes of its own chat.
func TestRollbackOfTwoChats(t *testing.T) {
	l := newLog(t)
	other := &chatLog{t: t, files: commandFiles(filepath.Dir(l.files.opts.Dir())), id: "other", root: l.root} // another process
	end := l.begin()
	sh(t, l.root, `echo mine >mine`)
	other.command(`echo theirs >theirs`)
	sh(t, l.root, `echo mine >mine2`)
	third := &chatLog{t: t, files: l.files, id: "third", root: l.root}
	third.write("tool", "third")
	end()
	l.rollback("theirs may have been changed by another chat", "tool may have been changed by another chat")
	got := testkit.Tree(t, l.root)
	if got["mine"] != "" || got["mine2"] != "" || got["theirs"] == "" || got["tool"] == "" {
		t.Errorf("%v", got)
	}
	other.rollback("theirs may have been changed by another chat")
	third.rollback()

	l = newLog(t)
	other = &chatLog{t: t, files: l.files, id: "other", root: l.root}
	before := testkit.Tree(t, l.root)
	l.command(`echo 1 >one`)
	other.command(`echo 2 >two`)
	l.rollback()
	other.rollback()
	l.same(before)
}

// If eca is killed while a command runs, a rollback restores the files that the command removed, and
// names those that it changed or created.
func TestRollbackAfterCrash(t *testing.T) {
	l := newLog(t)
	before := testkit.Tree(t, l.root)
	l.begin()
	sh(t, l.root, `rm -r src/deep; echo 1 >src/private; echo 2 >new`)
	l.files = commandFiles(filepath.Dir(l.files.opts.Dir()))
	l.rollback("new was changed, but eca could not record", "src/private was changed, but eca could not record")
	got := testkit.Tree(t, l.root)
	if got["src/deep/data"] != before["src/deep/data"] || got["src/deep"] != before["src/deep"] || !strings.HasSuffix(got["src/private"], "1\n") || got["new"] == "" {
		t.Errorf("%v", got)
	}
}

// If a process is killed while it records, at any moment, the next process can use the record.
func TestKilledWhileRecording(t *testing.T) {
	needs.Long(t)
	if state := os.Getenv("UNDO_TEST_STATE"); state != "" {
		l := &chatLog{t: t, files: commandFiles(state), id: "killed", root: os.Getenv("UNDO_TEST_ROOT")}
		for n := 0; ; n++ {
			end := l.begin()
			for f := range 10 {
				_ = os.WriteFile(filepath.Join(l.root, fmt.Sprint("f", f)), []byte(fmt.Sprint(n)), 0o644)
			}
			_ = os.Rename(filepath.Join(l.root, fmt.Sprint("g", n-1)), filepath.Join(l.root, fmt.Sprint("g", n)))
			end()
		}
	}
	l := newLog(t)
	state := filepath.Dir(l.files.opts.Dir())
	for n := range 8 {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledWhileRecording$")
		cmd.Env = append(os.Environ(), "UNDO_TEST_STATE="+state, "UNDO_TEST_ROOT="+l.root)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(60+37*n) * time.Millisecond) // a kill at a random moment
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		before := testkit.Tree(t, l.root)
		next := &chatLog{t: t, files: commandFiles(state), id: fmt.Sprint("next", n), root: l.root}
		next.command(`echo x >f1; rm -r src; echo new >new`)
		next.files = commandFiles(state)
		// The record does not show when the process was killed, so it may have made these changes.
		problems := next.files.Rollback(t.Context(), next.events)
		for _, p := range problems {
			if !strings.Contains(p, "another chat") {
				t.Error(p)
			}
		}
		if err := next.files.Forget(t.Context(), "killed"); err != nil {
			t.Fatal(err)
		}
		next.rollback()
		next.same(before)
	}
}

// Begin fails if it cannot record the files, so that eca can ask the user about the command.
func TestBeginFails(t *testing.T) {
	l := newLog(t)
	begin := func() error {
		_, _, err := l.files.Begin(t.Context(), "chat", tools.Call{ID: "c", Roots: []string{l.root}}, tools.Plan{})
		return err
	}
	dir := l.files.opts.Dir()
	if err := os.WriteFile(dir, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if begin() == nil {
		t.Error("Begin succeeded, although a file is where the folder for records should be")
	}
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	// Contents above the limit for undo are refused.
	r := l.files.record(l.root)
	full := func(size int64) error {
		_, err := (&objects{dir: filepath.Join(dir, "x"), max: size}).put(strings.NewReader("0123456789"), 10)
		return err
	}
	if err := full(5); !errors.Is(err, errNoRoom) {
		t.Errorf("%v", err)
	}
	if err := full(10); err != nil {
		t.Error(err)
	}
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(l.root); err != nil {
		t.Fatal(err)
	}
	if begin() == nil {
		t.Error("Begin succeeded, although the workspace folder does not exist")
	}
	// A damaged record is replaced by a new one.
	for _, file := range []string{"base", "changes/" + r.id + "-1"} {
		l := newLog(t)
		l.command(`echo 1 >one`)
		r := l.files.record(l.root)
		path := filepath.Join(r.dir, file)
		if file != "base" {
			path = r.stepPath(r.id, 1)
		}
		if err := os.Truncate(path, 10); err != nil {
			t.Fatal(err)
		}
		l.files = commandFiles(filepath.Dir(l.files.opts.Dir()))
		before := testkit.Tree(t, l.root)
		l.events = nil
		l.command(`echo 2 >one; rm -r src`)
		l.rollback()
		l.same(before)
	}
}

// Records are deleted with their chat and with age; records that others need stay.
func TestRecordsArePruned(t *testing.T) {
	ctx := t.Context()
	l := newLog(t)
	now := time.Now()
	l.files.opts.Now = func() time.Time { return now }
	other := &chatLog{t: t, files: l.files, id: "other", root: l.root}
	l.command(`echo only in this chat >src/private`)
	other.command(`echo theirs >src/private`)
	r := l.files.record(l.root)
	kept := func(text string) bool { return r.objects.has(artifact.Hash([]byte(text)), int64(len(text))) }
	if !kept("secret") || !kept("only in this chat\n") {
		t.Fatal("contents are not kept")
	}
	if err := l.files.Forget(ctx, "chat"); err != nil {
		t.Fatal(err)
	}
	if kept("secret") || !kept("only in this chat\n") || !kept("theirs\n") {
		t.Errorf("kept: %v %v %v", kept("secret"), kept("only in this chat\n"), kept("theirs\n"))
	}
	l.rollback("eca no longer knows")
	other.rollback()
	if got := testkit.Tree(t, l.root)["src/private"]; !strings.HasSuffix(got, "only in this chat\n") {
		t.Errorf("%q", got)
	}
	now = now.Add(time.Hour)
	if err := l.files.Clean(ctx, time.Minute); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(l.files.opts.Dir()); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	l.events = nil
	before := testkit.Tree(t, l.root)
	l.command(`rm -r src`)
	l.rollback()
	l.same(before)
}

// Begin names the files that a rollback could not restore.
func TestNotCovered(t *testing.T) {
	l := newLog(t)
	sh(t, l.root, `truncate -s 70M large; mkfifo pipe`)
	_, left, err := l.files.Begin(t.Context(), "chat", tools.Call{ID: "c", Roots: []string{l.root}}, tools.Plan{Command: &tools.Command{Background: true}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"files that git ignores", "large (70 MB)", "pipe", "what it changes later, in the background"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Error(diff)
	}
	before := testkit.Tree(t, filepath.Join(l.root, "src"))
	l.command(`truncate -s 71M large; rm src/private`)
	l.rollback("the old content of " + filepath.Join(l.root, "large") + " was not saved")
	if diff := cmp.Diff(before, testkit.Tree(t, filepath.Join(l.root, "src"))); diff != "" {
		t.Error(diff)
	}
}

// Of workspace folders inside each other, only the outermost is recorded. eca's own folders are not.
func TestNestedRoots(t *testing.T) {
	l := newLog(t)
	own := filepath.Join(l.root, "state")
	l.files.opts.OwnFolders = []string{own}
	sh(t, l.root, `mkdir state; echo x >state/x`)
	p, _, err := l.files.Begin(t.Context(), "chat", tools.Call{ID: "c", Roots: []string{filepath.Join(l.root, "src"), l.root, l.root}}, tools.Plan{})
	if err != nil || len(p.Roots) != 1 || p.Roots[0].Path != l.root {
		t.Errorf("%v, %v", p, err)
	}
	if r := l.files.record(l.root); r.files["state/x"] != nil || r.files["src/private"] == nil {
		t.Errorf("%v", r.files)
	}
}

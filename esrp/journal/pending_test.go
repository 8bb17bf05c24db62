package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
)

// holdLock holds a journal's lock like a slow process.
func holdLock(t *testing.T, state string) (release func()) {
	t.Helper()
	dir := filepath.Join(state, "journal")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	lock := flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600))
	if err := lock.Lock(); err != nil {
		t.Fatal(err)
	}
	return func() { _ = lock.Close() }
}

// lines counts the recorded lines, all of which must be valid.
func lines(t *testing.T, state string) int {
	t.Helper()
	checkJournal(t, state)
	c := At(state)
	defer c.Close()
	var out bytes.Buffer
	if err := c.Export(&out); err != nil {
		t.Fatal(err)
	}
	return bytes.Count(out.Bytes(), []byte("\n"))
}

func pendingFiles(t *testing.T, state, suffix string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(state, "journal", pendingDir, "*"+suffix))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// runNextProcess is the next process, which records nothing itself.
func runNextProcess(t *testing.T, state string) {
	t.Helper()
	j := New(state, Options{})
	defer j.Close()
	if err := j.Trim(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := pendingFiles(t, state, ""); len(left) > 0 {
		t.Errorf("%q is left", left)
	}
}

// closedWhileLocked records turns in a journal and closes it while another process holds its lock.
func closedWhileLocked(t *testing.T, state string, turns int) {
	t.Helper()
	release := holdLock(t, state)
	defer release()
	j := New(state, Options{Clean: func(s string) string { return strings.ReplaceAll(s, "secret", "[REDACTED]") }})
	j.patience = time.Millisecond
	m := j.Model(hello(), "p/m")
	for i := range turns {
		ask(t, m, "chat", fmt.Sprint("t", i), userMessage("the secret"), userMessage(fmt.Sprint("question ", i)))
	}
	j.Close()
}

// Trim stops waiting for another process's lock when its context ends, because the program must end.
func TestTrimStopsWaiting(t *testing.T) {
	state := t.TempDir()
	release := holdLock(t, state)
	defer release()
	j := New(state, Options{})
	j.patience = time.Millisecond
	ask(t, j.Model(hello(), "p/m"), "chat", "t", userMessage("a question"))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- j.Trim(ctx) }()
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Trim: %v", err)
	}
	j.Close()
}

// A process that ends leaves unfinished work to the next one: no record is lost or duplicated, and
// the notes contain no secrets.
func TestNextProcessContinues(t *testing.T) {
	state := t.TempDir()
	closedWhileLocked(t, state, 5)
	if n := lines(t, state); n != 0 {
		t.Errorf("%d lines were written without the lock", n)
	}
	files := pendingFiles(t, state, recordsSuffix)
	if len(files) != 1 {
		t.Fatalf("pending: %q", pendingFiles(t, state, ""))
	}
	data, err := os.ReadFile(files[0])
	if err != nil || bytes.Contains(data, []byte("secret")) {
		t.Errorf("%v: %s", err, data)
	}
	closedWhileLocked(t, state, 1)
	runNextProcess(t, state)
	if n := lines(t, state); n != 12 {
		t.Errorf("%d lines, want 12", n)
	}
	c := At(state)
	defer c.Close()
	calls, err := c.Calls("chat")
	if err != nil || len(calls) != 6 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for _, call := range calls {
		for _, b := range append(call.Request.Inputs, call.Response.Outputs...) {
			if _, err := c.Body(b); err != nil {
				t.Errorf("%s: %v", b.Name, err)
			}
		}
	}
}

// The next process finishes the work of a killed one, wherever that one stopped.
func TestPendingSurvivesKills(t *testing.T) {
	for name, kill := range map[string]func(t *testing.T, path string, whole []byte){
		"while it was noted": func(t *testing.T, path string, whole []byte) {
			cut := bytes.LastIndexByte(whole[:len(whole)-1], '\n')
			save(t, strings.TrimSuffix(path, recordsSuffix)+growingSuffix, append(whole, whole[cut+1:len(whole)-9]...))
		},
		"before it was appended": func(t *testing.T, path string, whole []byte) { save(t, path, whole) },
		"while it was appended": func(t *testing.T, path string, whole []byte) {
			state := filepath.Dir(filepath.Dir(filepath.Dir(path)))
			save(t, path, whole[:bytes.IndexByte(whole, '\n')+1])
			runNextProcess(t, state)
			save(t, strings.TrimSuffix(path, recordsSuffix)+begunSuffix, whole)
		},
		"before it was removed": func(t *testing.T, path string, whole []byte) {
			save(t, path, whole)
			runNextProcess(t, filepath.Dir(filepath.Dir(filepath.Dir(path))))
			save(t, strings.TrimSuffix(path, recordsSuffix)+begunSuffix, whole)
		},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			closedWhileLocked(t, state, 3)
			path := pendingFiles(t, state, recordsSuffix)[0]
			whole, err := os.ReadFile(path)
			if err == nil {
				err = os.Remove(path)
			}
			if err != nil {
				t.Fatal(err)
			}
			kill(t, path, whole)
			runNextProcess(t, state)
			if n := lines(t, state); n != 6 {
				t.Errorf("%d lines, want 6", n)
			}
		})
	}
}

func save(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Deleting a chat returns at once, even if another process holds the journal. The content is
// removed as soon as possible, if necessary by the next process.
func TestEraseDoesNotWait(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{})
	ask(t, j.Model(hello(), "p/m"), "mine", "t", userMessage("only here"))
	j.Close()
	release := holdLock(t, state)
	j = New(state, Options{})
	j.patience = time.Millisecond
	ask(t, j.Model(hello(), "p/m"), "mine", "t2", userMessage("only here, later"))
	if err := j.Erase("mine"); err != nil { // with the lock taken: waiting for it would never return
		t.Fatal(err)
	}
	j.Close()
	release()
	runNextProcess(t, state)
	if r := checkJournal(t, state); r.Erased == 0 {
		t.Errorf("%+v", r)
	}
	_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); bytes.Contains(data, []byte("only here")) {
			t.Errorf("%s still has content of the deleted chat", path)
		}
		return err
	})
	if n := lines(t, state); n != 5 {
		t.Errorf("%d lines, want two calls and the erasure", n)
	}
}

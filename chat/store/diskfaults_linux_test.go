package store

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Each write of a session fails in turn, once or permanently. The change that needs it is then made
// completely or not at all, an incomplete change returns an error, and the session continues when the
// disk works again. A copy of the files at that moment, as a killed process would leave them, has the
// same state before or after the change.
func TestEveryFailingWrite(t *testing.T) {
	needs.Long(t)
	states, disk := statesOf(t), newFaultyDisk(t)
	for _, fault := range []failure{
		{errno: unix.ENOSPC}, {errno: unix.ENOSPC, lasting: true}, {errno: unix.EIO}, {errno: unix.EIO, lasting: true}, {errno: unix.ENOSPC, torn: true, lasting: true},
	} {
		t.Run(fmt.Sprintf("%v, lasting %v, torn %v", fault.errno, fault.lasting, fault.torn), func(t *testing.T) {
			n := 1
			for ; playWithFault(t, disk, fault, n, states); n++ {
				if t.Failed() {
					t.Fatalf("call %d", n)
				}
			}
			if t.Logf("%d calls failed", n-1); n < 50 {
				t.Error("the session makes too few calls")
			}
		})
	}
}

// On a full disk, SQLite cannot create its log, and the chats can be read all the same.
func TestChatsAreReadOnAFullDisk(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	s := New(dir)
	if err := session()[0](ctx, s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	disk := newFaultyDisk(t)
	disk.begin(failure{errno: unix.ENOSPC, lasting: true}, 1)
	defer disk.heal()
	s = New(dir)
	defer s.Close()
	list, err := s.Chats(ctx, nil)
	events, eventsErr := s.Events(ctx, "c", 1, 10)
	if err != nil || eventsErr != nil || len(list) != 1 || len(events) != 2 {
		t.Errorf("%v, %v; %v, %v", list, err, events, eventsErr)
	}
	if err := session()[1](ctx, s); err == nil {
		t.Error("something was written")
	}
	if disk.failed == 0 {
		t.Error("no call failed")
	}
}

// playWithFault plays the session while its n-th call to the system fails. It returns false if the
// session has fewer calls. states are the contents before the first step and after each step.
func playWithFault(t *testing.T, disk *faultyDisk, fault failure, n int, states []map[string]any) bool {
	t.Helper()
	top, ctx := memoryDir(t), context.Background()
	defer os.RemoveAll(top)
	dir, killed := filepath.Join(top, "running"), filepath.Join(top, "killed")
	s := New(dir)
	defer s.Close()
	disk.begin(fault, n)
	defer disk.heal()
	seen := false
	for i, step := range session() {
		err := step(ctx, s)
		failing := disk.failed > 0 && !seen
		if !failing {
			if err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
			continue
		}
		seen = true
		disk.heal()
		if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
			t.Fatal(err)
		}
		done := false
		for _, stored := range []string{killed, dir} {
			got := contents(t, stored)
			done = cmp.Equal(got, states[i+1])
			if !done && (err == nil || !cmp.Equal(got, states[i])) {
				t.Errorf("step %d (%v), %s: neither as before nor as after it:\n%s", i, err, filepath.Base(stored), cmp.Diff(states[i+1], got))
			}
		}
		if done {
			continue
		}
		if err := step(ctx, s); err != nil {
			t.Errorf("step %d, when the disk works again: %v", i, err)
		}
	}
	if got := contents(t, dir); !cmp.Equal(got, states[len(states)-1]) {
		t.Errorf("at the end:\n%s", cmp.Diff(states[len(states)-1], got))
	}
	return seen
}

// session returns the changes that a daemon makes to a store, in order.
func session() []func(context.Context, *Store) error {
	meta := func(id string) chat.Meta {
		return chat.Meta{ID: id, Created: atMillis(1), Updated: atMillis(2), Title: id, Model: "a/b", Agent: "code", Roots: []string{"/w"}}
	}
	message := func(seq event.Seq, text string) event.Event {
		return event.Event{Seq: seq, Turn: "t", Time: atMillis(int64(seq)), Body: event.UserMessage{ContentID: fmt.Sprint("m", seq), Text: text}}
	}
	long := string(slices.Repeat([]byte("text "), 4000))
	return []func(context.Context, *Store) error{
		func(ctx context.Context, s *Store) error {
			return s.Append(ctx, meta("c"), []event.Event{message(1, "one"), message(2, long)})
		},
		func(ctx context.Context, s *Store) error {
			return s.Extend(ctx, "c", []event.Event{message(3, "three"), {Seq: 4, Time: atMillis(4), Body: event.Flag{ContentID: "f", Text: "flag", After: 3}}})
		},
		func(ctx context.Context, s *Store) error {
			_, err := s.ChangeMeta(ctx, "c", func(m *chat.Meta) { m.Title = "renamed" })
			return err
		},
		func(ctx context.Context, s *Store) error { return s.Pin(ctx, "c", true) },
		func(ctx context.Context, s *Store) error { return s.Copy(ctx, "c", meta("fork"), 4, 10) },
		func(ctx context.Context, s *Store) error {
			return s.Cut(ctx, meta("fork"), 12, event.Event{Seq: 20, Time: atMillis(20), Body: event.Truncated{}})
		},
		func(ctx context.Context, s *Store) error {
			return s.Adopt(ctx, meta("fork"), "c", 4, event.Event{Seq: 30, Time: atMillis(30), Body: event.Truncated{}})
		},
		func(ctx context.Context, s *Store) error { return s.RemoveFlag(ctx, "c", 4) },
		func(ctx context.Context, s *Store) error {
			_, err := s.Import(ctx, "elsewhere", meta("imported"), []event.Event{message(1, long)})
			return err
		},
		func(ctx context.Context, s *Store) error { return s.Delete(ctx, "c") },
		func(ctx context.Context, s *Store) error { return s.Shrink(ctx) },
		func(ctx context.Context, s *Store) error {
			return s.Extend(ctx, "imported", []event.Event{message(2, "the last")})
		},
	}
}

// memoryDir returns a folder in memory if /dev/shm exists, because syncing thousands of stores to a
// disk takes minutes.
func memoryDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "eca-store-")
	if err != nil {
		return t.TempDir()
	}
	return dir
}

// statesOf returns the contents of a store before the first step and after each, without faults.
func statesOf(t *testing.T) []map[string]any {
	t.Helper()
	dir := t.TempDir()
	s := New(dir)
	defer s.Close()
	states := []map[string]any{{}}
	for _, step := range session() {
		if err := step(context.Background(), s); err != nil {
			t.Fatal(err)
		}
		states = append(states, contents(t, dir))
	}
	return states
}

// contents is the content of a store as another process sees it.
func contents(t *testing.T, dir string) map[string]any {
	t.Helper()
	ctx := context.Background()
	s := New(dir)
	defer s.Close()
	chats, err := s.Chats(ctx, []string{"/w"})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, c := range chats {
		meta, last, _, err := s.Meta(ctx, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		events, err := s.Events(ctx, c.ID, 1, 100)
		if err != nil {
			t.Fatal(err)
		}
		pinned, err := s.Pinned(ctx, c.ID)
		if err != nil {
			t.Fatal(err)
		}
		out[c.ID] = []any{meta, last, events, pinned}
	}
	if imported, err := s.Imported(ctx, "elsewhere"); err != nil || imported {
		out["imported from elsewhere"] = err
	}
	var sound string
	if err := s.db.QueryRowContext(ctx, "PRAGMA integrity_check").Scan(&sound); err != nil || sound != "ok" {
		t.Errorf("%s: %s, %v", dir, sound, err)
	}
	return out
}

// failure describes how calls to the system fail.
type failure struct {
	errno   unix.Errno
	lasting bool // all calls after the first failed one fail too
	torn    bool // a failed write writes the first half of its data
}

// faultyDisk gets the calls that SQLite makes to the system.
type faultyDisk struct {
	failure
	calls, failAt, failed int
}

func (d *faultyDisk) begin(f failure, n int) { *d = faultyDisk{failure: f, failAt: n} }

func (d *faultyDisk) heal() { d.failAt, d.lasting = 0, false }

// fails counts a call, and says whether it fails.
func (d *faultyDisk) fails() bool {
	d.calls++
	if d.failAt == 0 || d.calls < d.failAt || d.calls > d.failAt && !d.lasting {
		return false
	}
	d.failed++
	return true
}

// newFaultyDisk replaces the system calls with which SQLite changes files, until the test ends
// (os_unix.c lets tests do that). It replaces them for the whole process, so no other test may use a
// database at the same time.
func newFaultyDisk(t *testing.T) *faultyDisk {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:") // SQLite has to be initialised
	if err == nil {
		err = db.Ping()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	tls := libc.NewTLS()
	t.Cleanup(tls.Close)
	d := &faultyDisk{}
	vfs := deref[*sqlite3.Tsqlite3_vfs](sqlite3.Xsqlite3_vfs_find(tls, 0))
	get := deref[func(*libc.TLS, uintptr, uintptr) uintptr](vfs.FxGetSystemCall)
	set := deref[func(*libc.TLS, uintptr, uintptr, uintptr) int32](vfs.FxSetSystemCall)
	var kept []any
	t.Cleanup(func() { runtime.KeepAlive(kept) }) // SQLite has only their addresses
	replace := func(name string, with func(original uintptr) (address uintptr, f any)) {
		text, err := libc.CString(name)
		if err != nil {
			t.Fatal(err)
		}
		original := get(tls, 0, text)
		if original == 0 {
			return // SQLite does not use it here
		}
		replacement, f := with(original)
		kept = append(kept, f)
		set(tls, 0, text, replacement)
		t.Cleanup(func() {
			set(tls, 0, text, original)
			libc.Xfree(tls, text)
		})
	}
	refuse := func(tls *libc.TLS) bool {
		if !d.fails() {
			return false
		}
		*deref[*int32](libc.X__errno_location(tls)) = int32(d.errno)
		return true
	}
	replace("write", func(original uintptr) (uintptr, any) {
		call := deref[func(*libc.TLS, int32, uintptr, uint64) int64](original)
		return address(func(tls *libc.TLS, fd int32, data uintptr, n uint64) int64 {
			if refuse(tls) {
				return -1
			}
			return call(tls, fd, data, n)
		})
	})
	for _, name := range []string{"pwrite", "pwrite64"} {
		replace(name, func(original uintptr) (uintptr, any) {
			call := deref[func(*libc.TLS, int32, uintptr, uint64, int64) int64](original)
			return address(func(tls *libc.TLS, fd int32, data uintptr, n uint64, offset int64) int64 {
				if refuse(tls) {
					if d.torn {
						call(tls, fd, data, n/2, offset)
						*deref[*int32](libc.X__errno_location(tls)) = int32(d.errno)
					}
					return -1
				}
				return call(tls, fd, data, n, offset)
			})
		})
	}
	replace("ftruncate", func(original uintptr) (uintptr, any) {
		call := deref[func(*libc.TLS, int32, int64) int32](original)
		return address(func(tls *libc.TLS, fd int32, size int64) int32 {
			if refuse(tls) {
				return -1
			}
			return call(tls, fd, size)
		})
	})
	replace("unlink", func(original uintptr) (uintptr, any) {
		call := deref[func(*libc.TLS, uintptr) int32](original)
		return address(func(tls *libc.TLS, path uintptr) int32 {
			if refuse(tls) {
				return -1
			}
			return call(tls, path)
		})
	})
	return d
}

// deref converts an address, as SQLite's translation to Go stores it, to a Go function or a pointer.
func deref[F any](p uintptr) F { return *(*F)(unsafe.Pointer(&p)) }

// address converts a function to such an address. It also returns the function, which the caller has
// to keep reachable as long as SQLite may call it.
func address[F any](f F) (uintptr, any) { return *(*uintptr)(unsafe.Pointer(&f)), f }

// The error about a directory does not name the file that was tried.
func TestWritableNamesTheDirectory(t *testing.T) {
	if err := Writable("/proc/self"); err == nil || err.Error() != "cannot write to /proc/self: no such file or directory" {
		t.Error(err)
	}
}

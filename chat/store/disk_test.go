package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// Users see SQLite's disk errors in plain words, with the path and a pointer to `eca doctor`.
func TestExplainDiskErrors(t *testing.T) {
	for pragma, want := range map[string]string{
		"PRAGMA query_only = 1":     "the file system or file is read-only",
		"PRAGMA max_page_count = 1": "no space left on device",
	} {
		s := New(t.TempDir())
		defer s.Close()
		db, err := s.open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(t.Context(), pragma); err != nil {
			t.Fatal(err)
		}
		at := time.UnixMilli(1).UTC()
		err = s.Append(t.Context(), chat.Meta{ID: "c", Created: at, Updated: at}, []event.Event{{Seq: 1, Turn: "t", Time: at, Body: event.UserMessage{Text: strings.Repeat("x", 1<<20)}}})
		if want := "append to chat c: " + s.Path() + ": " + want + SeeDoctor; err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", pragma, err, want)
		}
	}
}

// coded is an error with a code, like SQLite's.
type coded int

func (c coded) Error() string { return fmt.Sprintf("disk I/O error (%d)", int(c)) }

func (c coded) Code() int { return int(c) }

// If SQLite's error code is ambiguous, the file system decides.
func TestExplainProbesDisk(t *testing.T) {
	const ioErrorOfSharedMemory, cannotOpen, constraint = 4874, 14, 19
	path := filepath.Join("d", File)
	for _, c := range []struct {
		err, disk error
		want      string
	}{
		{coded(ioErrorOfSharedMemory), syscall.ENOSPC, path + ": no space left on device" + SeeDoctor},
		{coded(ioErrorOfSharedMemory), syscall.EROFS, path + ": the file system is read-only" + SeeDoctor},
		{coded(ioErrorOfSharedMemory), nil, "disk I/O error (4874)"},
		{coded(cannotOpen), syscall.EROFS, path + ": the file system is read-only" + SeeDoctor},
		{coded(constraint), syscall.ENOSPC, "disk I/O error (19)"},
		{&fs.PathError{Op: "mkdir", Path: "p", Err: syscall.EROFS}, nil, "p: the file system is read-only" + SeeDoctor},
		{errors.New("x"), syscall.ENOSPC, "x"},
	} {
		got := explain(fmt.Errorf("%w", c.err), path, func(file string) error {
			if file != path {
				t.Errorf("explain examined %s, want %s", file, path)
			}
			return c.disk
		})
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("%v, want %s", got, c.want)
		}
	}
}

// The remedy depends on the cause: freeing space does not help on a read-only file system.
func TestRemedyOfADirectory(t *testing.T) {
	for err, want := range map[error]string{
		syscall.EROFS:  "set XDG_STATE_HOME to a writable folder",
		syscall.EACCES: "set XDG_STATE_HOME to a writable folder",
		syscall.ENOSPC: "free some space or set XDG_STATE_HOME to a folder on another disk",
	} {
		if got := Remedy(err, "XDG_STATE_HOME"); got != want {
			t.Errorf("%v: %s", err, got)
		}
	}
}

// A first start that fails, for example on a full disk, leaves no empty file. Later starts would
// take it for a store that lost its contents.
func TestFirstStartFails(t *testing.T) {
	dir := t.TempDir()
	inTheWay := filepath.Join(dir, File+"-journal")
	if err := os.MkdirAll(filepath.Join(inTheWay, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := New(dir)
	if _, err := s.open(); err == nil {
		t.Fatal("open succeeded, although a folder is where SQLite writes its journal")
	}
	if err := os.RemoveAll(inTheWay); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

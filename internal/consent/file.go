// Package consent stores what the user agreed to: the trusted files of workspace folders
// (trust.json), and the launch commands and tool descriptions of MCP servers (mcp-agreed.json).
// Other packages can store similar records in a File.
//
// A record is one JSON file that only the user can access, and that several processes read and
// change. Guarantees: changes are serialized among all processes, and each sees all earlier ones;
// readers see the old content or the new one; a file that cannot be read, or has another version,
// is an error and is never overwritten, so that only recorded consent counts. Only hashes of the
// values of environment variables are stored. The lock is a file beside the record and is never
// removed. Other packages decide what needs consent, and what a difference means.
package consent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/internal/filelock"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

const (
	// version is the only supported version.
	version = 1
	// maxSize is the maximum size of a file in bytes. eca writes no larger ones.
	maxSize = 16 << 20
	// lockTimeout is how long a change waits for the changes of other processes. Each takes about a
	// millisecond, and a hundred on a busy disk.
	lockTimeout = 30 * time.Second
	// lockRetry is the pause between attempts to take the lock.
	lockRetry = 5 * time.Millisecond
)

// File is a record. It need not exist; its folder is created with the first change.
type File struct {
	Path string
	What string // what the file records, for errors
	Lost string // what happens if the user moves the file away, for errors
}

// DamagedError is the error for a record that cannot be used.
type DamagedError struct {
	File   File
	Line   int // of the invalid JSON, from 1; 0 if unknown
	Column int // in bytes from 1
	cause  error
	newer  bool // a newer version of eca wrote the file
}

func (e *DamagedError) Error() string {
	at := e.File.Path
	if e.Line > 0 {
		at += fmt.Sprintf(":%d:%d", e.Line, e.Column)
	}
	return at + ": " + e.Reason()
}

func (e *DamagedError) Unwrap() error { return e.cause }

// Reason describes what is wrong and what to do, without the path.
func (e *DamagedError) Reason() string {
	if e.newer {
		return fmt.Sprintf("the record of %s cannot be used: %v; use the newer eca, or set XDG_STATE_HOME to another folder", e.File.What, e.cause)
	}
	return fmt.Sprintf("the record of %s cannot be read: %v; repair the file, or move it away: %s", e.File.What, e.cause, e.File.Lost)
}

// Record is the content of a File: a pointer to a struct that embeds Format.
type Record interface{ format() *Format }

// Format is the version of a record.
type Format struct {
	Version int `json:"version"`
}

func (f *Format) format() *Format { return f }

// Read decodes the current record; without a file, it leaves into unchanged. After an error, which
// is a *DamagedError, into must not be used.
func (f File) Read(into Record) error {
	data, err := safeio.Read(f.Path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &DamagedError{File: f, cause: safeio.Cause(err)}
	}
	var format Format
	if err := json.Unmarshal(data, &format); err != nil {
		return f.damagedError(data, err)
	}
	if format.Version != version {
		return &DamagedError{File: f, cause: fmt.Errorf("it has version %d, not %d", format.Version, version), newer: format.Version > version}
	}
	if err := json.Unmarshal(data, into); err != nil {
		return f.damagedError(data, err)
	}
	return nil
}

// damagedError returns the error for invalid JSON, with its position in the file.
func (f File) damagedError(data []byte, err error) error {
	out := &DamagedError{File: f, cause: err}
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		before := data[:max(0, min(int(syntax.Offset)-1, len(data)))]
		out.Line, out.Column = 1+bytes.Count(before, []byte("\n")), len(before)-bytes.LastIndexByte(before, '\n')
	}
	return out
}

// Change reads the record, calls change to modify it, and writes it, with a lock that excludes
// other processes. It fails if it does not get the lock within half a minute.
func (f File) Change(record Record, change func()) error {
	if err := f.change(record, change); err != nil {
		if errors.As(err, new(*DamagedError)) {
			return err
		}
		return fmt.Errorf("the record of %s was not changed: %w", f.What, err)
	}
	return nil
}

func (f File) change(record Record, change func()) error {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return safeio.Unwritable(f.Path, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	release, err := filelock.Acquire(ctx, f.Path+".lock", lockRetry)
	if err != nil {
		return err
	}
	defer release()
	if err := f.Read(record); err != nil {
		return err
	}
	change()
	record.format().Version = version
	data, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return safeio.Unwritable(f.Path, safeio.Write(f.Path, append(data, '\n'), 0o600))
}

// setEntry sets an entry of a map, which may be nil.
func setEntry[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

// Package lockedfile keeps small records of one user in JSON files that several processes
// read and change.
//
// It guarantees: a change sees what all others wrote and is made alone among all
// processes; who reads sees the old content or the new one; a file that can not be read,
// or is of another version, is an error and never overwritten; only the user can read it;
// nothing waits for what is no regular file. It keeps nothing in memory, and knows nothing
// of what is recorded. Its lock is a file beside it, which stays.
package lockedfile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/internal/atomicfile"
	"github.com/seed-dec29ce4/eca/internal/regular"
)

const (
	// maxSize bounds a file, in bytes: what is larger was not written by us.
	maxSize = 16 << 20
	// patience is how long a change waits for those of other processes, which take a
	// millisecond each, on a busy disk some hundred.
	patience = 30 * time.Second
	// retry is how long it waits before it tries the lock again.
	retry = 5 * time.Millisecond
)

// File is a record: one JSON object with its format's number as "version". It need not
// exist.
type File struct {
	path    string
	version int
}

// New returns the record in the file at path, whose folder is created with the first
// change. version is the only one that is understood; who changes the record writes it.
func New(path string, version int) File { return File{path, version} }

// Path returns where the file is, or would be.
func (f File) Path() string { return f.path }

// Read decodes the record as it is now into a pointer, which keeps what it has if there is
// no file. After an error, which names the file, it is not to be used.
func (f File) Read(into any) error {
	data, err := regular.Read(f.path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var format struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &format); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	if format.Version != f.version {
		return fmt.Errorf("%s has version %d, not %d", f.path, format.Version, f.version)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return nil
}

// Change reads the record into a pointer, calls change, which changes what it points to,
// and writes that, alone among all processes. It fails if others do not let it for half a
// minute.
func (f File) Change(content any, change func()) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	lock := flock.New(f.path+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, retry); !ok {
		return fmt.Errorf("%s is locked by another process: %w", lock.Path(), err)
	}
	defer lock.Close()
	if err := f.Read(content); err != nil {
		return err
	}
	change()
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	return atomicfile.Write(f.path, append(data, '\n'), 0o600)
}

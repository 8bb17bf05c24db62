package undo

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/gofrs/flock"
)

// record is the history of the files of one workspace folder, as a sequence of numbered states. Its
// directory has
//
//	lock             a lock file, held while a process uses the record
//	base             all entries in one state
//	changes/ID-N     step N: the changes from state N-1 to state N
//	points/...       commands, with the states before and after them (point)
//	objects/         contents of files
//
// A snapshot scans the folder and adds a step if something has changed. The file of a step is written
// last, so that the record is valid if the process dies. If the base cannot be read, the record starts
// over with a new ID and state 0.
type record struct {
	dir        string
	root       string // symlinks resolved
	ownFolders []string

	mu       sync.Mutex // held together with the lock file
	id       string
	number   int               // of the latest state
	files    map[string]*entry // the latest state; nil: not read yet
	baseInfo fs.FileInfo       // the base file that the fields above were read from
	objects  objects
}

// privateDirMode is the mode of folders that only their owner may use.
const privateDirMode = 0o700

// quota is the maximum size, in bytes, of the contents of one workspace folder, with older versions.
const quota = 4 << 30

// base is the content of the base file.
type base struct {
	Root   fileName
	ID     string
	Number int
	Files  []change // from an empty folder
}

// change is the change of a path; nil means that nothing exists there. Its fields are stored.
type change struct {
	Path     fileName
	Old, New *entry
}

// fileName is a path, or a part of one. File names need not be valid UTF-8, JSON text must be.
type fileName string

// MarshalText encodes a name that is not UTF-8 in hexadecimal, after a null character, which no name has.
func (n fileName) MarshalText() ([]byte, error) {
	if utf8.ValidString(string(n)) {
		return []byte(n), nil
	}
	return hex.AppendEncode([]byte{0}, []byte(n)), nil
}

// UnmarshalText is the inverse of MarshalText.
func (n *fileName) UnmarshalText(text []byte) (err error) {
	if encoded, ok := bytes.CutPrefix(text, []byte{0}); ok {
		text, err = hex.DecodeString(string(encoded))
	}
	*n = fileName(text)
	return err
}

// step is the content of a file in changes.
type step struct {
	Changes []change
}

// lockTimeout is how long to wait for the lock.
const lockTimeout = 30 * time.Second

// lock locks the record.
func (r *record) lock(ctx context.Context) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(r.dir, "changes"), privateDirMode); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lockTimeout)
	defer cancel()
	r.mu.Lock()
	file := flock.New(filepath.Join(r.dir, "lock"), flock.SetPermissions(0o600))
	if ok, err := file.TryLockContext(ctx, time.Millisecond); !ok && err != nil && ctx.Err() != nil {
		_ = file.Close()
		r.mu.Unlock()
		return nil, fmt.Errorf("another process is recording the files: %w", err)
	}
	return func() {
		_ = file.Close()
		r.mu.Unlock()
	}, nil
}

// snapshot records the current state of the folder. It returns descriptions of what it does not
// cover. The caller holds the lock.
func (r *record) snapshot(ctx context.Context) (notCovered []string, err error) {
	if err := r.load(); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.root)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	s := &scan{ctx: ctx, root: root, path: r.root, ownFolders: r.ownFolders, files: make(map[string]*entry, len(r.files))}
	if err := s.list(r.files); err != nil {
		return nil, err
	}
	if err := s.read(r.files, r.objects.put); err != nil {
		return nil, err
	}
	var changes []change
	for name, now := range s.files {
		if old := r.files[name]; !old.same(now) {
			changes = append(changes, change{fileName(name), old, now})
		}
	}
	for name, old := range r.files {
		if s.files[name] == nil {
			changes = append(changes, change{fileName(name), old, nil})
		}
	}
	if err := r.store(s.files, changes); err != nil {
		return nil, err
	}
	return s.notCovered(), nil
}

// store adds a step if something has changed, and writes a new base from time to time.
func (r *record) store(files map[string]*entry, changes []change) error {
	first := r.id == ""
	if len(changes) > 0 && !first {
		if err := writeJSON(r.stepPath(r.id, r.number+1), step{changes}); err != nil {
			return err
		}
		r.number++
	}
	r.files = files
	// Reading many small steps takes longer than writing a new base.
	const stepsPerBase = 50
	if !first && len(changes) <= len(files)/8 && r.number%stepsPerBase != 0 || !first && len(changes) == 0 {
		return nil
	}
	if first {
		r.id, r.number = rand.Text(), 0
	}
	return r.storeBase()
}

func (r *record) storeBase() error {
	b := base{fileName(r.root), r.id, r.number, make([]change, 0, len(r.files))}
	for name, now := range r.files {
		b.Files = append(b.Files, change{fileName(name), nil, now})
	}
	err := writeJSON(r.basePath(), b)
	if err == nil {
		r.baseInfo, err = os.Stat(r.basePath())
	}
	if err != nil {
		r.invalidate()
	}
	return err
}

func (r *record) basePath() string { return filepath.Join(r.dir, "base") }

// invalidate makes the next use read the record from the disk.
func (r *record) invalidate() { r.id, r.number, r.files, r.baseInfo = "", 0, nil, nil }

// load updates the record from the disk.
func (r *record) load() error {
	if info, err := os.Stat(r.basePath()); r.id != "" && (err != nil || !os.SameFile(info, r.baseInfo) || !info.ModTime().Equal(r.baseInfo.ModTime())) {
		r.invalidate() // another process has written a new base
	}
	if r.id == "" {
		if err := r.objects.sweep(func(name string) bool { return !strings.HasPrefix(name, "new-") }); err != nil {
			return err
		}
		var b base
		info, err := os.Stat(r.basePath())
		if err != nil || readJSON(r.basePath(), &b) != nil || string(b.Root) != r.root {
			return nil //nolint:nilerr // the next snapshot begins a new record
		}
		r.id, r.number, r.files, r.baseInfo = b.ID, b.Number, make(map[string]*entry, len(b.Files)), info
		r.apply(b.Files)
	}
	for {
		var s step
		switch err := readJSON(r.stepPath(r.id, r.number+1), &s); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil: // truncated by a crash of the machine
			r.invalidate()
			return os.Remove(r.basePath())
		}
		r.number++
		r.apply(s.Changes)
	}
}

// apply applies changes to the latest state.
func (r *record) apply(changes []change) {
	for _, c := range changes {
		if c.New == nil {
			delete(r.files, string(c.Path))
		} else {
			r.files[string(c.Path)] = c.New
		}
	}
}

func (r *record) stepPath(id string, number int) string {
	return filepath.Join(r.dir, "changes", fmt.Sprintf("%s-%d", id, number))
}

// changesBetween returns the changes between two states, by path.
func (r *record) changesBetween(id string, from, to int) (map[string]change, error) {
	out := map[string]change{}
	for n := from + 1; n <= to; n++ {
		var s step
		if err := readJSON(r.stepPath(id, n), &s); err != nil {
			return nil, err
		}
		for _, c := range s.Changes {
			if first, ok := out[string(c.Path)]; ok {
				c.Old = first.Old
			}
			out[string(c.Path)] = c
		}
	}
	maps.DeleteFunc(out, func(_ string, c change) bool { return c.Old.same(c.New) })
	return out, nil
}

// writeJSON stores a value in a file atomically.
func writeJSON(path string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return writeFile(path, data)
}

func writeFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func readJSON(path string, value any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, value)
}

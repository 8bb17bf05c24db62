package tools

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of the saved outputs.
const (
	maxTotalBytes   = 512 << 20           // bytes of all files
	maxAge          = 30 * 24 * time.Hour // age of a file at which it is removed
	sweepInterval   = time.Hour           // time between sweeps, unless sweepAfterBytes is reached
	sweepAfterBytes = maxTotalBytes / 8   // bytes after which a sweep is due
)

// Outputs saves complete tool outputs as files in one folder, which only the user can read. Several
// processes can share the folder. From time to time, Outputs removes old files, and the oldest ones if
// all files together exceed maxTotalBytes. It is safe for concurrent use.
type Outputs struct {
	dir string
	now func() time.Time

	mu           sync.Mutex // guards the fields below
	lastSweep    time.Time  // time of the last sweep
	writtenSince int        // bytes written since then
}

// NewOutputs returns Outputs that saves in a folder. The first save creates the folder.
func NewOutputs(dir string, now func() time.Time) *Outputs { return &Outputs{dir: dir, now: now} }

// Dir returns the folder, which need not exist.
func (o *Outputs) Dir() string { return o.dir }

// save saves output number i of a call and returns the path of its file, with slashes.
func (o *Outputs) save(callID string, i int, text string) (string, error) {
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return "", err
	}
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, callID)
	f, err := os.CreateTemp(o.dir, fmt.Sprintf("%.80s-%d-*"+outputSuffix, safe, i))
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(f.Name()) // an incomplete file could be mistaken for the whole output
		return "", err
	}
	o.sweep(len(text))
	return filepath.ToSlash(f.Name()), nil
}

// outputSuffix is the suffix of the files.
const outputSuffix = ".txt"

// sweep removes old files if a sweep is due. Files that cannot be removed are ignored: another
// process may have removed them.
func (o *Outputs) sweep(written int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.writtenSince += written
	now := o.now()
	if now.Sub(o.lastSweep) < sweepInterval && o.writtenSince < sweepAfterBytes {
		return
	}
	o.lastSweep, o.writtenSince = now, 0
	o.remove(maxAge, 1)
}

// Clean removes the outputs that are older than age, and the oldest ones if all together exceed maxTotalBytes.
func (o *Outputs) Clean(age time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remove(age, 0)
}

// remove removes files that are older than age, and the oldest while all files exceed maxTotalBytes. It never
// removes the given number of newest files. The caller holds the lock.
func (o *Outputs) remove(age time.Duration, keepNewest int) {
	now := o.now()
	type savedFile struct {
		path string
		size int64
		at   time.Time
	}
	var files []savedFile
	entries, _ := os.ReadDir(o.dir) // errors are ignored, as when removing files
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), outputSuffix) {
			files = append(files, savedFile{filepath.Join(o.dir, e.Name()), info.Size(), info.ModTime()})
		}
	}
	slices.SortStableFunc(files, func(a, b savedFile) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.path, b.path)) })
	total := int64(0)
	for i, f := range files { // newest first
		if total += f.size; i >= keepNewest && (total > maxTotalBytes || now.Sub(f.at) > age) {
			_ = os.Remove(f.path)
		}
	}
}

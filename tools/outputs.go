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

// Bounds of what Outputs keep.
const (
	maxKept      = 512 << 20           // bytes of all files
	keptFor      = 30 * 24 * time.Hour // since a file was written
	betweenSweep = time.Hour           // at least, unless much is written
	muchWritten  = maxKept / 8         // bytes
)

// Outputs are whole outputs of tools in files of one folder, for the user alone, which
// several processes may share. Old files, and the oldest of too many, are removed
// now and then. It is safe for concurrent use.
type Outputs struct {
	dir string
	now func() time.Time

	mu      sync.Mutex // guards what follows
	swept   time.Time  // when the folder was last looked through
	written int        // bytes since then
}

// NewOutputs keeps outputs in a folder, which is created with the first one.
func NewOutputs(dir string, now func() time.Time) *Outputs { return &Outputs{dir: dir, now: now} }

// Dir returns the folder, which need not exist.
func (o *Outputs) Dir() string { return o.dir }

// save keeps output number i of a call and returns the path of its file, with slashes.
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
	f, err := os.CreateTemp(o.dir, fmt.Sprintf("%.80s-%d-*"+keptSuffix, safe, i))
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(text)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		_ = os.Remove(f.Name()) // a part of it would pass for the whole
		return "", err
	}
	o.sweep(len(text))
	return filepath.ToSlash(f.Name()), nil
}

// keptSuffix ends the names of the files.
const keptSuffix = ".txt"

// sweep removes what is not kept any longer, if it is time to look. A file that cannot be
// removed stays: another process may have been faster.
func (o *Outputs) sweep(written int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written += written
	now := o.now()
	if now.Sub(o.swept) < betweenSweep && o.written < muchWritten {
		return
	}
	o.swept, o.written = now, 0
	o.remove(keptFor, 1)
}

// Clean removes the outputs that are older.
func (o *Outputs) Clean(age time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.remove(age, 0)
}

// remove removes what is older, and the oldest of what is too much; some of the newest stay in
// any case. The caller holds the lock.
func (o *Outputs) remove(age time.Duration, newest int) {
	now := o.now()
	type kept struct {
		path string
		size int64
		at   time.Time
	}
	var files []kept
	entries, _ := os.ReadDir(o.dir) // what cannot be listed stays, as what cannot be removed
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), keptSuffix) {
			files = append(files, kept{filepath.Join(o.dir, e.Name()), info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b kept) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.path, b.path)) })
	total := int64(0)
	for i, f := range files { // the newest first, which stays
		if total += f.size; i >= newest && (total > maxKept || now.Sub(f.at) > age) {
			_ = os.Remove(f.path)
		}
	}
}

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
// several processes may share. What is old, and the oldest of what is too much, is removed
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

// sweep removes what is not kept any longer, if it is time to look. What can not be removed
// stays: another process may have been faster.
func (o *Outputs) sweep(written int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.written += written
	now := o.now()
	if now.Sub(o.swept) < betweenSweep && o.written < muchWritten {
		return
	}
	o.swept, o.written = now, 0
	type kept struct {
		path string
		size int64
		at   time.Time
	}
	var files []kept
	entries, _ := os.ReadDir(o.dir) // what can not be listed stays, as what can not be removed
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && strings.HasSuffix(e.Name(), keptSuffix) {
			files = append(files, kept{filepath.Join(o.dir, e.Name()), info.Size(), info.ModTime()})
		}
	}
	slices.SortFunc(files, func(a, b kept) int { return cmp.Or(b.at.Compare(a.at), cmp.Compare(a.path, b.path)) })
	total := int64(0)
	for i, f := range files { // the newest first, which stays
		if total += f.size; i > 0 && (total > maxKept || now.Sub(f.at) > keptFor) {
			_ = os.Remove(f.path)
		}
	}
}

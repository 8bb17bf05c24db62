package config

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/internal/regular"
)

// globalFile returns the path of the one file that is not a workspace's; empty if there
// is none.
func (in Inputs) globalFile() string {
	switch {
	case in.ConfigFile != "":
		return in.ConfigFile
	case in.ConfigHome != "":
		return filepath.Join(in.ConfigHome, "config.json")
	}
	return ""
}

// Owner returns the file in which the value at a path of keys is to be changed: the one
// it comes from, else the global one (or --config-file). It is empty if there is no such
// file.
func (l *Loaded) Owner(path ...string) string {
	if o, ok := l.Origin(path...); ok {
		if _, isFile := l.texts[o.Source]; isFile {
			return o.Source
		}
	}
	return l.global
}

// maxFile bounds a file of the configuration, in bytes.
const maxFile = 16 << 20

// file adds a file's layer; root is set for workspace files. It reports whether the
// file exists. A file that is broken, as files are while somebody edits them, counts as
// it was before.
func (b *builder) file(path, root string) bool {
	b.looked(path)
	data, err := regular.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var l *layer
	var broken *Problem
	if err != nil {
		broken = &Problem{Origin: Origin{Source: path}, Cause: err.Error(), Broken: true}
	} else {
		l, broken = parse(path, data)
	}
	if broken != nil {
		if data = b.lastText(path); data != nil {
			l, _ = parse(path, data)
			broken.Broken = false
			broken.Cause += " (what the file said before stays in effect)"
		}
		b.problems = append(b.problems, *broken)
	}
	if l != nil {
		b.texts[path] = data
		b.layer(l, root)
	}
	return true
}

// lastText returns what a file said when it was in effect last; nil if it was not.
func (b *builder) lastText(path string) []byte {
	if b.in.Previous == nil {
		return nil
	}
	return b.in.Previous.texts[path]
}

// looked records a file that the configuration depends on.
func (b *builder) looked(path string) {
	if !slices.Contains(b.files, path) {
		b.files = append(b.files, path)
	}
}

package config

import (
	"bytes"
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
// file exists. A file that is broken, empty or missing for a moment, as files are while they are
// edited and saved, counts as it was before.
func (b *builder) file(path, root string) bool {
	b.looked(path)
	var last []byte // what the file said when it was in effect last; nil if it was not
	if b.in.Previous != nil {
		last = b.in.Previous.texts[path]
	}
	data, err := regular.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		if last == nil || b.in.gone(path) {
			return false
		}
		data, err = last, nil
	}
	if l, data := b.whole(path, data, err, last); l != nil {
		b.texts[path] = data
		b.layer(l, root)
	}
	return true
}

// whole returns the layer of a file that was read, and its text. If it cannot be used, that is a
// problem and the last text counts; the layer is nil if there is none.
func (b *builder) whole(path string, data []byte, err error, last []byte) (*layer, []byte) {
	var l *layer
	var broken *Problem
	switch {
	case err != nil:
		broken = &Problem{Origin: Origin{Source: path}, Cause: err.Error(), Broken: true}
	case blank(data) && !blank(last):
		broken = &Problem{Origin: Origin{Source: path}, Cause: "the file is empty", Broken: true}
	default:
		l, broken = parse(path, data)
	}
	if broken == nil {
		return l, data
	}
	if last != nil {
		l, _ = parse(path, last)
		broken.Broken = false
		broken.Cause += " (what the file said before stays in effect)"
	}
	b.problems = append(b.problems, *broken)
	return l, last
}

// gone says whether a file that was there before stays away.
func (in Inputs) gone(path string) bool { return in.Gone == nil || in.Gone(path) }

// blank says whether a file says nothing, as when it is about to be written.
func blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))) == 0
}

// looked records a file that the configuration depends on.
func (b *builder) looked(path string) {
	if !slices.Contains(b.files, path) {
		b.files = append(b.files, path)
	}
}

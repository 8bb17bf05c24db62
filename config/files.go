package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// globalFile returns the path of the file that does not belong to a workspace; empty without one.
func (in Inputs) globalFile() string {
	switch {
	case in.ConfigFile != "":
		return in.ConfigFile
	case in.ConfigHome != "":
		return filepath.Join(in.ConfigHome, "config.json")
	}
	return ""
}

// Owner returns the file to edit when the value at a path of keys is to be changed: the file that
// sets the value, otherwise the global file (or --config-file). It is empty if there is no such file.
func (l *Loaded) Owner(path ...string) string {
	if o, ok := l.Origin(path...); ok {
		if _, isFile := l.texts[o.Source]; isFile {
			return o.Source
		}
	}
	return l.global
}

// maxFile limits the size of a configuration file, in bytes.
const maxFile = 16 << 20

// addFile adds a file's layer; root is set for workspace files. It reports whether the file exists.
// While an editor saves a file, it may be broken, empty or missing for a moment. In that case, the
// last valid content of the file stays in effect.
func (b *builder) addFile(path, root string) bool {
	b.recordFile(path)
	var last []byte // the content when the file was last in effect; nil if it was not
	if b.in.Previous != nil {
		last = b.in.Previous.texts[path]
	}
	data, err := safeio.Read(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		link, target := danglingLink(path)
		switch {
		case last != nil && !b.in.removed(path):
			data, err = last, nil
		case link == "":
			return false
		default:
			err, last = fmt.Errorf("%s links to %s, which does not exist; create that, or remove the link", link, target), nil
		}
	}
	if l, data := b.layerOrLast(path, data, err, last); l != nil {
		b.texts[path] = data
		b.addLayer(l, root)
	}
	return true
}

// layerOrLast parses a file and returns its layer and text; err is the error of reading the file. If
// the file cannot be used, layerOrLast reports a problem and returns the layer of the last valid text.
// If there is no such text, the layer is nil.
func (b *builder) layerOrLast(path string, data []byte, err error, last []byte) (*layer, []byte) {
	var l *layer
	var broken *Problem
	if err != nil {
		broken = &Problem{Origin: Origin{Source: path}, Cause: safeio.Cause(err).Error(), Broken: true}
	} else {
		l, broken = parse(path, data)
	}
	if l != nil && l.emptyReason != "" {
		broken = &Problem{Origin: Origin{Source: path}, Cause: l.emptyReason + "; write a configuration into it, such as {}, or remove it", Broken: true}
		l = nil
	}
	if broken == nil {
		return l, data
	}
	if last != nil {
		l, _ = parse(path, last)
		broken.Broken = false
		broken.Cause += " (what the file said before stays in effect)"
	}
	b.Problems = append(b.Problems, *broken)
	return l, last
}

// danglingLink returns the symbolic link that makes a file unreachable, and the link's target. Both
// are empty without such a link.
func danglingLink(path string) (link, target string) {
	for ; ; path = filepath.Dir(path) {
		info, err := os.Lstat(path)
		switch {
		case err != nil && path != filepath.Dir(path):
			continue
		case err != nil || info.Mode()&fs.ModeSymlink == 0:
			return "", ""
		}
		if _, err := os.Stat(path); err == nil {
			return "", ""
		}
		target, _ := os.Readlink(path)
		return path, target
	}
}

// removed reports whether a missing file that existed before counts as removed.
func (in Inputs) removed(path string) bool { return in.Removed == nil || in.Removed(path) }

// blank reports whether a file has no content, as while an editor is saving it.
func blank(data []byte) bool {
	return len(bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")))) == 0
}

// recordFile adds a file to Files.
func (b *builder) recordFile(path string) {
	if !slices.Contains(b.Files, path) {
		b.Files = append(b.Files, path)
	}
}

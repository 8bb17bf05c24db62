package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Limits of a file. Chats contain images as text, so they can be large.
const (
	maxFile  = 256 << 20
	maxDepth = 200
)

// Version is the version of the reference's chat files that this package supports.
const Version = 7

// legacyVersion is the version of the single file in which older versions kept all chats.
const legacyVersion = 6

const (
	suffix     = ".transit.json"
	indexFile  = "index" + suffix
	legacyFile = "db" + suffix
)

// ErrNotFound is returned if a cache, or a chat in it, does not exist.
var ErrNotFound = errors.New("not found")

// document is the content of one file: a chat, the index, or all chats.
type document struct {
	version string // as written; may be empty
	legacy  bool
	chats   []storedChat
}

// storedChat is a chat in the reference's format. In the index it has no messages.
type storedChat struct {
	id     string
	fields transitMap
}

func (p storedChat) messages() ([]Record, error) {
	switch list := p.fields.Get("messages").(type) {
	case nil:
		return nil, nil
	case []any:
		var out []Record
		for i, m := range list {
			fields, ok := m.(transitMap)
			if !ok {
				return nil, fmt.Errorf("message %d is not a map", i+1)
			}
			out = append(out, Record{fields})
		}
		return out, nil
	}
	return nil, errors.New("the messages are not a list")
}

// read reads one file.
func read(path string) (document, error) {
	f, err := openRegular(path)
	if err != nil {
		return document{}, err
	}
	defer f.Close()
	return parse(f, path)
}

// parse reads the content of the file at path.
func parse(r io.Reader, path string) (document, error) {
	v, err := decodeTransit(r, maxFile, maxDepth)
	if err != nil {
		return document{}, fmt.Errorf("%s: %w", path, err)
	}
	top, _ := v.(transitMap)
	doc := document{version: text(top.Get("version")), legacy: top.Has("chats") && filepath.Base(path) != indexFile}
	one, isOne := top.Get("chat").(transitMap)
	many, areMany := top.Get("chats").(transitMap)
	switch {
	case isOne:
		doc.chats = []storedChat{{id: text(one.Get("id")), fields: one}}
	case areMany:
		for _, e := range many {
			fields, ok := e.Value.(transitMap)
			if !ok {
				return document{}, fmt.Errorf("%s: chat %q is not a map", path, e.Key)
			}
			doc.chats = append(doc.chats, storedChat{id: e.Key, fields: fields})
		}
	default:
		return document{}, fmt.Errorf("%s: no chats in it", path)
	}
	return doc, nil
}

// openRegular opens a regular file.
func openRegular(path string) (*os.File, error) {
	f, err := safeio.Open("", path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", path, ErrNotFound)
	}
	return f, err
}

// source is a file that may contain chats to import.
type source struct {
	path     string
	size     int64
	modified time.Time
}

// state identifies the file in its current state.
func (s source) state() string {
	return fmt.Sprintf("%s|%d|%d", s.path, s.size, s.modified.UnixNano())
}

// sources returns the chat files of a folder, or the single file of older versions.
func sources(folder string) ([]source, error) {
	dir := filepath.Join(folder, "chats")
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		dir = folder
		entries, err = os.ReadDir(dir)
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.Name() != legacyFile })
	}
	if err != nil {
		return nil, err
	}
	var out []source
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), suffix) || e.Name() == indexFile {
			continue
		}
		path := filepath.Join(dir, e.Name())
		src := source{path: path}
		if info, err := os.Stat(path); err == nil { // if not, reading the file returns the error
			src.size, src.modified = info.Size(), info.ModTime()
		}
		out = append(out, src)
	}
	return out, nil
}

package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Cache is the reference's cache of one workspace, for reading.
type Cache struct {
	dir  string // folder with the index and a file for each chat; or empty
	file string // single file with one chat or all chats; empty if dir is set
}

// OpenCache opens the cache at a path: the folder of a workspace, its folder `chats` or
// the index in it, or a file with one chat or, from older versions, all chats. It returns
// ErrNotFound if the path has no chats.
func OpenCache(path string) (Cache, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return Cache{}, fmt.Errorf("%s: %w", path, ErrNotFound)
	case err != nil:
		return Cache{}, err
	case !info.IsDir() && filepath.Base(path) == indexFile:
		return Cache{dir: filepath.Dir(path)}, nil
	case !info.IsDir():
		return Cache{file: path}, nil
	}
	for _, dir := range []string{filepath.Join(path, "chats"), path} {
		if _, err := os.Stat(filepath.Join(dir, indexFile)); err == nil {
			return Cache{dir: dir}, nil
		}
	}
	file := filepath.Join(path, legacyFile)
	if _, err := os.Stat(file); err != nil {
		return Cache{}, fmt.Errorf("%s: no chats in it: %w", path, ErrNotFound)
	}
	return Cache{file: file}, nil
}

// Summaries returns all chats, the most recently updated first. warning is empty unless
// this package does not know the version of the files.
func (c Cache) Summaries() (list []Record, warning string, err error) {
	path := c.file
	if path == "" {
		path = filepath.Join(c.dir, indexFile)
	}
	doc, err := read(path)
	if err != nil {
		return nil, "", err
	}
	for _, p := range doc.chats {
		fields := transitMap{field("id", p.id)}
		for _, key := range []string{"title", "status", "model", "created-at", "updated-at", "user-prompt-count"} {
			if p.fields.Has(key) {
				fields = append(fields, field(key, p.fields.Get(key)))
			}
		}
		list = append(list, Record{fields})
	}
	slices.SortStableFunc(list, func(a, b Record) int {
		aAt, _ := a.Updated()
		bAt, _ := b.Updated()
		return bAt.Compare(aAt)
	})
	return list, doc.warning(), nil
}

// Messages returns the messages of a chat. It returns ErrNotFound if the chat does not
// exist. See Summaries for warning.
func (c Cache) Messages(id string) (list []Record, warning string, err error) {
	path := c.file
	if path == "" {
		path = filepath.Join(c.dir, chatFile(id))
	}
	doc, err := read(path)
	if err != nil {
		return nil, "", err
	}
	for _, p := range doc.chats {
		if p.id == id {
			list, err = p.messages()
			return list, doc.warning(), err
		}
	}
	return nil, "", fmt.Errorf("%s: %w", path, ErrNotFound)
}

func (d document) warning() string {
	want := Version
	if d.legacy {
		want = legacyVersion
	}
	if d.version == fmt.Sprint(want) {
		return ""
	}
	return fmt.Sprintf("the chats have format version %q, not %d; the output may be incomplete", d.version, want)
}

// chatFile returns the name of a chat's file (eca-features.md 13.5).
func chatFile(id string) string {
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{7,127}$`).MatchString(id) || strings.HasPrefix(id, "index") {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return id + suffix
}

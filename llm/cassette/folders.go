package cassette

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Folders is a file that lists the folders with recordings, one quoted path per line. With it, a
// process that records nothing can delete the recordings of others.
type Folders string

// Sizes in bytes up to which the list of folders and a recording are read.
const (
	maxFolders   = 1 << 20
	maxRecording = 1 << 30
)

// list returns the folders.
func (f Folders) list() (dirs []string, err error) {
	data, err := safeio.Read(string(f), maxFolders)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(data)) {
		if dir, unquoteErr := strconv.Unquote(strings.TrimSuffix(line, "\n")); unquoteErr == nil && filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// add adds a folder. Other processes may add theirs at the same time.
func (f Folders) add(dir string) error {
	known, err := f.list()
	if err != nil || slices.Contains(known, dir) {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(string(f)), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(string(f), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(strconv.Quote(dir) + "\n")
	return errors.Join(err, file.Close())
}

// Delete deletes the recordings of a chat from all folders. It leaves files that someone has changed
// into the script of a test.
func (f Folders) Delete(chat string) error {
	dirs, err := f.list()
	if err != nil {
		return fmt.Errorf("cannot delete the chat's recordings: %w", err)
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, fileName(chat))
		data, readErr := safeio.Read(path, maxRecording)
		if readErr != nil || !isRecording(data) {
			continue // most folders have no recording of the chat, and some may have been removed
		}
		if removeErr := os.Remove(path); removeErr != nil {
			err = errors.Join(err, fmt.Errorf("cannot delete a recording of the chat: %w", removeErr))
		}
	}
	return err
}

// isRecording reports whether a file is as a Recorder wrote it: without regular expressions that
// select turns, and without a default.
func isRecording(data []byte) bool {
	var tape Cassette
	if !bytes.HasPrefix(data, []byte("cassette:")) || yaml.Unmarshal(data, &tape) != nil || tape.Default != nil {
		return false
	}
	return !slices.ContainsFunc(tape.Turns, func(t Turn) bool { return t.User != "" })
}

// fileName returns the name of the file with the recording of a chat.
func fileName(chat string) string {
	return regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(chat, "_") + ".yaml"
}

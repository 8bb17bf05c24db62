package runtime

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Line is one line of a journal: an attempt that ended. Digest covers everything that determined the
// attempt, so that changed cases are run again.
type Line struct {
	Case    string         `json:"case"`
	Variant string         `json:"variant"`
	Digest  string         `json:"digest"`
	Attempt int            `json:"attempt"` // from 1
	Name    string         `json:"name"`    // of the scenario, for human readers
	Result  report.Attempt `json:"result"`
}

// Journal is a file with a line of JSON for each attempt that ended. Each line is written
// immediately, so that it survives if the process is killed. Readers skip an incomplete last line.
type Journal struct {
	mu sync.Mutex // guards f
	f  *os.File
}

// ReadJournal returns the complete lines of a journal, and their size in bytes. A complete line that
// is invalid is an error.
func ReadJournal(path string) (lines []Line, size int64, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, 0, fmt.Errorf("journal: %w", err)
	}
	if lines, size, err = parseJournal(data); err != nil {
		return nil, 0, fmt.Errorf("journal: %s:%w", path, err)
	}
	return lines, size, nil
}

// parseJournal parses the complete lines. Its errors begin with the line number.
func parseJournal(data []byte) (lines []Line, size int64, err error) {
	for n := 1; ; n++ {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return lines, size, nil
		}
		if text := bytes.TrimSpace(data[:i]); len(text) > 0 {
			var line Line
			if err := json.Unmarshal(text, &line); err != nil || line.Case == "" || line.Digest == "" || line.Attempt < 1 {
				return nil, 0, fmt.Errorf("%d: not a line of a journal%s", n, olderJournal(text))
			}
			lines = append(lines, line)
		}
		size += int64(i + 1)
		data = data[i+1:]
	}
}

// OpenJournal opens a journal for appending after its first keep bytes. If keep is 0, an existing
// journal is renamed to .old.
func OpenJournal(path string, keep int64) (*Journal, error) {
	if info, err := os.Stat(path); keep == 0 && err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("journal: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, fmt.Errorf("journal: %w", err)
	}
	j := &Journal{f: f}
	if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
		err = f.Truncate(keep) // removes an incomplete line
		if _, seekErr := f.Seek(keep, 0); err == nil {
			err = seekErr
		}
		if err != nil {
			_ = f.Close()
			return nil, fmt.Errorf("journal: %w", err)
		}
	}
	return j, nil
}

// Write adds a line.
func (j *Journal) Write(line Line) error {
	data, err := json.Marshal(line)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, err := j.f.Write(append(data, '\n')); err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	return nil
}

// Close makes the journal durable and closes it.
func (j *Journal) Close() error { return errors.Join(j.f.Sync(), j.f.Close()) }

// olderJournal explains a line from a version that identified scenarios by their position.
func olderJournal(line []byte) string {
	var older struct{ ID, Digest string }
	if json.Unmarshal(line, &older) != nil || older.ID == "" || older.Digest == "" {
		return ""
	}
	return " of this version: older versions identified scenarios by their position. Start again with --journal"
}

// attemptKey identifies an attempt, and everything that determined it.
type attemptKey struct {
	id, variant, digest string
	attempt             int
}

// finished returns the last result of each attempt, except stopped attempts and, with retryErrors,
// errors.
func finished(lines []Line, retryErrors bool) map[attemptKey]report.Attempt {
	out := map[attemptKey]report.Attempt{}
	for _, l := range lines {
		key := attemptKey{l.Case, l.Variant, l.Digest, l.Attempt}
		delete(out, key)
		if !wasStopped(l.Result) && (!retryErrors || l.Result.Status != report.Error) {
			out[key] = l.Result
		}
	}
	return out
}

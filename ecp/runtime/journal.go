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

// Line is one line of a journal: a scenario that finished. Digest is of all that decided
// what it did, so that what was changed since is run again.
type Line struct {
	ID       string          `json:"id"`
	Digest   string          `json:"digest"`
	Scenario report.Scenario `json:"scenario"`
}

// Journal is a file with a line of JSON for each scenario that finished. A line is written
// at once, so that it survives the death of the process; one that is cut is not read.
type Journal struct {
	mu sync.Mutex // guards f
	f  *os.File
}

// ReadJournal returns the whole lines of a journal, and how many bytes they are. Lines that
// cannot be read are an error: they are no journal's.
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

// parseJournal reads the whole lines; an error begins with the number of the line.
func parseJournal(data []byte) (lines []Line, size int64, err error) {
	for n := 1; ; n++ {
		i := bytes.IndexByte(data, '\n')
		if i < 0 {
			return lines, size, nil
		}
		if text := bytes.TrimSpace(data[:i]); len(text) > 0 {
			var line Line
			if err := json.Unmarshal(text, &line); err != nil || line.ID == "" || line.Digest == "" {
				return nil, 0, fmt.Errorf("%d: no line of a journal", n)
			}
			line.Scenario.UpgradeV1()
			lines = append(lines, line)
		}
		size += int64(i + 1)
		data = data[i+1:]
	}
}

// OpenJournal opens a journal to write to. keep is how much of it stays; if that is
// nothing, one that is there already is kept beside it, as .old.
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
		err = f.Truncate(keep) // a line that was cut
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

// finished finds the last line of each case.
func finished(lines []Line) map[string]Line {
	out := map[string]Line{}
	for _, l := range lines {
		out[l.ID+l.Digest] = l
	}
	return out
}

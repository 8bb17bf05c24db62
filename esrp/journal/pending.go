package journal

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// The folder pending contains unfinished work. Files get their final name after they have been
// written. The next process that appends does the work and removes the file.
const (
	pendingDir = "pending"
	// erasureSuffix is for a file whose content is the id of a chat to erase.
	erasureSuffix = ".erase"
	// recordsSuffix is for a file with records that a process had no time to append.
	recordsSuffix = ".records"
	// growingSuffix is for such a file while a process writes it and holds a lock file with ownerSuffix.
	growingSuffix, ownerSuffix = ".growing", ".lock"
	// begunSuffix is for such a file while its records are appended: some may already be in the chain.
	begunSuffix = ".begun"
)

// errTimeUp means that the process is shutting down and leaves the work to the next one.
var errTimeUp = errors.New("the process is shutting down; the next one continues")

// pendingRecord is a line of a file of records.
type pendingRecord struct {
	Event  string            `json:"event"`
	Record json.RawMessage   `json:"record"`
	Bodies map[string]string `json:"bodies"` // base64, by hash: the bodies that no earlier line of the file has
}

// pendingRecords writes records to a file in pending. It does not need the lock of the journal, so it
// does not wait for other processes.
type pendingRecords struct {
	path    string // without the suffix
	file    *os.File
	owner   *flock.Flock
	out     *bufio.Writer
	written map[string]bool // hashes of the bodies in the file
}

// newPendingRecords creates a file in the folder of a chain.
func (c *Chain) newPendingRecords(id string) (*pendingRecords, error) {
	dir := filepath.Join(c.dir, pendingDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, id)
	owner := flock.New(path+ownerSuffix, flock.SetPermissions(0o600))
	if err := owner.Lock(); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path+growingSuffix, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, errors.Join(err, owner.Close())
	}
	return &pendingRecords{path: path, file: file, owner: owner, out: bufio.NewWriterSize(file, 1<<16), written: map[string]bool{}}, nil
}

// add writes a record, with secrets removed.
func (p *pendingRecords) add(c *Chain, clean func(string) string, build func(*bodies) (event string, record esrp.Value)) error {
	b := &bodies{c: c, clean: clean, pending: map[string]string{}, stored: p.written}
	event, record := build(b)
	if b.err != nil {
		return b.err
	}
	text, err := record.Canonical()
	if err != nil {
		return err
	}
	return json.NewEncoder(p.out).Encode(pendingRecord{event, text, b.pending})
}

// finish gives the file its final name.
func (p *pendingRecords) finish() error {
	return errors.Join(p.out.Flush(), p.file.Close(), os.Rename(p.path+growingSuffix, p.path+recordsSuffix), p.owner.Close(), removeFile(p.path+ownerSuffix))
}

// adoptFile takes over a file from a process that was killed while writing it, and returns the new path.
// The path is empty if the process is alive or has just finished the file.
func adoptFile(path string) (string, error) {
	base := strings.TrimSuffix(path, growingSuffix)
	owner := flock.New(base+ownerSuffix, flock.SetPermissions(0o600))
	if ok, err := owner.TryLock(); !ok {
		return "", err
	}
	defer removeFile(base + ownerSuffix) //nolint:errcheck // it is empty, and the next process removes it
	defer owner.Close()
	switch err := os.Rename(path, base+recordsSuffix); {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", err
	}
	return base + recordsSuffix, nil
}

// requestErasure writes the request to erase a chat.
func (c *Chain) requestErasure(chatID string) error {
	dir := filepath.Join(c.dir, pendingDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return safeio.Write(c.erasurePath(chatID), []byte(chatID), 0o600)
}

// erasurePath returns the path of the file that requests erasing a chat.
func (c *Chain) erasurePath(chatID string) string {
	return filepath.Join(c.dir, pendingDir, esrp.DerivedUUID(chatID).String()+erasureSuffix)
}

// finishPending does the pending work: it first appends records, then erases chats.
func (c *Chain) finishPending(now time.Time) error {
	dir := filepath.Join(c.dir, pendingDir)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		switch filepath.Ext(path) {
		case growingSuffix:
			var err error
			if path, err = adoptFile(path); path == "" || err != nil {
				errs = append(errs, err)
				continue
			}
		case recordsSuffix, begunSuffix:
		default:
			continue
		}
		errs = append(errs, c.appendPending(path))
	}
	if c.timeIsUp() {
		errs = append(errs, errTimeUp)
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != erasureSuffix || errors.Join(errs...) != nil {
			continue // a chat's records come first
		}
		path := filepath.Join(dir, e.Name())
		chatID, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // another process did it
		}
		if err == nil {
			err = c.erase(string(chatID), now)
		}
		if err == nil {
			err = removeFile(path)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// appendPending appends the records of a file and removes the file.
func (c *Chain) appendPending(path string) error {
	return c.withLock(func() error {
		known := map[string]bool{}
		if base, fresh := strings.CutSuffix(path, recordsSuffix); fresh {
			if err := os.Rename(path, base+begunSuffix); err != nil {
				return ignoreMissing(err) // another process did it
			}
			path = base + begunSuffix
		} else if err := c.addRecordedEvents(known); err != nil {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return ignoreMissing(err)
		}
		defer file.Close()
		dec := json.NewDecoder(bufio.NewReaderSize(file, 1<<16))
		for dec.More() {
			var p pendingRecord
			if err := dec.Decode(&p); errors.Is(err, io.ErrUnexpectedEOF) {
				break // its process was killed
			} else if err != nil {
				return errors.Join(fmt.Errorf("%s is damaged: %w", path, err), file.Close(), removeFile(path))
			}
			if c.timeIsUp() {
				return errTimeUp
			}
			if err := c.appendOne(p, known); err != nil {
				return err
			}
		}
		_ = file.Close() // or some systems do not remove it
		return removeFile(path)
	})
}

// appendOne stores the bodies of a record, and appends the record unless the chain already has it.
func (c *Chain) appendOne(p pendingRecord, known map[string]bool) error {
	for hash, text := range p.Bodies {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil || esrp.HashBytes(data) != hash {
			return errors.Join(ErrDamaged, err)
		}
		if _, err := c.put(data); err != nil {
			return err
		}
	}
	record, err := esrp.Parse(p.Record)
	if err != nil {
		return err
	}
	if id, ok := record.Get("request_id"); ok && known[p.Event+" "+id.Text] {
		return nil
	}
	last, err := c.findTail()
	if err != nil {
		return err
	}
	return c.write(last, p.Event, record)
}

// addRecordedEvents adds the events of the calls in the chain to known, as "EVENT REQUEST-ID".
func (c *Chain) addRecordedEvents(known map[string]bool) error {
	list, _, err := c.snapshotLocked()
	if err != nil {
		return err
	}
	for _, s := range list {
		if _, err := c.lines(s, func(line []byte) error {
			if b, err := summarizeLine(line); err == nil {
				known[b.Event+" "+b.Record.RequestID] = true
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func removeFile(path string) error { return ignoreMissing(os.Remove(path)) }

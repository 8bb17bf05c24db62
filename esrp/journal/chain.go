package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"github.com/seed-dec29ce4/eca/esrp"
)

const (
	defaultSegment = 8 << 20
	headSize       = 512 // of the file head, which is always written as a whole
	suffix         = ".jsonl"
)

// genesis is prev of the first line.
const genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// Chain is the journal on the disk. One goroutine may use it; other processes may use others
// for the same folder.
type Chain struct {
	dir, artifacts string
	segmentSize    int64
	lock           *flock.Flock
	held           bool
	head, segment  *os.File
	unsynced       []string // bodies written since the last Sync
	added          int64    // bytes since the last Trim
	known          map[string]*remembered
	wrote          string // hash of the last line that this one wrote
	ours           string // the same, of append

	late <-chan struct{} // closed when there is no more time; nil: there always is
}

// At returns the chain below a state directory. Nothing is made before the first Append.
func At(state string) *Chain {
	dir := filepath.Join(state, "journal")
	return &Chain{
		dir: dir, artifacts: filepath.Join(state, "artifacts", "sha256"), segmentSize: defaultSegment,
		lock: flock.New(filepath.Join(dir, "lock"), flock.SetPermissions(0o600)),
	}
}

// Close releases the files.
func (c *Chain) Close() {
	for _, f := range []*os.File{c.head, c.segment} {
		if f != nil {
			_ = f.Close()
		}
	}
	c.head, c.segment = nil, nil
	_ = c.lock.Close()
}

// alone runs f while no other process appends.
func (c *Chain) alone(f func() error) error {
	if c.held {
		return f()
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := c.acquire(); err != nil {
		return fmt.Errorf("the journal can not be locked: %w", err)
	}
	c.held = true
	defer func() {
		c.held = false
		_ = c.lock.Unlock()
	}()
	return f()
}

// acquire waits for the lock, as long as there is time.
func (c *Chain) acquire() error {
	if c.late == nil {
		return c.lock.Lock()
	}
	const pause = 5 * time.Millisecond // others append within less
	for {
		if ok, err := c.lock.TryLock(); ok || err != nil {
			return err
		}
		select {
		case <-c.late:
			return errLate
		case <-time.After(pause):
		}
	}
}

// isLate says that what takes long is to be left to the next process.
func (c *Chain) isLate() bool {
	select {
	case <-c.late:
		return true
	default:
		return false
	}
}

// mark is what head says of the line that was written, or was about to be written, last.
type mark struct {
	Segment string `json:"segment"`
	Seq     uint64 `json:"seq"`
	Start   int64  `json:"start"` // where the line begins
	Len     int64  `json:"len"`   // of the line, without its newline
	Prev    string `json:"prev"`  // the hash of the line before
	Hash    string `json:"hash"`  // of the line
}

// end is where the line's segment ends when the line is whole.
func (m mark) end() int64 { return m.Start + m.Len + 1 }

// encode returns the file's whole content.
func (m mark) encode() ([]byte, error) {
	text, err := json.Marshal(m)
	if err != nil || len(text) >= headSize {
		return nil, errors.Join(err, fmt.Errorf("head has %d bytes", len(text)))
	}
	out := bytes.Repeat([]byte{' '}, headSize)
	copy(out, text)
	out[headSize-1] = '\n'
	return out, nil
}

// parseMark reads what encode wrote, to the byte.
func parseMark(data []byte) (mark, error) {
	var m mark
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if again, err := m.encode(); err != nil || !bytes.Equal(again, data) {
		return m, errors.New("it was changed")
	}
	return m, nil
}

// append writes a line behind the last one. build hands over the bodies that the record
// names, and says which event it is.
func (c *Chain) append(clean func(string) string, build func(*bodies) (event string, record esrp.Value)) error {
	return c.alone(func() error {
		last, err := c.last()
		if err != nil {
			return err
		}
		// Who removes bodies writes a line before: without one, all that were there still are.
		b := &bodies{c: c, clean: clean, whole: last.Hash == c.ours}
		event, record := build(b)
		if b.err != nil {
			return b.err
		}
		if err := c.write(last, event, record); err != nil {
			return err
		}
		c.ours = c.wrote
		return nil
	})
}

// write writes the next line. The caller holds the lock.
func (c *Chain) write(last mark, event string, record esrp.Value) error {
	next := mark{Segment: last.Segment, Seq: last.Seq + 1, Start: last.end(), Prev: last.Hash}
	line, err := encodeLine(event, next.Seq, next.Prev, record)
	if err != nil {
		return err
	}
	next.Len, next.Hash = int64(len(line)), esrp.HashBytes(line)
	if next.Segment == "" || next.Start >= c.segmentSize {
		next.Segment, next.Start = segmentName(next.Seq), 0
	}
	if err := c.open(next.Segment); err != nil {
		return err
	}
	head, err := next.encode()
	if err != nil {
		return err
	}
	if _, err := c.head.WriteAt(head, 0); err != nil {
		return err
	}
	_, err = c.segment.WriteAt(append(line, '\n'), next.Start)
	c.added += next.Len
	c.wrote = next.Hash
	return err
}

// segmentName names the segment that begins with a line.
func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, suffix) }

// open opens head and a segment, unless they are open.
func (c *Chain) open(segment string) (err error) {
	path := filepath.Join(c.dir, segment)
	if c.segment != nil && (c.segment.Name() != path || gone(c.segment)) {
		c.unsynced = append(c.unsynced, c.segment.Name())
		_ = c.segment.Close()
		c.segment = nil
	}
	if c.segment == nil {
		if c.segment, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	if c.head != nil && gone(c.head) {
		_ = c.head.Close()
		c.head = nil
	}
	if c.head == nil {
		c.head, err = os.OpenFile(filepath.Join(c.dir, "head"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	return err
}

// gone says whether a file that is open has been removed or replaced.
func gone(f *os.File) bool {
	open, err := f.Stat()
	named, err2 := os.Stat(f.Name())
	return err != nil || err2 != nil || !os.SameFile(open, named)
}

// last returns the last whole line, and removes what a process that died left behind it.
func (c *Chain) last() (mark, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, "head"))
	if errors.Is(err, fs.ErrNotExist) {
		return c.rebuild()
	}
	if err != nil {
		return mark{}, err
	}
	m, err := parseMark(data)
	if err != nil { // changed, or cut by a crash of the machine
		return c.rebuild()
	}
	path := filepath.Join(c.dir, m.Segment)
	info, err := os.Stat(path)
	var size int64
	if err == nil {
		size = info.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return mark{}, err
	}
	switch {
	case size == m.end():
		return m, nil
	case size >= m.Start && size < m.end(): // the line was not written, or not as a whole
		before := mark{Segment: m.Segment, Seq: m.Seq - 1, Start: m.Start - 1, Hash: m.Prev}
		if size == m.Start {
			return before, nil
		}
		return before, os.Truncate(path, m.Start)
	}
	// Somebody else changed the segment. What follows stands in another one, behind the line
	// that should have been there: Verify tells.
	return mark{Seq: m.Seq, Hash: m.Hash}, nil
}

// rebuild finds the end of a chain without head.
func (c *Chain) rebuild() (mark, error) {
	names, err := segments(c.dir)
	if err != nil || len(names) == 0 {
		return mark{Hash: genesis, Start: -1}, err
	}
	name := names[len(names)-1]
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return mark{}, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole < len(data) {
		if err := os.Truncate(filepath.Join(c.dir, name), int64(whole)); err != nil {
			return mark{}, err
		}
	}
	if whole == 0 {
		first, prev := firstOf(name), genesis
		if len(names) > 1 {
			before, err := os.ReadFile(filepath.Join(c.dir, names[len(names)-2]))
			if err != nil {
				return mark{}, err
			}
			prev = esrp.HashBytes(lastLine(before))
		}
		return mark{Segment: name, Seq: first - 1, Start: -1, Hash: prev}, nil
	}
	line := lastLine(data[:whole])
	var l struct {
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return mark{}, fmt.Errorf("the last line of %s is damaged: %w", name, err)
	}
	return mark{Segment: name, Seq: l.Seq, Start: int64(whole - len(line) - 1), Len: int64(len(line)), Hash: esrp.HashBytes(line)}, nil
}

// lastLine returns the last line of whole lines, without its newline.
func lastLine(data []byte) []byte {
	data = bytes.TrimSuffix(data, []byte{'\n'})
	return data[bytes.LastIndexByte(data, '\n')+1:]
}

// Sync makes what was appended survive a crash of the machine.
func (c *Chain) Sync() error {
	var errs []error
	for n, path := range c.unsynced {
		if c.isLate() {
			c.unsynced = c.unsynced[n:]
			return errLate
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if errors.Is(err, fs.ErrNotExist) {
			continue // erased or trimmed
		}
		if err == nil {
			err = errors.Join(f.Sync(), f.Close())
		}
		errs = append(errs, err)
	}
	c.unsynced = nil
	for _, f := range []*os.File{c.segment, c.head} {
		if f != nil {
			errs = append(errs, f.Sync())
		}
	}
	return errors.Join(errs...)
}

func encodeLine(event string, seq uint64, prev string, record esrp.Value) ([]byte, error) {
	return esrp.ObjectValue(
		esrp.Member{Key: "event_type", Value: esrp.StringValue(event)},
		esrp.Member{Key: "prev", Value: esrp.StringValue(prev)},
		esrp.Member{Key: "record", Value: record},
		esrp.Member{Key: "seq", Value: esrp.IntValue(int64(seq))}, //nolint:gosec // no journal has 2^63 lines
	).Canonical()
}

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
	headSize       = 512 // bytes of the file head, which is always overwritten completely
	suffix         = ".jsonl"
)

// genesis is the prev of the first line.
const genesis = "0000000000000000000000000000000000000000000000000000000000000000"

// Chain is the journal on disk. Only one goroutine may use a Chain, but several processes may have
// Chains for the same folder. It has more than 40 methods because locking, appending, trimming and
// repair hold the same lock and the same open files.
type Chain struct {
	dir, artifacts string
	segmentSize    int64
	lock           *flock.Flock
	locked         bool
	head, segment  *os.File
	unsynced       []string // bodies written since the last Sync
	bytesSinceTrim int64    // bytes since the last Trim
	lastRequests   map[string]*lastRequest
	lastWritten    string // hash of the last line that this Chain wrote
	lastAppended   string // hash of the last line that append wrote

	timeUp <-chan struct{} // closed when slow work should be left to the next process; nil means never
}

// At returns the chain below a state directory. It creates nothing before the first Append.
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

// withLock runs f while it holds the lock.
func (c *Chain) withLock(f func() error) error {
	if c.locked {
		return f()
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	if err := c.acquire(); err != nil {
		return fmt.Errorf("cannot lock the journal: %w", err)
	}
	c.locked = true
	defer func() {
		c.locked = false
		_ = c.lock.Unlock()
	}()
	return f()
}

// acquire waits for the lock, until timeUp is closed.
func (c *Chain) acquire() error {
	if c.timeUp == nil {
		return c.lock.Lock()
	}
	const pause = 5 * time.Millisecond // longer than an append takes
	for {
		if ok, err := c.lock.TryLock(); ok || err != nil {
			return err
		}
		select {
		case <-c.timeUp:
			return errTimeUp
		case <-time.After(pause):
		}
	}
}

// timeIsUp reports whether slow work should be left to the next process.
func (c *Chain) timeIsUp() bool {
	select {
	case <-c.timeUp:
		return true
	default:
		return false
	}
}

// tail is the content of head: a description of the last line that was written, or was about to be.
type tail struct {
	Segment string `json:"segment"`
	Seq     uint64 `json:"seq"`
	Start   int64  `json:"start"` // offset of the line
	Len     int64  `json:"len"`   // of the line, without its newline
	Prev    string `json:"prev"`  // the hash of the previous line
	Hash    string `json:"hash"`  // of the line
}

// end returns the size of the segment with the complete line.
func (t tail) end() int64 { return t.Start + t.Len + 1 }

// encode returns the whole content of the file.
func (t tail) encode() ([]byte, error) {
	text, err := json.Marshal(t)
	if err != nil || len(text) >= headSize {
		return nil, errors.Join(err, fmt.Errorf("head would have %d bytes", len(text)))
	}
	out := bytes.Repeat([]byte{' '}, headSize)
	copy(out, text)
	out[headSize-1] = '\n'
	return out, nil
}

// parseTail parses the output of encode and accepts nothing else.
func parseTail(data []byte) (tail, error) {
	var m tail
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if again, err := m.encode(); err != nil || !bytes.Equal(again, data) {
		return m, errors.New("head was changed")
	}
	return m, nil
}

// append appends a line. build stores the bodies that the record refers to, and returns the event and
// the record.
func (c *Chain) append(clean func(string) string, build func(*bodies) (event string, record esrp.Value)) error {
	return c.withLock(func() error {
		last, err := c.findTail()
		if err != nil {
			return err
		}
		// A line is written before bodies are removed. So if the last line was written by this
		// method, all bodies still exist.
		b := &bodies{c: c, clean: clean, allExist: last.Hash == c.lastAppended}
		event, record := build(b)
		if b.err != nil {
			return b.err
		}
		if err := c.write(last, event, record); err != nil {
			return err
		}
		c.lastAppended = c.lastWritten
		return nil
	})
}

// write writes the next line. The caller holds the lock.
func (c *Chain) write(last tail, event string, record esrp.Value) error {
	next := tail{Segment: last.Segment, Seq: last.Seq + 1, Start: last.end(), Prev: last.Hash}
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
	c.bytesSinceTrim += next.Len
	c.lastWritten = next.Hash
	return err
}

// segmentName returns the name of the segment that begins with a line.
func segmentName(first uint64) string { return fmt.Sprintf("%020d%s", first, suffix) }

// open opens head and a segment, unless they are open.
func (c *Chain) open(segment string) (err error) {
	path := filepath.Join(c.dir, segment)
	if c.segment != nil && (c.segment.Name() != path || isRemoved(c.segment)) {
		c.unsynced = append(c.unsynced, c.segment.Name())
		_ = c.segment.Close()
		c.segment = nil
	}
	if c.segment == nil {
		if c.segment, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
	}
	if c.head != nil && isRemoved(c.head) {
		_ = c.head.Close()
		c.head = nil
	}
	if c.head == nil {
		c.head, err = os.OpenFile(filepath.Join(c.dir, "head"), os.O_RDWR|os.O_CREATE, 0o600)
	}
	return err
}

// isRemoved reports whether an open file has been removed or replaced.
func isRemoved(f *os.File) bool {
	open, err := f.Stat()
	named, err2 := os.Stat(f.Name())
	return err != nil || err2 != nil || !os.SameFile(open, named)
}

// findTail returns the last complete line, and removes an incomplete line of a process that died.
func (c *Chain) findTail() (tail, error) {
	data, err := os.ReadFile(filepath.Join(c.dir, "head"))
	if errors.Is(err, fs.ErrNotExist) {
		return c.rebuild()
	}
	if err != nil {
		return tail{}, err
	}
	m, err := parseTail(data)
	if err != nil { // changed, or cut by a crash of the machine
		return c.rebuild()
	}
	path := filepath.Join(c.dir, m.Segment)
	info, err := os.Stat(path)
	var size int64
	if err == nil {
		size = info.Size()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tail{}, err
	}
	switch {
	case size == m.end():
		return m, nil
	case size >= m.Start && size < m.end(): // the line was not written completely
		before := tail{Segment: m.Segment, Seq: m.Seq - 1, Start: m.Start - 1, Hash: m.Prev}
		if size == m.Start {
			return before, nil
		}
		return before, os.Truncate(path, m.Start)
	}
	// Another program changed the segment. The next line is written to a new segment and refers to the
	// missing line, so that Verify reports it.
	return tail{Seq: m.Seq, Hash: m.Hash}, nil
}

// rebuild finds the last line from the segments, if head is missing or damaged.
func (c *Chain) rebuild() (tail, error) {
	names, err := segments(c.dir)
	if err != nil || len(names) == 0 {
		return tail{Hash: genesis, Start: -1}, err
	}
	name := names[len(names)-1]
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil {
		return tail{}, err
	}
	whole := bytes.LastIndexByte(data, '\n') + 1
	if whole < len(data) {
		if err := os.Truncate(filepath.Join(c.dir, name), int64(whole)); err != nil {
			return tail{}, err
		}
	}
	if whole == 0 {
		first, prev := firstSeqOf(name), genesis
		if len(names) > 1 {
			before, err := os.ReadFile(filepath.Join(c.dir, names[len(names)-2]))
			if err != nil {
				return tail{}, err
			}
			prev = esrp.HashBytes(lastLine(before))
		}
		return tail{Segment: name, Seq: first - 1, Start: -1, Hash: prev}, nil
	}
	line := lastLine(data[:whole])
	var l struct {
		Seq uint64 `json:"seq"`
	}
	if err := json.Unmarshal(line, &l); err != nil {
		return tail{}, fmt.Errorf("the last line of %s is damaged: %w", name, err)
	}
	return tail{Segment: name, Seq: l.Seq, Start: int64(whole - len(line) - 1), Len: int64(len(line)), Hash: esrp.HashBytes(line)}, nil
}

// lastLine returns the last of several complete lines, without its newline.
func lastLine(data []byte) []byte {
	data = bytes.TrimSuffix(data, []byte{'\n'})
	return data[bytes.LastIndexByte(data, '\n')+1:]
}

// Sync makes the appended lines and their bodies durable.
func (c *Chain) Sync() error {
	var errs []error
	for n, path := range c.unsynced {
		if c.timeIsUp() {
			c.unsynced = c.unsynced[n:]
			return errTimeUp
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

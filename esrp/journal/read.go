package journal

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/esrp"
)

// The events of lines. The first three are ESRP's (esrp.md 1.4), the others are eca's.
const (
	Requested = "service.requested"
	Completed = "service.completed"
	Failed    = "service.failed"
	Erased    = "journal.erased"  // bodies of a chat were removed
	Trimmed   = "journal.trimmed" // a sealed segment was removed
)

// segments lists the names of the segments, in order.
func segments(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var out []string
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && firstSeqOf(e.Name()) > 0 {
			out = append(out, e.Name())
		}
	}
	slices.Sort(out)
	return out, err
}

// firstSeqOf returns the number of a segment's first line; 0 if the name is not that of a segment.
func firstSeqOf(name string) uint64 {
	n, err := strconv.ParseUint(strings.TrimSuffix(name, suffix), 10, 63)
	if err != nil || fmt.Sprintf("%020d%s", n, suffix) != name {
		return 0
	}
	return n
}

// hashOf returns the hash in a body's URI.
func hashOf(uri string) (string, bool) {
	hash, ok := strings.CutPrefix(uri, uriPrefix)
	return hash, ok && len(hash) == 64 && strings.Trim(hash, "0123456789abcdef") == ""
}

// hashesIn calls f for each body that a line refers to.
func hashesIn(line []byte, f func(hash string)) {
	for rest := string(line); ; {
		_, after, found := strings.Cut(rest, uriPrefix)
		if !found {
			return
		}
		if len(after) >= 64 {
			if hash, ok := hashOf(uriPrefix + after[:64]); ok {
				f(hash)
			}
		}
		rest = after
	}
}

// segmentInfo is a segment with its size at one moment.
type segmentInfo struct {
	name string
	size int64
}

// snapshot returns the current segments and head. It takes the lock, so that no line is being written,
// unless the folder is a read-only copy that cannot be locked.
func (c *Chain) snapshot() (list []segmentInfo, head []byte, err error) {
	if _, err := os.Stat(c.dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err := c.lock.Lock(); err != nil {
		return c.snapshotLocked() // a read-only copy
	}
	defer func() { _ = c.lock.Unlock() }()
	return c.snapshotLocked()
}

// snapshotLocked is snapshot for callers that hold the lock.
func (c *Chain) snapshotLocked() (list []segmentInfo, head []byte, err error) {
	names, err := segments(c.dir)
	if err != nil {
		return nil, nil, err
	}
	for _, name := range names {
		info, err := os.Stat(filepath.Join(c.dir, name))
		if err != nil {
			return nil, nil, err
		}
		list = append(list, segmentInfo{name, info.Size()})
	}
	head, err = os.ReadFile(filepath.Join(c.dir, "head"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return list, head, err
}

// lines calls f for each complete line of a segment, without its newline, and returns the bytes
// after the last newline.
func (c *Chain) lines(s segmentInfo, f func(line []byte) error) (rest []byte, err error) {
	file, err := os.Open(filepath.Join(c.dir, s.name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	r := bufio.NewReaderSize(io.LimitReader(file, s.size), 1<<16)
	for {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
		if c.timeIsUp() {
			return nil, errTimeUp
		}
		if err := f(line[:len(line)-1]); err != nil {
			return nil, err
		}
	}
}

// Export writes the complete lines of the journal unchanged. It does not check them.
func (c *Chain) Export(w io.Writer) error {
	list, _, err := c.snapshot()
	if err != nil {
		return err
	}
	for _, s := range list {
		if _, err := c.lines(s, func(line []byte) error {
			_, err := w.Write(append(line, '\n'))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}

// Call is a recorded request with its response.
type Call struct {
	Seq      uint64
	Request  esrp.Request
	Response *esrp.Response // nil if the process died or the call is still running
}

// Calls returns the calls of a chat in the order in which they were made; an empty chatID means all
// chats.
func (c *Chain) Calls(chatID string) ([]Call, error) {
	list, _, err := c.snapshot()
	if err != nil {
		return nil, err
	}
	var out []Call
	at := map[esrp.UUID]int{}
	for _, s := range list {
		if _, err := c.lines(s, func(line []byte) error {
			l, err := parseLine(line)
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			switch l.event {
			case Requested:
				req, err := esrp.RequestOf(l.record)
				if err != nil {
					return fmt.Errorf("line %d: %w", l.seq, err)
				}
				if chatID == "" || req.Caller.RunID != nil && *req.Caller.RunID == chatID {
					at[req.ID] = len(out)
					out = append(out, Call{Seq: l.seq, Request: req})
				}
			case Completed, Failed:
				res, err := esrp.ResponseOf(l.record)
				if err != nil {
					return fmt.Errorf("line %d: %w", l.seq, err)
				}
				if n, ok := at[res.RequestID]; ok {
					out[n].Response = &res
				}
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// line is a parsed line of the journal.
type line struct {
	event, prev string
	seq         uint64
	record      esrp.Value
}

func parseLine(data []byte) (line, error) {
	v, err := esrp.Parse(data)
	if err != nil {
		return line{}, err
	}
	var l line
	event, _ := v.Get("event_type")
	prev, _ := v.Get("prev")
	seq, _ := v.Get("seq")
	l.record, _ = v.Get("record")
	l.event, l.prev = event.Text, prev.Text
	if l.seq, err = strconv.ParseUint(seq.Text, 10, 63); err != nil || l.event == "" || l.record.Kind != esrp.Object || len(v.Members) != 4 {
		return line{}, errors.New("not a journal line")
	}
	return l, nil
}

// lineSummary is the part of a line that erasing needs. It can be parsed much faster than the whole line.
type lineSummary struct {
	Event  string `json:"event_type"`
	Record struct {
		RequestID string `json:"request_id"`
		Caller    struct {
			RunID string `json:"run_id"`
		} `json:"caller"`
		Context struct {
			Tags struct {
				Parent string `json:"parent"`
			} `json:"tags"`
		} `json:"context"`
		Chat string `json:"chat"` // of Erased
	} `json:"record"`
}

func summarizeLine(data []byte) (b lineSummary, err error) {
	err = json.Unmarshal(data, &b)
	return b, err
}

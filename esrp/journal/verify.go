package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Report is the result of Verify.
type Report struct {
	Segments, Lines, Bodies int
	Erased                  int    // bodies that were removed with their chats
	Torn                    int    // bytes of an incomplete line of a killed process; the next append removes them
	Unwritten               uint64 // number of the line that head describes but the segment lacks; 0 means none
}

// Damage is a position where the journal is not valid.
type Damage struct {
	Segment string // file; or head
	Line    int    // in the segment, from 1; 0 if there is no line
	Reason  string
}

func (d *Damage) Error() string {
	if d.Line == 0 {
		return d.Segment + ": " + d.Reason
	}
	return fmt.Sprintf("%s, line %d: %s", d.Segment, d.Line, d.Reason)
}

// Verify checks every byte of the journal: the lines, their chain, the hashes in records, head and the
// bodies. It returns the first *Damage, or the error of reading a file. A missing journal is valid.
func (c *Chain) Verify() (Report, error) {
	list, head, err := c.snapshot()
	if err != nil {
		return Report{}, err
	}
	list = withoutUnused(list, head)
	v := verifier{c: c, nextSeq: 1, prev: genesis, bodies: map[string]linePosition{}, chats: newLineage(), owners: map[string][]string{}}
	for n, s := range list {
		if err := v.segment(s, n == 0, n == len(list)-1); err != nil {
			return v.r, err
		}
	}
	if err := v.checkEnd(list, head); err != nil {
		return v.r, err
	}
	return v.r, v.checkBodies()
}

// withoutUnused leaves out a last segment that a killed process created for a line that head does not have
// yet.
func withoutUnused(list []segmentInfo, head []byte) []segmentInfo {
	if len(list) == 0 || list[len(list)-1].size > 0 {
		return list
	}
	m, err := parseTail(head)
	if len(head) == 0 && len(list) == 1 || err == nil && m.Segment != list[len(list)-1].name {
		return list[:len(list)-1]
	}
	return list
}

type linePosition struct {
	segment string
	line    int
}

type verifier struct {
	c            *Chain
	r            Report
	nextSeq      uint64
	prev         string
	lastPrev     string
	lastStart    int64
	lastLen      int64
	rest         []byte
	trimmedStart *tail // first line of a chain whose first segments were trimmed
	trims        []tail

	bodies map[string]linePosition
	owners map[string][]string // chats by body
	chats  lineage
}

func (v *verifier) segment(s segmentInfo, first, last bool) error {
	v.r.Segments++
	n := 0
	damage := func(format string, args ...any) error { return &Damage{s.name, n, fmt.Sprintf(format, args...)} }
	if seq := firstSeqOf(s.name); first && seq != 1 {
		v.trimmedStart = &tail{Segment: s.name, Seq: seq}
		v.nextSeq = seq
	} else if seq != v.nextSeq {
		return damage("it must begin with line %d of the journal: a segment is missing", v.nextSeq)
	}
	offset := int64(0)
	rest, err := v.c.lines(s, func(data []byte) error {
		n++
		l, err := parseLine(data)
		if err != nil {
			return damage("%v", err)
		}
		if v.trimmedStart != nil && v.trimmedStart.Prev == "" {
			v.trimmedStart.Prev, v.prev = l.prev, l.prev
		}
		switch {
		case l.seq != v.nextSeq:
			return damage("its number is %d instead of %d", l.seq, v.nextSeq)
		case l.prev != v.prev:
			return damage("its prev is not the hash of the previous line: one of them was changed")
		}
		if again, err := encodeLine(l.event, l.seq, l.prev, l.record); err != nil || !bytes.Equal(again, data) {
			return damage("it is not in canonical form")
		}
		if err := v.checkRecord(l); err != nil {
			return damage("%v", err)
		}
		v.collect(l, data, linePosition{s.name, n})
		v.r.Lines++
		v.lastPrev = v.prev
		v.nextSeq, v.prev = v.nextSeq+1, esrp.HashBytes(data)
		v.lastStart, v.lastLen = offset, int64(len(data))
		offset += int64(len(data)) + 1
		return nil
	})
	if err != nil {
		return err
	}
	if n++; len(rest) > 0 && !last {
		return damage("the last line is incomplete")
	}
	if v.rest = rest; last && offset == 0 {
		v.lastStart, v.lastLen = -1, 0
	}
	return nil
}

// checkRecord checks the content of a record.
func (v *verifier) checkRecord(l line) error {
	switch l.event {
	case Requested:
		req, err := esrp.RequestOf(l.record)
		if err != nil {
			return err
		}
		return req.ValidateStrictly()
	case Completed, Failed:
		res, err := esrp.ResponseOf(l.record)
		if err != nil {
			return err
		}
		return res.ValidateStrictly()
	case Erased, Trimmed:
		return nil
	}
	return fmt.Errorf("unknown event %q", l.event)
}

// collect collects data for checking the bodies and the first line.
func (v *verifier) collect(l line, data []byte, at linePosition) {
	b, err := summarizeLine(data)
	if err != nil {
		return
	}
	chat := v.chats.add(b)
	if l.event == Trimmed {
		seq, _ := l.record.Get("first_seq")
		prev, _ := l.record.Get("first_prev")
		v.trims = append(v.trims, tail{Segment: seq.Text, Prev: prev.Text})
	}
	hashesIn(data, func(hash string) {
		v.bodies[hash] = at
		if owners := v.owners[hash]; len(owners) == 0 || owners[len(owners)-1] != chat {
			v.owners[hash] = append(owners, chat)
		}
	})
}

// checkEnd compares the end of the chain with head, and its beginning with the records of trims.
func (v *verifier) checkEnd(list []segmentInfo, head []byte) error {
	if len(list) == 0 && len(head) == 0 {
		return nil
	}
	if v.trimmedStart != nil {
		known := false
		for _, t := range v.trims {
			known = known || t.Segment == fmt.Sprint(v.trimmedStart.Seq) && t.Prev == v.trimmedStart.Prev
		}
		if !known {
			return &Damage{v.trimmedStart.Segment, 0, "earlier segments are missing, and eca did not remove them"}
		}
	}
	if len(head) == 0 {
		return &Damage{"head", 0, "it is missing, so the end of the journal cannot be verified"}
	}
	m, err := parseTail(head)
	if err != nil {
		return &Damage{"head", 0, err.Error()}
	}
	if len(list) == 0 {
		if m.Seq == 1 {
			return nil
		}
		return &Damage{"head", 0, "all segments are missing"}
	}
	name := list[len(list)-1].name
	switch {
	case m.Seq == v.nextSeq-1 && m.Hash == v.prev && m.Prev == v.lastPrev && m.Segment == name && m.Start == v.lastStart && m.Len == v.lastLen && len(v.rest) == 0:
		return nil
	case m.Seq == v.nextSeq && m.Prev == v.prev && int64(len(v.rest)) <= m.Len && (m.Segment == name || m.Start == 0 && len(v.rest) == 0):
		v.r.Torn, v.r.Unwritten = len(v.rest), m.Seq
		return nil
	case m.Seq >= v.nextSeq:
		return &Damage{name, 0, fmt.Sprintf("the journal ends with line %d instead of %d", v.nextSeq-1, m.Seq)}
	}
	return &Damage{name, 0, "the last line, or head, was changed"}
}

// checkBodies checks the bodies.
func (v *verifier) checkBodies() error {
	for hash, at := range v.bodies {
		_, err := v.c.body(hash)
		switch {
		case err == nil:
			v.r.Bodies++
		case errors.Is(err, ErrNoBody) && !slices.ContainsFunc(v.owners[hash], v.isKept):
			v.r.Erased++
		default:
			return &Damage{at.segment, at.line, fmt.Sprintf("the body %s: %v", hash, err)}
		}
	}
	return nil
}

// isKept reports whether the bodies of a chat must exist. The empty chat is that of responses whose
// requests were trimmed.
func (v *verifier) isKept(chat string) bool { return chat != "" && !v.chats.isErased(chat) }

// CheckEnd checks only the last line, which is fast even for a long journal. It detects that the
// journal was cut, replaced or restored. Its errors are those of Verify.
func (c *Chain) CheckEnd() error {
	var before tail
	for {
		data, err := os.ReadFile(filepath.Join(c.dir, "head"))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		m, err := parseTail(data)
		if err != nil || m.Segment == "" {
			return nil //nolint:nilerr // the next append finds the end by the segments
		}
		damage := c.checkLine(m)
		if damage == nil || m == before {
			return damage
		}
		before = m // another process may have appended in the meantime
	}
}

// checkLine checks that the line that m describes exists, unless it has not been written yet.
func (c *Chain) checkLine(m tail) error {
	f, err := os.Open(filepath.Join(c.dir, m.Segment))
	if err != nil {
		return &Damage{m.Segment, 0, "it is missing"}
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() >= m.Start && info.Size() < m.end():
		return nil
	case info.Size() != m.end():
		return &Damage{m.Segment, 0, fmt.Sprintf("it has %d bytes instead of %d", info.Size(), m.end())}
	}
	line := make([]byte, m.Len)
	if _, err := f.ReadAt(line, m.Start); err != nil {
		return err
	}
	if esrp.HashBytes(line) != m.Hash {
		return &Damage{m.Segment, 0, "its last line was changed"}
	}
	return nil
}

package journal

import (
	"errors"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Erase removes the bodies of a chat and of its subagents that no other chat refers to, and appends a
// line that records the removal. It does nothing if the chat has no bodies.
func (c *Chain) Erase(chatID string, now time.Time) error {
	if err := c.finishPending(now); err != nil {
		return err
	}
	return c.erase(chatID, now)
}

// erase is Erase without first finishing pending work.
func (c *Chain) erase(chatID string, now time.Time) error {
	if names, err := segments(c.dir); err != nil || len(names) == 0 {
		return err
	}
	return c.withLock(func() error {
		own, others, err := c.bodiesOf(chatID)
		if err != nil || len(own) == 0 {
			return err
		}
		last, err := c.findTail()
		if err != nil {
			return err
		}
		// The line is written first, so that no body is ever missing without a record. If the process
		// dies in between, the next Trim removes the remaining bodies.
		if err := os.WriteFile(c.removalMarker(), nil, 0o600); err != nil {
			return err
		}
		if err := c.write(last, Erased, esrp.ObjectValue(
			esrp.Member{Key: "chat", Value: esrp.StringValue(chatID)},
			esrp.Member{Key: "timestamp", Value: esrp.StringValue(esrp.At(now).String())},
		)); err != nil {
			return err
		}
		var errs []error
		for hash := range own {
			if !others[hash] {
				errs = append(errs, removeFile(filepath.Join(c.artifacts, hash)))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return removeFile(c.removalMarker())
	})
}

// removalMarker is the path of a file that exists while bodies are being removed. If a process dies
// during the removal, the next one finishes it.
func (c *Chain) removalMarker() string { return filepath.Join(c.dir, "erasing") }

// bodiesOf returns the hashes of the bodies of a chat and its subagents, and of the bodies of all other
// chats that were not erased.
func (c *Chain) bodiesOf(chatID string) (own, others map[string]bool, err error) {
	byChat, chats, err := c.references()
	if err != nil {
		return nil, nil, err
	}
	own, others = map[string]bool{}, map[string]bool{}
	for chat, hashes := range byChat {
		into := others
		for at := range chats.ancestors(chat) {
			if at == chatID {
				into = own
				break
			}
			if chats.erased[at] {
				into = nil
				break
			}
		}
		if into != nil {
			maps.Copy(into, hashes)
		}
	}
	return own, others, nil
}

// lineage is what the lines say about requests and their chats.
type lineage struct {
	chats   map[string]string // by request
	parents map[string]string // of subagents' chats
	erased  map[string]bool   // chats
}

func newLineage() lineage {
	return lineage{chats: map[string]string{}, parents: map[string]string{}, erased: map[string]bool{}}
}

// add adds a line, and returns the chat that its bodies belong to.
func (l lineage) add(b lineSummary) (chat string) {
	chat = b.Record.Caller.RunID
	switch b.Event {
	case Requested:
		l.chats[b.Record.RequestID] = chat
		if b.Record.Context.Tags.Parent != "" {
			l.parents[chat] = b.Record.Context.Tags.Parent
		}
	case Erased:
		l.erased[b.Record.Chat] = true
	default:
		chat = l.chats[b.Record.RequestID]
	}
	return chat
}

// ancestors yields a chat, its parent, and so on.
func (l lineage) ancestors(chat string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for depth := 0; chat != "" && depth < 100 && yield(chat); depth++ {
			chat = l.parents[chat]
		}
	}
}

// isErased reports whether a chat was erased, either itself or with its parent.
func (l lineage) isErased(chat string) bool {
	for at := range l.ancestors(chat) {
		if l.erased[at] {
			return true
		}
	}
	return false
}

// references returns the hashes of the bodies that lines refer to, by chat.
func (c *Chain) references() (byChat map[string]map[string]bool, chats lineage, err error) {
	list, _, err := c.snapshotLocked()
	if err != nil {
		return nil, chats, err
	}
	byChat, chats = map[string]map[string]bool{}, newLineage()
	for _, s := range list {
		if _, err := c.lines(s, func(data []byte) error {
			b, err := summarizeLine(data)
			if err != nil {
				b = lineSummary{} // the line is damaged, so its bodies belong to no chat and are kept
			}
			chat := chats.add(b)
			if b.Event == Requested {
				delete(chats.erased, chat) // it was created again
			}
			hashesIn(data, func(hash string) {
				if byChat[chat] == nil {
					byChat[chat] = map[string]bool{}
				}
				byChat[chat][hash] = true
			})
			return nil
		}); err != nil {
			return nil, chats, err
		}
	}
	return byChat, chats, nil
}

// Trim removes the oldest segments until the limits are met, and all bodies that no line refers to any
// more. It removes the current segment only if that is the only one and too large. It also finishes
// removals that a killed process began.
func (c *Chain) Trim(l Limits, now time.Time) error {
	if err := c.finishPending(now); err != nil {
		return err
	}
	if names, err := segments(c.dir); err != nil || len(names) == 0 {
		return err
	}
	return c.withLock(func() error {
		c.bytesSinceTrim = 0
		if err := c.removeUnusedSegment(); err != nil {
			return err
		}
		if _, err := os.Stat(c.removalMarker()); err == nil { // finish the removal that a dead process began
			if err := c.removeUnreferencedBodies(); err != nil {
				return err
			}
		}
		if err := c.expire(l.Age, now); err != nil {
			return err
		}
		total, err := c.size()
		for single := false; err == nil && l.Bytes > 0 && total > l.Bytes && !single; {
			var names []string
			if names, err = segments(c.dir); err != nil || len(names) == 0 {
				return err
			}
			single = len(names) == 1
			const share = 8 // remove an eighth of the segments at a time, because each sweep is slow
			for n := range max(1, len(names)/share) {
				if err := c.removeFirstSegment(names[n:]); err != nil {
					return err
				}
			}
			if err = c.removeUnreferencedBodies(); err == nil {
				total, err = c.size()
			}
		}
		return err
	})
}

// removeUnusedSegment removes a last segment that a killed process created but did not write to.
func (c *Chain) removeUnusedSegment() error {
	list, head, err := c.snapshotLocked()
	if err != nil {
		return err
	}
	for _, s := range list[len(withoutUnused(list, head)):] {
		if err := os.Remove(filepath.Join(c.dir, s.name)); err != nil {
			return err
		}
	}
	return nil
}

// expire removes the segments that were sealed longer than age ago.
func (c *Chain) expire(age time.Duration, now time.Time) error {
	dropped := false
	for age > 0 {
		names, err := segments(c.dir)
		if err != nil {
			return err
		}
		if len(names) < 2 {
			break
		}
		info, err := os.Stat(filepath.Join(c.dir, names[0]))
		if err != nil {
			return err
		}
		if now.Sub(info.ModTime()) <= age {
			break
		}
		if err := c.removeFirstSegment(names); err != nil {
			return err
		}
		dropped = true
	}
	if dropped {
		return c.removeUnreferencedBodies()
	}
	return nil
}

// size returns the size of segments and bodies in bytes.
func (c *Chain) size() (total int64, err error) {
	for _, dir := range []string{c.dir, c.artifacts} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return total, err
		}
		for _, e := range entries {
			_, body := hashOf(uriPrefix + e.Name())
			if info, err := e.Info(); err == nil && (body || firstSeqOf(e.Name()) > 0) {
				total += info.Size()
			}
		}
	}
	return total, nil
}

// removeFirstSegment removes the first segment. It first appends a line that records the removal, in a new segment
// if there is only one.
func (c *Chain) removeFirstSegment(names []string) error {
	last, err := c.findTail()
	if err != nil {
		return err
	}
	if err := os.WriteFile(c.removalMarker(), nil, 0o600); err != nil {
		return err
	}
	first, prev := last.Seq+1, last.Hash
	if len(names) > 1 {
		data, err := os.ReadFile(filepath.Join(c.dir, names[0]))
		if err != nil {
			return err
		}
		first, prev = firstSeqOf(names[1]), esrp.HashBytes(lastLine(data))
	} else {
		last.Segment = "" // the next line starts a new segment
	}
	if err := c.write(last, Trimmed, trimRecord(first, prev)); err != nil {
		return err
	}
	return os.Remove(filepath.Join(c.dir, names[0]))
}

// trimRecord returns the record of a removal: the line with which the journal begins after it.
func trimRecord(first uint64, prev string) esrp.Value {
	return esrp.ObjectValue(
		esrp.Member{Key: "first_prev", Value: esrp.StringValue(prev)},
		esrp.Member{Key: "first_seq", Value: esrp.IntValue(int64(first))}, //nolint:gosec // no journal has 2^63 lines
	)
}

// removeUnreferencedBodies removes the bodies that no line refers to. Lines of erased chats do not count.
func (c *Chain) removeUnreferencedBodies() error {
	byChat, chats, err := c.references()
	if err != nil {
		return err
	}
	referenced := map[string]bool{}
	for chat, hashes := range byChat {
		if !chats.isErased(chat) {
			maps.Copy(referenced, hashes)
		}
	}
	entries, err := os.ReadDir(c.artifacts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if _, body := hashOf(uriPrefix + e.Name()); body && !referenced[e.Name()] { // other files do not belong to the journal
			if err := removeFile(filepath.Join(c.artifacts, e.Name())); err != nil {
				return err
			}
		}
	}
	return removeFile(c.removalMarker())
}

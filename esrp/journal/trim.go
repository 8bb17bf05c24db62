package journal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
)

// Erase removes the bodies of a chat, and of those that worked for it, unless others name
// them too, and appends a line that says so. Nothing happens if the chat has none.
func (c *Chain) Erase(chatID string, now time.Time) error {
	if err := c.finishPending(now); err != nil {
		return err
	}
	return c.erase(chatID, now)
}

// erase is Erase without what is pending.
func (c *Chain) erase(chatID string, now time.Time) error {
	if names, err := segments(c.dir); err != nil || len(names) == 0 {
		return err
	}
	return c.alone(func() error {
		mine, others, err := c.owned(chatID)
		if err != nil || len(mine) == 0 {
			return err
		}
		last, err := c.last()
		if err != nil {
			return err
		}
		// The line first: no body is missing without a reason. What a process that dies in
		// between leaves goes with the next Trim.
		if err := c.begin(); err != nil {
			return err
		}
		if err := c.write(last, Erased, esrp.ObjectValue(
			esrp.Member{Key: "chat", Value: esrp.StringValue(chatID)},
			esrp.Member{Key: "timestamp", Value: esrp.StringValue(esrp.At(now).String())},
		)); err != nil {
			return err
		}
		var errs []error
		for hash := range mine {
			if !others[hash] {
				errs = append(errs, c.remove(hash))
			}
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
		return c.done()
	})
}

// unfinished is there while bodies are removed.
const unfinished = "erasing"

// begin notes that bodies are about to be removed.
func (c *Chain) begin() error {
	return os.WriteFile(filepath.Join(c.dir, unfinished), nil, 0o600)
}

// done says that those that had to be are.
func (c *Chain) done() error {
	err := os.Remove(filepath.Join(c.dir, unfinished))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// resume does what a process that died while it removed bodies left to do.
func (c *Chain) resume() error {
	if _, err := os.Stat(filepath.Join(c.dir, unfinished)); err != nil {
		return nil //nolint:nilerr // nothing is left to do
	}
	return c.sweep()
}

// owned returns the bodies of a chat and its subagents, and those of all other chats that
// were not erased.
func (c *Chain) owned(chatID string) (mine, others map[string]bool, err error) {
	byChat, parents, erased, err := c.references()
	if err != nil {
		return nil, nil, err
	}
	mine, others = map[string]bool{}, map[string]bool{}
	for chat, hashes := range byChat {
		into, at := others, chat
		for depth := 0; at != "" && depth < 100; depth++ {
			if at == chatID {
				into = mine
				break
			}
			if erased[at] {
				into = nil
				break
			}
			at = parents[at]
		}
		if into != nil {
			for hash := range hashes {
				into[hash] = true
			}
		}
	}
	return mine, others, nil
}

// references returns the bodies that lines name, by chat.
func (c *Chain) references() (byChat map[string]map[string]bool, parents map[string]string, erased map[string]bool, err error) {
	names, err := segments(c.dir)
	if err != nil {
		return nil, nil, nil, err
	}
	byChat, parents, erased = map[string]map[string]bool{}, map[string]string{}, map[string]bool{}
	chats := map[string]string{} // by request
	for _, name := range names {
		info, err := os.Stat(filepath.Join(c.dir, name))
		if err != nil {
			return nil, nil, nil, err
		}
		if _, err := c.lines(sealed{name, info.Size()}, func(data []byte) error {
			b, err := briefOf(data)
			if err != nil {
				b = brief{} // damaged: what it names stays
			}
			chat := b.Record.Caller.RunID
			switch b.Event {
			case Requested:
				chats[b.Record.RequestID] = chat
				delete(erased, chat) // it was made again
				if b.Record.Context.Tags.Parent != "" {
					parents[chat] = b.Record.Context.Tags.Parent
				}
			case Erased:
				erased[b.Record.Chat] = true
			default:
				chat = chats[b.Record.RequestID]
			}
			hashesIn(data, func(hash string) {
				if byChat[chat] == nil {
					byChat[chat] = map[string]bool{}
				}
				byChat[chat][hash] = true
			})
			return nil
		}); err != nil {
			return nil, nil, nil, err
		}
	}
	return byChat, parents, erased, nil
}

// Trim removes the oldest segments until the limits hold, the one that is written only if it is
// the last and too large, and all bodies that no line names any more. It also ends what a
// killed process began to remove.
func (c *Chain) Trim(l Limits, now time.Time) error {
	if err := c.finishPending(now); err != nil {
		return err
	}
	if names, err := segments(c.dir); err != nil || len(names) == 0 {
		return err
	}
	return c.alone(func() error {
		c.added = 0
		if err := c.tidy(); err != nil {
			return err
		}
		if err := c.resume(); err != nil {
			return err
		}
		if err := c.expire(l.Age, now); err != nil {
			return err
		}
		total, err := c.size()
		for alone := false; err == nil && l.Bytes > 0 && total > l.Bytes && !alone; {
			var names []string
			if names, err = segments(c.dir); err != nil || len(names) == 0 {
				return err
			}
			alone = len(names) == 1 // what is left is one segment, and too much
			const share = 8         // of the segments goes at once: looking for what they named alone is slow
			for n := range max(1, len(names)/share) {
				if err := c.drop(names[n:]); err != nil {
					return err
				}
			}
			if err = c.sweep(); err == nil {
				total, err = c.size()
			}
		}
		return err
	})
}

// tidy removes a last segment that a killed process made and did not come to use: the end of
// the chain is in the one before.
func (c *Chain) tidy() error {
	list, head, err := c.look()
	if err != nil {
		return err
	}
	for _, s := range list[len(begun(list, head)):] {
		if err := os.Remove(filepath.Join(c.dir, s.name)); err != nil {
			return err
		}
	}
	return nil
}

// expire removes the segments that were sealed longer ago than age.
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
		if err := c.drop(names); err != nil {
			return err
		}
		dropped = true
	}
	if dropped {
		return c.sweep()
	}
	return nil
}

// size returns how many bytes segments and bodies have.
func (c *Chain) size() (total int64, err error) {
	for _, dir := range []string{c.dir, c.artifacts} {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return total, err
		}
		for _, e := range entries {
			_, body := hashOf(uriPrefix + e.Name())
			if info, err := e.Info(); err == nil && (body || firstOf(e.Name()) > 0) {
				total += info.Size()
			}
		}
	}
	return total, nil
}

// drop removes the first segment. That is on record before it happens; of a single segment, in
// a new one.
func (c *Chain) drop(names []string) error {
	last, err := c.last()
	if err != nil {
		return err
	}
	if err := c.begin(); err != nil {
		return err
	}
	first, prev := last.Seq+1, last.Hash
	if len(names) > 1 {
		data, err := os.ReadFile(filepath.Join(c.dir, names[0]))
		if err != nil {
			return err
		}
		first, prev = firstOf(names[1]), esrp.HashBytes(lastLine(data))
	} else {
		last.Segment = "" // which has the next one begin
	}
	if err := c.write(last, Trimmed, trimmed(first, prev)); err != nil {
		return err
	}
	return os.Remove(filepath.Join(c.dir, names[0]))
}

// trimmed says with which line the journal begins from now on.
func trimmed(first uint64, prev string) esrp.Value {
	return esrp.ObjectValue(
		esrp.Member{Key: "first_prev", Value: esrp.StringValue(prev)},
		esrp.Member{Key: "first_seq", Value: esrp.IntValue(int64(first))}, //nolint:gosec // no journal has 2^63 lines
	)
}

// sweep removes the bodies that no line names of a chat that was not erased.
func (c *Chain) sweep() error {
	byChat, parents, erased, err := c.references()
	if err != nil {
		return err
	}
	named := map[string]bool{}
	for chat, hashes := range byChat {
		gone := false
		for at, depth := chat, 0; at != "" && depth < 100; depth++ {
			gone = gone || erased[at]
			at = parents[at]
		}
		for hash := range hashes {
			named[hash] = named[hash] || !gone
		}
	}
	entries, err := os.ReadDir(c.artifacts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		if _, body := hashOf(uriPrefix + e.Name()); body && !named[e.Name()] { // the rest is not ours
			if err := c.remove(e.Name()); err != nil {
				return err
			}
		}
	}
	return c.done()
}

func (c *Chain) remove(hash string) error {
	err := os.Remove(filepath.Join(c.artifacts, hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

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
		// The line first: a process that dies in between leaves too much, which the next
		// trim removes, and no body that is missing without a reason.
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
		return errors.Join(errs...)
	})
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
// the last and too large, and
// all bodies that no line names any more.
func (c *Chain) Trim(l Limits, now time.Time) error {
	if names, err := segments(c.dir); err != nil || len(names) == 0 {
		return err
	}
	return c.alone(func() error {
		c.added = 0
		for alone := false; ; {
			names, err := segments(c.dir)
			if err != nil || len(names) == 0 {
				return err
			}
			total, err := c.sweep()
			if err != nil {
				return err
			}
			info, err := os.Stat(filepath.Join(c.dir, names[0]))
			if err != nil {
				return err
			}
			over := l.Bytes > 0 && total > l.Bytes
			old := l.Age > 0 && now.Sub(info.ModTime()) > l.Age
			switch {
			case len(names) > 1 && (old || over):
			case len(names) == 1 && over && !alone: // what is left is one segment, and too much
				alone = true
			default:
				return nil
			}
			if err := c.drop(names); err != nil {
				return err
			}
		}
	})
}

// drop removes the first segment. That is on record before it happens; of a single segment, in
// a new one.
func (c *Chain) drop(names []string) error {
	last, err := c.last()
	if err != nil {
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

// sweep removes the bodies that no line of a chat names which was not erased, and returns the
// bytes of what is left.
func (c *Chain) sweep() (total int64, err error) {
	byChat, parents, erased, err := c.references()
	if err != nil {
		return 0, err
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
	names, err := segments(c.dir)
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(c.dir, name)); err == nil {
			total += info.Size()
		}
	}
	entries, err := os.ReadDir(c.artifacts)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return total, err
	}
	for _, e := range entries {
		if _, body := hashOf(uriPrefix + e.Name()); !body {
			continue // not ours
		}
		if !named[e.Name()] {
			if err := c.remove(e.Name()); err != nil {
				return total, err
			}
		} else if info, err := e.Info(); err == nil {
			total += info.Size()
		}
	}
	return total, nil
}

func (c *Chain) remove(hash string) error {
	err := os.Remove(filepath.Join(c.artifacts, hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

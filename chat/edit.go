package chat

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// Edits change a chat besides its turns. Each returns the number of the event up to
// which a reader has seen its effect.

// edit runs change on the session's goroutine, with the right to append and with the
// log up to date.
func edit(s *Session, change func() error) *Pending[event.Seq] {
	return command(s, func() (event.Seq, error) {
		if err := s.acquire(); err != nil {
			return 0, err
		}
		defer s.lease.release()
		if err := s.refresh(); err != nil {
			return 0, err
		}
		s.log.Flush()
		if err := change(); err != nil {
			return 0, err
		}
		s.syncLater()
		return s.log.Next(), nil
	})
}

// Rollback says what to take back, from a message on.
type Rollback struct {
	ContentID string // names the message
	Messages  bool   // remove it and what follows
	Files     bool   // restore the files that tools changed since
}

// Rollback takes back what happened from a message on; a turn that runs is stopped
// first. If the message does not exist, nothing changes. Files that were changed by
// somebody else since stay as they are, and the user sees a message.
func (s *Session) Rollback(r Rollback) *Pending[event.Seq] {
	return edit(s, func() error {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, r.ContentID, false)
		if err != nil || !found {
			return err
		}
		ended := s.endTurn(errStopped)
		var problems []string
		if r.Files {
			changes, err := s.fileChanges(s.ctx, at.Anchor)
			if err != nil {
				return err
			}
			problems = s.eng.deps.Files.Rollback(s.ctx, changes)
		}
		if r.Messages {
			if err := s.truncateTurn(at.Anchor, r.ContentID, ended); err != nil {
				return err
			}
		}
		if len(problems) > 0 {
			s.log.Append("", event.Notice{Text: "\nNot restored:\n- " + strings.Join(problems, "\n- ") + "\n"})
		}
		return nil
	})
}

// truncate removes the messages from an event on.
func (s *Session) truncate(from event.Seq, name string) error {
	s.closeDialog()
	s.history = nil
	return s.log.Cut(from, event.Truncated{ContentID: name})
}

// truncateTurn removes the messages from an event on, and with them the end of the turn that was stopped for
// that, if there was one. Clients that follow the turn wait for its end, so it is recorded again.
func (s *Session) truncateTurn(from event.Seq, name, stopped string) error {
	if err := s.truncate(from, name); err != nil {
		return err
	}
	if stopped != "" {
		s.log.Append(stopped, event.TurnFinished{Reason: event.FinishedStopped})
	}
	return nil
}

// Clear removes all messages; a turn that runs is stopped first.
func (s *Session) Clear() *Pending[event.Seq] {
	return edit(s, func() error {
		if s.log.Next() == 1 {
			return nil
		}
		return s.truncateTurn(1, "", s.endTurn(errStopped))
	})
}

// AddFlag adds a flag after the last message with a name, if there is one.
func (s *Session) AddFlag(name, text string) *Pending[event.Seq] {
	return edit(s, func() error {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, name, true)
		if err != nil || !found {
			return err
		}
		s.log.Append("", event.Flag{ContentID: s.eng.deps.NewID(), Text: text, After: at.Anchor})
		return nil
	})
}

// RemoveFlag removes a flag by its own name.
func (s *Session) RemoveFlag(name string) *Pending[event.Seq] {
	return edit(s, func() error {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, name, true)
		if err != nil || !found || at.Anchor == at.Seq {
			return err
		}
		return s.eng.deps.Store.RemoveFlag(s.ctx, s.id, at.Seq)
	})
}

// Rename gives the chat a title of the user's; the model does not change it any more.
func (s *Session) Rename(title string) *Pending[event.Seq] {
	title = oneLine(title, titleLength)
	return edit(s, func() error {
		if title == "" || s.log.Next() == 1 {
			return nil
		}
		s.log.SetMeta(func(m *Meta) { m.Title, m.Named = title, true })
		s.log.Append("", event.TitleChanged{Title: title})
		return nil
	})
}

// Change changes what the chat uses: model, agent, variant, auto-approve. It holds from
// now on, also for a running turn where it reads it again.
func (s *Session) Change(change func(*Meta)) *Pending[event.Seq] {
	return command(s, func() (event.Seq, error) {
		err := s.log.Change(change)
		return s.FlushedSeq(), err
	})
}

// Refresh brings the chat up to what is stored: another process may have gone on with
// it.
func (s *Session) Refresh() *Pending[event.Seq] {
	return command(s, func() (event.Seq, error) {
		if s.turn != nil {
			return s.log.Next(), nil // nobody else can have
		}
		err := s.refresh()
		return s.log.Next(), err
	})
}

// Fork is a copy of a chat.
type Fork struct {
	ID    string
	Title string
}

// Fork copies the chat up to and with the message of a name to a new one; an empty
// name copies all but a turn that runs. It returns nil if the message does not exist.
func (s *Session) Fork(name string) *Pending[*Fork] {
	var fork *Fork
	done := edit(s, func() (err error) {
		fork, err = s.fork(name)
		return err
	})
	return command(s, func() (*Fork, error) {
		_, err := done.Wait(s.ctx)
		return fork, err
	})
}

// Announce tells of a fork of the chat: faces show it.
func (s *Session) Announce(f Fork) *Pending[event.Seq] {
	return edit(s, func() error {
		s.log.Append("", event.Notice{Text: "\nChat forked to: " + f.Title + "\n", Chat: f.ID})
		return nil
	})
}

func (s *Session) fork(name string) (*Fork, error) {
	end := event.Seq(lastSeq)
	if name != "" {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, name, true)
		if err != nil || !found {
			return nil, err
		}
		next, err := s.eng.deps.Store.Window(s.ctx, s.id, Window{After: &at, Limit: 1, Forward: true})
		if err != nil {
			return nil, err
		}
		end = next.From
	} else if s.turn != nil {
		end = s.turn.firstSeq
	}
	meta := s.log.Meta()
	title, err := s.eng.forkTitle(s.ctx, meta.Title)
	if err != nil {
		return nil, err
	}
	copied := meta
	copied.ID, copied.Title, copied.Named = s.eng.deps.NewID(), title, true
	copied.Created = s.eng.deps.Now().UTC()
	copied.Updated = copied.Created
	if err := s.eng.deps.Store.Copy(s.ctx, s.id, copied, end, 0); err != nil {
		return nil, err
	}
	if err := s.eng.endCopy(s.ctx, copied.ID); err != nil {
		return nil, err
	}
	return &Fork{copied.ID, title}, nil
}

// endCopy ends the turn that a copy was cut out of: a turn without an end is taken for one
// whose process died.
func (e *Engine) endCopy(ctx context.Context, id string) error {
	h, turn, last := history.New(), "", event.Seq(0)
	err := eventlog.Each(ctx, e.deps.Store, id, 1, func(ev event.Event) {
		h.Add(ev.Body)
		last = ev.Seq
		switch ev.Body.(type) {
		case event.UserMessage, event.TurnStarted:
			turn = ev.Turn
		case event.TurnFinished:
			turn = ""
		default:
		}
	})
	if err != nil || turn == "" {
		return err
	}
	var bodies []event.Body
	for _, call := range h.OpenCalls() {
		bodies = append(bodies, h.Reject(call, event.Interrupted))
	}
	var events []event.Event
	for _, b := range append(bodies, event.TurnFinished{Reason: event.FinishedDone}) {
		last++
		events = append(events, event.Event{Seq: last, Turn: turn, Time: e.deps.Now().UTC(), Body: b})
	}
	return e.deps.Store.Extend(ctx, id, events)
}

// forkTitle numbers a title: X (2), X (3) and so on.
func (e *Engine) forkTitle(ctx context.Context, title string) (string, error) {
	if title == "" {
		title = "Untitled"
	}
	if i := strings.LastIndex(title, " ("); i > 0 && strings.HasSuffix(title, ")") && strings.Trim(title[i+2:len(title)-1], "0123456789") == "" {
		title = title[:i]
	}
	list, err := e.deps.Store.List(ctx, e.deps.Current().Roots, ByUpdated, 0)
	if err != nil {
		return "", err
	}
	taken := map[string]bool{}
	for _, c := range list {
		taken[c.Title] = true
	}
	for n := 2; ; n++ {
		if t := fmt.Sprintf("%s (%d)", title, n); !taken[t] {
			return t, nil
		}
	}
}

// Adopt replaces the chat's messages by a copy of another chat's, and takes over its
// title and what it uses. The other chat stays as it is.
func (s *Session) Adopt(ctx context.Context, id string) *Pending[event.Seq] {
	return edit(s, func() error {
		other, last, found, err := s.eng.deps.Store.Meta(ctx, id)
		if err != nil {
			return err
		}
		if !found || id == s.id {
			return fmt.Errorf("there is no other chat %s", id)
		}
		s.history = nil
		return s.log.Adopt(id, last+1, event.Truncated{}, func(m *Meta) {
			m.Title, m.Named, m.Model, m.Agent, m.Variant = other.Title, other.Named, other.Model, other.Agent, other.Variant
		})
	})
}

package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
	"github.com/seed-dec29ce4/eca/chat/history"
)

// Edits change a chat outside its turns. Each returns a sequence number: a reader that has reached
// it has seen the edit.

// edit runs change on the session's goroutine, with the lease acquired and the log refreshed.
func edit(s *Session, change func() error) *Pending[event.Seq] {
	return enqueue(s, func() (event.Seq, error) {
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

// Rollback describes what to undo, from a message on.
type Rollback struct {
	ContentID string // id of the message
	Messages  bool   // remove the message and all that follow
	Files     bool   // restore the files that tools have changed since
}

// Rollback undoes messages and changes to files from a message on. It stops a running turn first. If
// the message does not exist, nothing changes. Files that another program has changed since stay as
// they are, and the user gets a notice.
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

// truncate removes the messages that begin at or after from. contentID is the id of the first one; empty
// means all messages.
func (s *Session) truncate(from event.Seq, contentID string) error {
	s.closeDialog()
	s.history = nil
	return s.log.Cut(from, event.Truncated{ContentID: contentID})
}

// truncateTurn is like truncate, for callers that may have stopped a running turn before; stoppedTurn
// is its id, or empty. Truncation removes the end of that turn, so truncateTurn appends it again for
// the clients that wait for it.
func (s *Session) truncateTurn(from event.Seq, contentID, stoppedTurn string) error {
	if err := s.truncate(from, contentID); err != nil {
		return err
	}
	if stoppedTurn != "" {
		s.log.Append(stoppedTurn, event.TurnFinished{Reason: event.FinishedStopped})
	}
	return nil
}

// Clear removes all messages. It stops a running turn first.
func (s *Session) Clear() *Pending[event.Seq] {
	return edit(s, func() error {
		if s.log.Next() == 1 {
			return nil
		}
		return s.truncateTurn(1, "", s.endTurn(errStopped))
	})
}

// AddFlag adds a flag after the last message with the given id; it does nothing if the message does
// not exist.
func (s *Session) AddFlag(contentID, text string) *Pending[event.Seq] {
	return edit(s, func() error {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, contentID, true)
		if err != nil || !found {
			return err
		}
		s.log.Append("", event.Flag{ContentID: s.eng.deps.NewID(), Text: text, After: at.Anchor})
		return nil
	})
}

// RemoveFlag removes the flag with the given id, if it exists.
func (s *Session) RemoveFlag(contentID string) *Pending[event.Seq] {
	return edit(s, func() error {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, contentID, true)
		if err != nil || !found || at.Anchor == at.Seq { // not a flag
			return err
		}
		return s.eng.deps.Store.RemoveFlag(s.ctx, s.id, at.Seq)
	})
}

// Rename sets the title of the chat. From then on, no title is generated.
func (s *Session) Rename(title string) *Pending[event.Seq] {
	title = oneLine(title, titleLength)
	return edit(s, func() error {
		if title == "" || s.log.Next() == 1 {
			return nil
		}
		if s.log.Unsaved() { // edit has tried to store everything
			return errors.New("the chat cannot be saved at the moment, so it keeps its title")
		}
		if err := s.log.Change(func(m *Meta) { m.Title, m.Named = title, true }); err != nil {
			return err
		}
		s.log.Append("", event.TitleChanged{Title: title})
		return nil
	})
}

// Change changes the settings of the chat: model, agent, variant, auto-approve. A running turn applies
// the new variant and auto-approve; its model and agent stay the same.
func (s *Session) Change(change func(*Meta)) *Pending[event.Seq] {
	return enqueue(s, func() (event.Seq, error) {
		err := s.log.Change(change)
		return s.FlushedSeq(), err
	})
}

// Refresh picks up changes that another process has made to the chat.
func (s *Session) Refresh() *Pending[event.Seq] {
	return enqueue(s, func() (event.Seq, error) {
		if s.turn != nil {
			return s.log.Next(), nil // this process has locked the chat
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

// Fork copies the chat, up to and including the message with the given id, to a new chat. With an
// empty id it copies everything except a running turn. It returns nil if the message does not exist.
func (s *Session) Fork(contentID string) *Pending[*Fork] {
	var fork *Fork
	done := edit(s, func() (err error) {
		fork, err = s.fork(contentID)
		return err
	})
	return enqueue(s, func() (*Fork, error) {
		_, err := done.Wait(s.ctx)
		return fork, err
	})
}

// Announce appends a notice about a fork of the chat, which makes clients show the fork.
func (s *Session) Announce(f Fork) *Pending[event.Seq] {
	return edit(s, func() error {
		s.log.Append("", event.Notice{Text: "\nChat forked to: " + f.Title + "\n", Chat: f.ID})
		return nil
	})
}

func (s *Session) fork(contentID string) (*Fork, error) {
	end := event.Seq(lastSeq)
	if contentID != "" {
		at, found, err := s.eng.deps.Store.Find(s.ctx, s.id, contentID, true)
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
	title, err := s.eng.DisplayTitle(s.ctx, s.id, meta.Title)
	if err != nil {
		return nil, err
	}
	if title, err = s.eng.forkTitle(s.ctx, title); err != nil {
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

// endCopy ends the last turn of a copy if its end was not copied. Otherwise that turn would be treated
// as one whose process died.
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

// forkTitle returns a title that no chat of the workspace has: X (2), X (3) and so on.
func (e *Engine) forkTitle(ctx context.Context, title string) (string, error) {
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

// Adopt replaces the chat's messages, title and settings with copies of another chat's. The other
// chat is not changed.
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

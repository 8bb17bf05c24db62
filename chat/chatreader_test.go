package chat

import (
	"context"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/eventlog"
)

// chattyStore is a store that calls a function during its first write.
type chattyStore struct {
	eventlog.Store
	duringWrite func()
}

func (s *chattyStore) Append(context.Context, eventlog.Meta, []event.Event) error {
	if f := s.duringWrite; f != nil {
		s.duringWrite = nil
		f()
	}
	return nil
}

// Extend stores the end of the log.
func (*chattyStore) Extend(context.Context, string, []event.Event) error { return nil }

// If a text begins while another text is stored, FlushedSeq does not include the new one, because it
// can still grow.
func TestFlushedSeq(t *testing.T) {
	store := &chattyStore{}
	l := eventlog.New(store, eventlog.Meta{ID: "c"}, 0, false, time.Now, nil)
	defer l.Close()
	store.duringWrite = func() { l.Append("t", event.TextDelta{Text: "second"}) }
	l.Append("t", event.TextDelta{Text: "first"})
	r := chatReader{log: l}
	if flushed := r.FlushedSeq(); flushed != 2 || r.Next() != 3 {
		t.Errorf("FlushedSeq is %d, want 2; Next is %d, want 3", flushed, r.Next())
	}
}

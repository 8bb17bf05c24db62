package chat

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// singleChatStore is a store with one chat, or with an error.
type singleChatStore struct {
	Store
	id  string
	err error
}

func (m singleChatStore) Meta(_ context.Context, id string) (Meta, event.Seq, bool, error) {
	return Meta{ID: id}, 1, id == m.id && m.err == nil, m.err
}

// A store that cannot be read does not report that a chat does not exist.
func TestKnown(t *testing.T) {
	away := errors.New("the disk is away")
	for name, c := range map[string]struct {
		store singleChatStore
		id    string
		known bool
	}{
		"there":      {singleChatStore{id: "a"}, "a", true},
		"not there":  {singleChatStore{id: "a"}, "b", false},
		"unreadable": {singleChatStore{err: away}, "a", false},
	} {
		e := New(Deps{Store: c.store, Log: slog.New(slog.DiscardHandler)})
		known, err := e.Exists(t.Context(), c.id)
		if known != c.known || !errors.Is(err, c.store.err) {
			t.Errorf("%s: %v %v", name, known, err)
		}
		if c.known {
			continue // it would be opened
		}
		if _, ok, err := e.OpenExisting(t.Context(), c.id); ok || !errors.Is(err, c.store.err) {
			t.Errorf("%s: %v %v", name, ok, err)
		}
	}
}

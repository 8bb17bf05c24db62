package server

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Monitor lets developers see how far a server has shown its chats. Pass it in Options; the zero
// value is ready to use.
type Monitor struct{ server atomic.Pointer[Server] }

// ViewState is how far a chat has been shown to the client.
type ViewState struct {
	ChatID   string
	Position event.Seq // the next event to show
	Next     event.Seq // the next event that will be appended to the chat
	Ended    bool      // the view shows nothing more
}

// Lag is the number of events that have not been shown.
func (v ViewState) Lag() int64 { return max(0, int64(v.Next)-int64(v.Position)) }

// Views lists the chats that the client is shown, sorted by id.
func (m *Monitor) Views() []ViewState {
	s := m.server.Load()
	if s == nil {
		return nil
	}
	s.mu.Lock()
	views := slices.Collect(maps.Values(s.views))
	s.mu.Unlock()
	var out []ViewState
	for _, v := range views {
		out = append(out, ViewState{ChatID: v.chatID, Position: event.Seq(v.position.Load()), Next: v.session.Next(), Ended: v.hasEnded()})
	}
	slices.SortFunc(out, func(a, b ViewState) int { return cmp.Compare(a.ChatID, b.ChatID) })
	return out
}

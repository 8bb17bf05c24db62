package server

import (
	"cmp"
	"slices"
	"sync/atomic"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// Monitor shows developers which events a server has shown to its client. Pass it in Options; the
// zero value is ready to use.
type Monitor struct{ views atomic.Pointer[views] }

// ViewState describes which events of a chat have been shown to the client.
type ViewState struct {
	ChatID   string
	Position event.Seq // the next event to show
	Next     event.Seq // the next event that will be appended to the chat
	Ended    bool      // the view has ended and shows no more events
}

// Lag is the number of events that have not been shown.
func (v ViewState) Lag() int64 { return max(0, int64(v.Next)-int64(v.Position)) }

// Views lists the chats that the client is shown, sorted by id.
func (m *Monitor) Views() []ViewState {
	shown := m.views.Load()
	if shown == nil {
		return nil
	}
	var out []ViewState
	for _, v := range shown.all() {
		out = append(out, ViewState{ChatID: v.chatID, Position: event.Seq(v.position.Load()), Next: v.session.Next(), Ended: v.hasEnded()})
	}
	slices.SortStableFunc(out, func(a, b ViewState) int { return cmp.Compare(a.ChatID, b.ChatID) })
	return out
}

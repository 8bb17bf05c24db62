package server

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// views holds the views of the chats that the client shows.
type views struct {
	*connection
	host Host

	mu        sync.Mutex // guards the fields below
	list      map[string]*view
	deletions map[string]chan struct{} // by chat; closed when chat/deleted is queued
}

// get returns the view of a session. It starts one if necessary.
func (vs *views) get(session *chat.Session) *view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if v, ok := vs.list[session.ID()]; ok && v.session == session && !v.hasEnded() {
		return v
	}
	v := &view{
		views: vs, chatID: session.ID(), session: session, done: make(chan struct{}), requests: map[string]*promptRequest{}, children: map[string]*childView{},
		reader: session.Read(session.Next()), title: session.Meta().Title, wake: func() {}, questionSlot: make(chan struct{}, 1),
		phase: rand.N(time.Minute),
	}
	v.position.Store(uint64(v.reader.Position()))
	v.renderer = vs.newRenderer(session)
	vs.list[v.chatID] = v
	go v.run(vs.ctx)
	return v
}

// viewOf returns the view of a chat. ok is false if the client does not show the chat.
func (vs *views) viewOf(id string) (v *view, ok bool) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	v, ok = vs.list[id]
	return v, ok
}

// all returns the current views.
func (vs *views) all() []*view {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return slices.Collect(maps.Values(vs.list))
}

// newRenderer returns a renderer of a chat for the connected client.
func (vs *views) newRenderer(session *chat.Session) *renderer {
	r := newRenderer(session.ID(), vs.host.Config())
	r.client = vs.client()
	r.startedElsewhere = func(turn string) bool { return !session.BeganHere(turn) }
	return r
}

// selection returns the settings of a chat (eca-protocol.md 4.8). A model that no longer exists is
// null.
func (vs *views) selection(meta chat.Meta) protocol.Selection {
	out := protocol.Selection{Agent: vs.host.Config().AgentOrDefault(meta.Agent), Variants: []string{}, Trust: meta.Trust}
	if meta.Variant != "" {
		out.Variant = &meta.Variant
	}
	if variants, ok := vs.host.Variants(meta.Model); ok {
		out.Model, out.Variants = &meta.Model, variants
	}
	return out
}

// showFork shows a chat that was forked from another.
func (vs *views) showFork(ctx context.Context, id string) error {
	session, _, err := vs.host.Engine().Open(ctx, id)
	if err != nil {
		return err
	}
	v, meta := vs.get(session), session.Meta()
	span, err := session.Window(ctx, chat.Window{})
	if err != nil {
		return err
	}
	return v.runAfter(ctx, 0, func(ctx context.Context) error {
		vs.notify(ctx, "chat/opened", protocol.ChatOpened{ChatID: id, Title: meta.Title})
		if err := v.replay(ctx, span); err != nil {
			vs.log.Error("cannot show a fork", "chat", id, "err", err)
		}
		v.showTitle(ctx, meta)
		return nil
	})
}

// beginDelete makes prompts for the chat wait until endDelete. It returns a channel that closes
// when the chat's view has shown its end, or nil if the chat has no view.
func (vs *views) beginDelete(id string) (shown <-chan struct{}) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if vs.deletions[id] == nil {
		vs.deletions[id] = make(chan struct{})
	}
	if v, ok := vs.list[id]; ok {
		delete(vs.list, id)
		return v.done
	}
	return nil
}

func (vs *views) endDelete(id string) {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	if ch := vs.deletions[id]; ch != nil {
		delete(vs.deletions, id)
		close(ch)
	}
}

// deletion returns a channel that is closed when the deletion of a chat is complete. It returns nil
// if the chat is not being deleted.
func (vs *views) deletion(id string) <-chan struct{} {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	return vs.deletions[id]
}

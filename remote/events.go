package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

const (
	maxStreams     = 64 // of all devices
	maxOwnStreams  = 4  // of one device over HTTP/1.1, where browsers allow six connections
	maxListedChats = 200
	maxReplays     = 4 // at the same time
	// recentPeriod is how long a page keeps the messages of a chat that it has loaded.
	recentPeriod = 6 * time.Minute
)

// serveEvents answers GET events with a stream.
func (f *Face) serveEvents(w http.ResponseWriter, r *http.Request, dev Device) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(f.ctx, cancel)()
	id := cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("after"))
	resumed := f.resumable(ctx, parseID(id))
	s := f.newStream(ctx, dev, r.ProtoMajor == 1, id != "", resumed)
	defer s.link.end()
	f.addStream(s)
	defer f.removeStream(s)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-store")
	h.Set("X-Accel-Buffering", "no")
	s.write(w)
	s.end()
}

// resumable returns those positions of a list at which a stream can continue.
func (f *Face) resumable(ctx context.Context, list []chatPosition) []chatPosition {
	return slices.DeleteFunc(list, func(p chatPosition) bool {
		if chat.IsSubagent(p.chat) {
			return false // its parent's position counts
		}
		session, ok, err := f.opts.Engine.OpenExisting(ctx, p.chat)
		if err != nil || !ok || session.Meta().Created.UnixMilli() != p.created {
			return true
		}
		if _, err := session.Refresh().Wait(ctx); err != nil {
			return true
		}
		return event.Seq(p.Seq) > session.FlushedSeq()
	})
}

// createdMillis returns when a chat that is shown was created; see chatPosition.
func (s *stream) createdMillis(chatID string) int64 {
	session, ok := s.f.opts.Engine.Lookup(chatID)
	if !ok {
		return 0
	}
	return session.Meta().Created.UnixMilli()
}

// possiblyOutdated lists the chats of which a page may show an older state: those that are running or
// have changed recently, except for the resumed ones.
func (f *Face) possiblyOutdated(ctx context.Context, resumed []chatPosition) []chat.Summary {
	return slices.DeleteFunc(f.listed(ctx), func(c chat.Summary) bool {
		return !c.Running && f.opts.Now().Sub(c.Updated) > recentPeriod || slices.ContainsFunc(resumed, func(p chatPosition) bool { return p.chat == c.ID })
	})
}

// delayChats delays chats that are running, or that may be outdated in the page, so that the page can
// load them first.
func (s *stream) delayChats(resumed []chatPosition) {
	outdated := s.f.possiblyOutdated(s.ctx, resumed)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range s.f.opts.Engine.Sessions() {
		if session.Running() && !chat.IsSubagent(session.ID()) && !s.followed[session.ID()] {
			s.delayed[session.ID()] = true
		}
	}
	for _, c := range outdated {
		if !s.followed[c.ID] {
			s.delayed[c.ID] = true
		}
	}
}

// greeting returns the first event of a stream: the state outside chats. Events about chats follow
// later, because a page that has not loaded a chat yet may switch to the chat of such an event.
func (f *Face) greeting(ctx context.Context, dev Device, resuming bool, resumed []chatPosition) frame {
	more := map[string]any{}
	if resuming {
		chats := []string{}
		for _, p := range resumed {
			chats = append(chats, p.chat)
		}
		more["resumed"], more["resumedChats"] = len(chats) > 0, chats
	}
	return frame{event: "session:connected", data: encode(f.session(ctx, dev, more))}
}

// listed returns the chats of the workspace that pages list, the last used one at the end.
func (f *Face) listed(ctx context.Context) []chat.Summary {
	list, err := f.opts.Engine.List(ctx, chat.ByUpdated, 0)
	if err != nil {
		f.opts.Log.Warn("remote: the chats cannot be listed", "err", err)
	}
	n := 0
	list = slices.DeleteFunc(list, func(c chat.Summary) bool {
		n++
		return n > maxListedChats && !c.Running
	})
	slices.Reverse(list)
	return list
}

// summaries returns the list of chats.
func (f *Face) summaries(ctx context.Context) []any {
	out := []any{}
	for _, c := range f.listed(ctx) {
		pending := 0
		if session, ok := f.opts.Engine.Lookup(c.ID); ok && c.Running {
			pending, _ = session.PendingApprovals().Wait(ctx)
		}
		out = append(out, map[string]any{
			"id": c.ID, "title": cmp.Or(c.Title, untitled), "status": simpleStatus(c.Running),
			"createdAt": c.Created.UnixMilli(), "updatedAt": c.Updated.UnixMilli(), "pendingApprovalCount": pending,
		})
	}
	return out
}

// session returns the state outside chats, with the members of more added.
func (f *Face) session(ctx context.Context, dev Device, more map[string]any) map[string]any {
	cfg, servers := f.hub.state()
	describeModels := func(list []string) []any {
		out := []any{}
		for _, id := range list {
			provider, name := "", id
			if i := slices.Index([]byte(id), '/'); i >= 0 {
				provider, name = id[:i], id[i+1:]
			}
			out = append(out, map[string]string{"id": id, "name": name, "provider": provider})
		}
		return out
	}
	agents := []any{}
	for _, name := range cfg.Agents {
		agents = append(agents, map[string]string{"id": name, "name": name, "description": f.opts.Config().Agents[name].Description})
	}
	variant := cfg.SelectVariant
	if variant == nil {
		variant = json.RawMessage("null")
	}
	out := map[string]any{
		"version": f.opts.Version, "protocolVersion": "1.0", "workspaceFolders": f.opts.Roots(),
		"models": describeModels(cfg.Models), "agents": agents, "mcpServers": append([]json.RawMessage{}, servers...), "chats": f.summaries(ctx),
		"startedAt": f.started.UTC().Format(time.RFC3339), "welcomeMessage": cfg.WelcomeMessage,
		"selectModel": cfg.SelectModel, "selectAgent": cfg.SelectAgent, "variants": append([]string{}, cfg.Variants...),
		"selectedVariant": variant, "trust": f.trusts(dev.ID), "rights": dev.Rights.String(),
	}
	for key, value := range more {
		out[key] = value
	}
	return out
}

// growPeriod returns the time between two pieces of a growing text in a stream. It increases with the
// number of streams, so that they do not slow down the editor.
func (f *Face) growPeriod() time.Duration {
	const shortest, perStream = 50 * time.Millisecond, 5 * time.Millisecond
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(shortest, time.Duration(len(f.streams))*perStream)
}

// addStream adds a stream, and ends the oldest ones if there are too many.
func (f *Face) addStream(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams = append(f.streams, s)
	own := 0
	for _, o := range slices.Backward(f.streams) {
		if o.device.ID == s.device.ID && o.http1 {
			if own++; own > maxOwnStreams {
				o.close("Too many pages are open; this one is disconnected.")
			}
		}
	}
	if len(f.streams) > maxStreams {
		f.streams[0].close("Too many pages are open; this one is disconnected.")
	}
}

func (f *Face) removeStream(s *stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.streams = slices.DeleteFunc(f.streams, func(o *stream) bool { return o == s })
}

// streamsOf lists the streams of a device, the oldest first.
func (f *Face) streamsOf(dev Device) []*stream {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*stream
	for _, s := range f.streams {
		if s.device.ID == dev.ID {
			out = append(out, s)
		}
	}
	return out
}

// show shows an event in the streams of a device.
func (f *Face) show(ctx context.Context, dev Device, fr frame) {
	for _, s := range f.streamsOf(dev) {
		select {
		case s.frames <- fr:
		case <-s.ctx.Done():
		case <-time.After(advanceTime): // it does not read
		case <-ctx.Done():
		}
	}
}

// showNotification shows a notification about a chat in the streams of a device.
func (f *Face) showNotification(ctx context.Context, dev Device, n notification) {
	f.show(ctx, dev, (*stream)(nil).frame(n.method, n.params))
}

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/chat/transcript"
)

// semaphore admits as many goroutines at a time as its capacity.
type semaphore chan struct{}

func (m semaphore) lock(ctx context.Context) bool {
	select {
	case m <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (m semaphore) unlock() { <-m }

// loadPause pauses a chat in all streams of a device while the device loads the chat. Without it, the
// page would lose events: it drops everything about the chat that arrives between its request and the
// answer. It would also show twice any event that is in both a stream and the answer.
type loadPause struct {
	f        *Face
	chatID   string
	at       int64 // the next event after the loaded ones
	streams  []pausedStream
	unpaused []*stream // streams that could not be paused
}

type pausedStream struct {
	*stream
	followed  bool // the stream showed the chat before the load
	showAgain bool // the page may be wrong about the chat, so the stream has to show the whole chat again
}

// advanceTime is how long a stream may take to pause, and to show the events before the load.
const advanceTime = time.Second

// pauseForLoad lets all streams of a device show the chat up to the same position, and pauses the chat
// there.
func (f *Face) pauseForLoad(ctx context.Context, dev Device, session *chat.Session) *loadPause {
	g := &loadPause{f: f, chatID: session.ID()}
	for _, s := range f.streamsOf(dev) { // in one order, so that two loads do not wait for each other
		if followed, early, ok := s.pauseChat(ctx, g.chatID); ok {
			g.streams = append(g.streams, pausedStream{stream: s, followed: followed, showAgain: early})
		} else {
			g.unpaused = append(g.unpaused, s)
		}
	}
	g.at = int64(session.FlushedSeq())
	var wrote time.Time
	for i := range g.streams {
		s := &g.streams[i]
		if !s.followed {
			continue // the stream has shown nothing of the chat
		}
		limited, cancel := context.WithTimeout(ctx, advanceTime)
		done, err := s.link.chatCall(limited, "chat/advance", map[string]any{"chatId": g.chatID, "seq": g.at})
		s.showAgain = err != nil || !done || !s.sync(limited) || s.showAgain
		cancel()
		s.mu.Lock()
		if at := s.lastWrite[g.chatID]; at.After(wrote) {
			wrote = at
		}
		s.mu.Unlock()
	}
	// The page receives its streams and the answer over different connections: wait until the page has
	// received what the streams wrote last.
	select {
	case <-time.After(arrivalTime - time.Since(wrote)):
	case <-ctx.Done():
	}
	return g
}

// pauseChat pauses a chat in the stream. If ok is true, the caller holds s.moveLock and must unlock it.
// followed reports whether the stream showed the chat until now. early reports whether it
// showed the chat before the page's first load: a page keeps such events and repeats them after the
// load.
func (s *stream) pauseChat(ctx context.Context, chatID string) (followed, early, ok bool) {
	limited, cancel := context.WithTimeout(ctx, advanceTime)
	defer cancel()
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return false, false, false
	case <-limited.Done():
		return false, false, false
	}
	if !s.moveLock.lock(limited) {
		return false, false, false
	}
	followed, err := s.link.chatCall(limited, "chat/hold", map[string]any{"chatId": chatID})
	if err != nil {
		s.moveLock.unlock()
		s.f.work.Go(func() { _, _ = s.link.chatCall(s.ctx, "chat/release", map[string]any{"chatId": chatID}) })
		return false, false, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	early = s.shownBeforeLoad[chatID]
	s.markLoaded(chatID)
	return followed, early, true
}

// markLoaded records that the device loads a chat; the stream shows the chat from then on. The caller
// holds mu.
func (s *stream) markLoaded(chatID string) {
	delete(s.delayed, chatID)
	s.followed[chatID], s.loaded = true, true
	clear(s.shownBeforeLoad)
}

// resume lets the streams continue after settleTime, when the page has displayed the loaded chat. The
// streams repeat the calls and questions that wait for the user, because a load does not contain them. A
// stream that could not be paused, or that showed events before the first load, shows the whole chat again.
func (g *loadPause) resume() {
	for _, s := range g.unpaused {
		g.f.work.Go(func() {
			select {
			case <-time.After(settleTime):
			case <-s.ctx.Done():
				return
			}
			if s.moveLock.lock(s.ctx) {
				defer s.moveLock.unlock()
				s.mu.Lock()
				s.markLoaded(g.chatID)
				s.mu.Unlock()
				s.showWhole(g.chatID)
			}
		})
	}
	for _, s := range g.streams {
		g.f.work.Go(func() {
			defer s.moveLock.unlock()
			select {
			case <-time.After(settleTime):
			case <-s.ctx.Done():
				return
			}
			if !s.followed {
				s.followLocked(g.chatID, map[string]any{"seq": g.at, "remind": true})
			} else if _, _ = s.link.chatCall(s.ctx, "chat/release", map[string]any{"chatId": g.chatID, "remind": true}); s.showAgain {
				s.showWhole(g.chatID)
			}
			s.askAgain(g.chatID)
		})
	}
}

// loadChat returns a chat with its messages.
func (f api) loadChat(c *call) (any, error) {
	session, err := f.existingChat(c)
	if err != nil {
		return nil, err
	}
	if _, err := session.Refresh().Wait(c.ctx); err != nil {
		return nil, err
	}
	span, pageMeta, err := window(c, session)
	if err != nil {
		return nil, err
	}
	if span == nil {
		c.pause = f.pauseForLoad(c.ctx, c.device, session)
		span = &chat.Span{From: 1, To: event.Seq(c.pause.at)}
	}
	messages, waiting, err := read(c.ctx, session, *span)
	if err != nil {
		return nil, err
	}
	chatMeta := session.Meta()
	out := map[string]any{
		"id": session.ID(), "title": chatMeta.Title, "status": simpleStatus(session.Running()),
		"createdAt": chatMeta.Created.UnixMilli(), "updatedAt": chatMeta.Updated.UnixMilli(),
		"messages": messages, "pendingToolCalls": waiting, "model": chatMeta.Model, "agent": chatMeta.Agent, "variant": chatMeta.Variant,
	}
	if pageMeta != nil {
		out["messagesMeta"] = pageMeta
	} else { // in the form of an event's id: streams continue after this position
		out["position"] = formatID([]chatPosition{{session.ID(), position{int64(span.To), 0}, chatMeta.Created.UnixMilli()}})
	}
	return out, nil
}

// window returns the part of the chat that limit, before and after in the query of a request select,
// and its description for the answer. It returns nil without any of them.
func window(c *call, session *chat.Session) (span *chat.Span, meta map[string]any, err error) {
	query := c.r.URL.Query()
	if !query.Has("limit") && !query.Has("before") && !query.Has("after") {
		return nil, nil, nil
	}
	compaction, compacted, err := session.LastCompaction(c.ctx)
	if err != nil {
		return nil, nil, err
	}
	var w chat.Window
	if limit := query.Get("limit"); limit != "" {
		if w.Limit, err = strconv.Atoi(limit); err != nil || w.Limit < 0 {
			return nil, nil, badRequest("limit is not a number of messages")
		}
	}
	for key, to := range map[string]**chat.Cursor{"before": &w.Before, "after": &w.After} {
		switch text := query.Get(key); {
		case text == "":
		case text == "lastCompaction" && compacted:
			*to = &compaction
		case text == "lastCompaction" && key == "after": // everything comes after it
		case text == "lastCompaction":
			return nil, nil, &failure{409, "cursor_expired", "the chat was not compacted"}
		default:
			at, err := chat.ParseCursor(text)
			if err != nil {
				return nil, nil, badRequest(key + " is not a cursor")
			}
			*to = &at
		}
	}
	w.Forward = w.After != nil && w.Before == nil && query.Get("after") != "lastCompaction"
	s, err := session.Window(c.ctx, w)
	if errors.Is(err, chat.ErrCursorExpired) {
		return nil, nil, &failure{409, "cursor_expired", "the message that the cursor points at is gone"}
	}
	if err != nil {
		return nil, nil, err
	}
	meta = map[string]any{"total": s.Total, "returned": s.Returned, "beforeCursor": nil, "afterCursor": nil, "compactionCursor": nil}
	if s.Older {
		meta["beforeCursor"] = s.First.String()
	}
	if s.Newer {
		meta["afterCursor"] = s.Last.String()
	}
	if compacted {
		meta["compactionCursor"] = compaction.String()
	}
	s.To = min(s.To, session.FlushedSeq())
	return &s, meta, nil
}

// read returns the messages of a span in the reference's form, including an unfinished text, and the
// calls that wait for approval at the end of the span.
func read(ctx context.Context, session *chat.Session, span chat.Span) (messages, waiting []any, err error) {
	messages, waiting = []any{}, []any{}
	fold, reasons := transcript.New(), map[string]*strings.Builder{}
	events := func(yield func(event.Event, error) bool) {
		for reader := session.Read(max(span.From, 1)); reader.Position() < span.To; {
			e, ok, err := reader.Try(ctx)
			if err != nil {
				yield(e, err)
				return
			}
			if !ok || e.Seq >= span.To {
				return
			}
			fold.Add(e)
			switch b := e.Body.(type) {
			case event.ReasoningStarted:
				reasons[b.ID] = &strings.Builder{}
			case event.ReasoningDelta:
				if r := reasons[b.ID]; r != nil {
					r.WriteString(b.Text)
				}
			case event.ReasoningFinished:
				delete(reasons, b.ID)
			case event.TurnFinished:
				clear(reasons)
			case event.Flag: // not part of the messages: pages do not restore flags from a load
				continue
			default:
			}
			if !yield(e, nil) {
				return
			}
		}
	}
	for r, err := range importer.Messages(iter.Seq2[event.Event, error](events)) {
		if err != nil {
			return nil, nil, err
		}
		text, err := r.MarshalJSON()
		if err != nil {
			return nil, nil, err
		}
		var m map[string]any
		if err := json.Unmarshal(text, &m); err != nil {
			return nil, nil, err
		}
		messages = append(messages, camelMessage(m))
	}
	for id, text := range reasons {
		messages = append(messages, map[string]any{"role": "reason", "content": map[string]any{"id": id, "text": text.String()}})
	}
	for _, c := range fold.Calls() {
		if c.Stage == transcript.Judged && c.Judgment.Manual {
			waiting = append(waiting, map[string]any{
				"id": c.CallID, "name": c.Name, "server": c.Server, "origin": c.Origin, "arguments": c.Arguments(),
				"manualApproval": true, "summary": c.Judgment.Summary,
			})
		}
	}
	return messages, waiting, nil
}

// camelMessage renames the keys of a message and of its content, but not those of a tool's arguments.
func camelMessage(m map[string]any) map[string]any {
	out := camelKeys(m)
	if content, ok := out["content"].(map[string]any); ok {
		out["content"] = camelKeys(content)
	}
	return out
}

func camelKeys(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for key, value := range m {
		words := strings.Split(key, "-")
		for i, word := range words {
			if i > 0 && word != "" {
				words[i] = strings.ToUpper(word[:1]) + word[1:]
			}
		}
		out[strings.Join(words, "")] = value
	}
	return out
}

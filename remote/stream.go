package remote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

const (
	heartbeat   = 10 * time.Second
	writeTime   = 30 * time.Second       // the time limit of one write to a client that does not read
	writePeriod = 16 * time.Millisecond  // between two writes
	maxWrite    = 64 << 10               // write when so many bytes are collected; the last event may exceed it
	maxKept     = 4 << 10                // a larger buffer is not reused for the next write
	checkPeriod = 500 * time.Millisecond // between two checks whether the device is still paired
	// startDelay is how long a new stream does not show running chats, so that the page can load them
	// first.
	startDelay = 2 * time.Second
	// arrivalTime is how long written data is assumed to need until it reaches the page.
	arrivalTime = 300 * time.Millisecond
	// settleTime is how long a page is assumed to need to receive a chat that it loads, and to display it.
	// A page that needs longer loses the following events until it loads the chat again. Until then,
	// another load by the device waits too.
	settleTime = 500 * time.Millisecond
	// maxSettleTime is the longest pause between two repetitions of a question for a slow page.
	maxSettleTime = 10 * time.Second
)

// stream sends the notifications about all chats to one client, as server-sent events. Each stream has
// an ECA server in this process (link), which reads the chats' logs. The stream itself buffers only
// one write, so a client that does not read delays only its own server.
type stream struct {
	f        *Face
	device   Device
	link     *link
	frames   chan frame
	ctx      context.Context
	end      context.CancelFunc
	started  time.Time
	http1    bool
	ready    chan struct{} // closed when the link can be used, and first is set
	greeting frame         // the state outside chats

	moveLock semaphore // held while a chat is paused, or continued at another position

	mu              sync.Mutex                 // guards the fields below
	lastWrite       map[string]time.Time       // when something of a chat was written last, for arrivalTime
	closeMessage    string                     // shown before the stream ends
	followed        map[string]bool            // chats that the stream shows, or is about to show
	delayed         map[string]bool            // chats that are not shown yet, because the page may load them first
	loaded          bool                       // the device has loaded a chat
	shownBeforeLoad map[string]bool            // true for chats older than the stream that it showed before the first load
	openQuestions   map[string]json.RawMessage // open questions, by request id

	// Owned by the goroutine that writes.
	buffered  []string       // chats that the next write shows
	positions []chatPosition // the chat that moved last comes last
	idText    string
}

// frame is one event that is to be written.
type frame struct {
	event string // empty if the frame only changes the position
	data  json.RawMessage
	chat  string // the chat that shows the event; may be empty
	// at is the position after the event. If at.chat is empty, the positions do not change. If at.Seq is
	// zero, the chat has no position any more.
	at      chatPosition
	flushed chan struct{} // closed when everything before the frame was written; may be nil
}

// eventNames maps the notifications that streams show to the names of events.
var eventNames = map[string]string{ //nolint:gochecknoglobals // a table
	"chat/contentReceived": "chat:content-received", "chat/opened": "chat:opened", "chat/statusChanged": "chat:status-changed",
	"chat/cleared": "chat:cleared", "chat/deleted": "chat:deleted", "config/updated": "config:updated",
	"tool/serverUpdated": "tool:server-updated", "tool/serverRemoved": "tool:server-removed", "providers/updated": "providers:updated",
	"jobs/updated": "jobs:updated", "$/showMessage": "session:message", "$/progress": "session:progress",
}

// newStream returns a stream. A resuming stream continues at the given positions. Its server waits while
// write sends earlier frames.
func (f *Face) newStream(ctx context.Context, dev Device, http1, resuming bool, resumed []chatPosition) *stream {
	s := &stream{
		f: f, device: dev, moveLock: make(semaphore, 1), frames: make(chan frame), started: f.opts.Now(), http1: http1, ready: make(chan struct{}), positions: slices.Clone(resumed),
		idText: formatID(resumed), followed: map[string]bool{}, delayed: map[string]bool{}, shownBeforeLoad: map[string]bool{}, lastWrite: map[string]time.Time{}, openQuestions: map[string]json.RawMessage{},
	}
	s.ctx, s.end = context.WithCancel(ctx)
	subagents := map[string]position{}
	for _, p := range resumed {
		s.followed[p.chat] = true
		subagents[p.chat] = p.position
	}
	s.link = f.connect(s.ctx, s.handle)
	f.work.Go(func() {
		if err := f.initialize(s.ctx, s.link, dev.Rights >= Control); err != nil {
			s.end()
			return
		}
		// From now on, the server reports chats that begin. Chats that began earlier are in the lists
		// that are read now, so none is missed.
		s.delayChats(resumed)
		s.greeting = f.greeting(s.ctx, dev, resuming, resumed)
		close(s.ready)
		for _, p := range resumed {
			if !chat.IsSubagent(p.chat) {
				s.follow(p.chat, map[string]any{"seq": p.Seq, "offset": p.Offset, "subagents": subagents})
			}
		}
		select {
		case <-time.After(startDelay):
			s.showDelayed()
		case <-s.ctx.Done():
		}
	})
	return s
}

// handle handles a message of the stream's server.
func (s *stream) handle(_ context.Context, req *jsonrpc.Request) (any, error) {
	switch {
	case req.Method == "chat/askQuestion":
		return s.question(req.Params)
	case req.IsCall:
		return nil, jsonrpc.MethodNotFound(req.Method)
	case req.Method == "$/began":
		s.chatBegan(req.Params)
	case req.Method == "chat/deleted":
		fr := s.frame(req.Method, req.Params)
		s.forget(fr.at.chat)
		s.put(fr)
	case req.Method == "$/positioned":
		var p positioned
		if err := json.Unmarshal(req.Params, &p); err != nil {
			return nil, err
		}
		fr := s.frame(p.Method, p.Params)
		if p.Seq > 0 || p.Method == "" {
			fr.at = chatPosition{chat: p.ChatID, position: p.position}
		}
		s.put(fr)
	default:
		s.put(s.frame(req.Method, req.Params))
	}
	return nil, nil
}

// put passes a frame to the goroutine that writes.
func (s *stream) put(fr frame) {
	select {
	case s.frames <- fr:
	case <-s.ctx.Done():
	}
}

// frame returns the event for a notification.
func (s *stream) frame(method string, params json.RawMessage) frame {
	fr := frame{event: eventNames[method], data: params, chat: chatShowing(params)}
	switch method {
	case "chat/cleared", "chat/deleted": // the chat has no position until its next event
		fr.at.chat = fr.chat
	case "chat/opened": // pages would show an empty title
		var p struct {
			ChatID string `json:"chatId"`
			Title  string `json:"title"`
		}
		if json.Unmarshal(params, &p) == nil {
			p.Title = cmp.Or(p.Title, untitled)
			fr.data = encode(p)
		}
	case "chat/statusChanged":
		var p struct {
			ChatID string `json:"chatId"`
			Status string `json:"status"`
		}
		if json.Unmarshal(params, &p) == nil {
			p.Status = simpleStatus(p.Status == "running")
			fr.data = encode(p)
		}
	}
	return fr
}

// chatShowing returns the chat that shows a notification. A notification of a subagent is shown in its
// parent's chat.
func chatShowing(params json.RawMessage) string {
	var p struct {
		ChatID       string `json:"chatId"`
		ParentChatID string `json:"parentChatId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return ""
	}
	return cmp.Or(p.ParentChatID, p.ChatID)
}

const untitled = "New chat"

func simpleStatus(running bool) string {
	if running {
		return "running"
	}
	return "idle"
}

// sync waits until all frames that were put before have been written. It returns false if ctx or the
// stream ends first.
func (s *stream) sync(ctx context.Context) bool {
	done := make(chan struct{})
	select {
	case s.frames <- frame{flushed: done}:
	case <-s.ctx.Done():
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-done:
		return true
	case <-s.ctx.Done():
	case <-ctx.Done():
	}
	return false
}

// chatBegan begins to show a chat in which a turn begins. A new stream delays a chat that has earlier
// events, so that the page can load it first.
func (s *stream) chatBegan(params json.RawMessage) {
	var p struct {
		ChatID string `json:"chatId"`
		Seq    int64  `json:"seq"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.followed[p.ChatID] || s.delayed[p.ChatID] {
		return
	}
	if p.Seq > 1 && s.f.opts.Now().Sub(s.started) < startDelay {
		s.delayed[p.ChatID] = true
		return
	}
	s.followed[p.ChatID] = true
	s.shownBeforeLoad[p.ChatID] = p.Seq > 1 && !s.loaded
	s.f.work.Go(func() { s.follow(p.ChatID, map[string]any{"seq": p.Seq}) })
}

// forget removes a deleted chat from the stream's state, because a later chat may have the same id.
func (s *stream) forget(chatID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, chatID)
	delete(s.delayed, chatID)
	delete(s.shownBeforeLoad, chatID)
}

// follow shows a chat from a position on. The caller has already added the chat to s.followed.
func (s *stream) follow(chatID string, params map[string]any) {
	if s.moveLock.lock(s.ctx) {
		defer s.moveLock.unlock()
		s.followLocked(chatID, params)
	}
}

func (s *stream) followLocked(chatID string, params map[string]any) {
	select {
	case <-s.ready:
	case <-s.ctx.Done():
		return
	}
	params["chatId"] = chatID
	done, err := s.link.chatCall(s.ctx, "chat/follow", params)
	s.recordFollowed(chatID, done, err)
}

// showDelayed shows the delayed chats that the page has not loaded in the meantime. It shows them from
// the beginning: a page that lost its connection may have only the events from before.
func (s *stream) showDelayed() {
	s.mu.Lock()
	waiting := slices.Sorted(maps.Keys(s.delayed))
	s.mu.Unlock()
	for _, id := range waiting {
		if !s.moveLock.lock(s.ctx) {
			return
		}
		s.mu.Lock()
		isDelayed := s.delayed[id]
		delete(s.delayed, id)
		s.followed[id] = true
		s.shownBeforeLoad[id] = !s.loaded
		s.mu.Unlock()
		if isDelayed { // otherwise, the page has loaded it
			s.showWhole(id)
		}
		s.moveLock.unlock()
	}
}

// showWhole makes the page clear a chat, shows the chat from its beginning, and continues with its new
// events.
func (s *stream) showWhole(chatID string) {
	// Only a few streams do this at the same time, because each copy of a long chat takes memory. The
	// wait is short, so that a client that does not read cannot delay the others for long.
	limited, cancel := context.WithTimeout(s.ctx, advanceTime)
	defer cancel()
	if s.f.replays.lock(limited) {
		defer s.f.replays.unlock()
	}
	var res struct {
		Found bool `json:"found"`
	}
	err := s.link.conn.Call(s.ctx, "chat/open", map[string]any{"chatId": chatID}, &res)
	s.recordFollowed(chatID, res.Found, err)
}

// recordFollowed removes a chat from s.followed if following it failed.
func (s *stream) recordFollowed(chatID string, done bool, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.f.opts.Log.Warn("remote: a chat cannot be followed", "chat", chatID, "err", err)
	}
	if !done {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followed, chatID)
	}
}

// close shows a message to the user of the page and ends the stream.
func (s *stream) close(message string) {
	s.mu.Lock()
	s.closeMessage = message
	s.mu.Unlock()
	s.end()
}

// write sends frames until the client or the stream is gone.
func (s *stream) write(w http.ResponseWriter) {
	rc, buf := http.NewResponseController(w), &bytes.Buffer{}
	flush := func() bool {
		_ = rc.SetWriteDeadline(time.Now().Add(writeTime))
		_, err := w.Write(buf.Bytes())
		if buf.Reset(); buf.Cap() > maxKept {
			*buf = bytes.Buffer{}
		}
		if err != nil || rc.Flush() != nil {
			return false
		}
		s.recordWrite(time.Now())
		return true
	}
	flushed := s.untilReady(buf)
	if !flush() {
		return
	}
	for _, done := range flushed {
		close(done)
	}
	beat, check := time.NewTicker(heartbeat), time.NewTicker(checkPeriod)
	defer beat.Stop()
	defer check.Stop()
	last, pause := time.Now(), (<-chan time.Time)(nil) // while pause is set, frames are collected
	for {
		var flushed chan struct{}
		select {
		case fr := <-s.frames:
			s.append(buf, fr)
			flushed = fr.flushed
			if wait := writePeriod - time.Since(last); wait > 0 && flushed == nil && buf.Len() < maxWrite {
				if pause == nil {
					pause = time.After(wait)
				}
				continue
			}
		case <-pause:
		case <-beat.C:
			buf.WriteString(":\n\n")
		case <-check.C:
			if !s.f.stillAuthorized(s.device) {
				s.end()
			}
			continue
		case <-s.ctx.Done():
			s.mu.Lock()
			closeMessage := s.closeMessage
			s.mu.Unlock()
			if closeMessage != "" {
				buf.WriteString("retry: 20000\n")
				s.append(buf, frame{event: "session:message", data: encode(map[string]string{"type": "warning", "message": closeMessage})})
			}
			if s.f.shuttingDown.Load() {
				s.append(buf, frame{event: "session:disconnecting", data: encode(map[string]string{"reason": "shutdown"})})
			}
			flush()
			return
		}
		pause = nil
		if buf.Len() > 0 {
			if !flush() {
				return
			}
		}
		last = time.Now()
		if flushed != nil {
			close(flushed)
		}
	}
}

// recordWrite records when events of the buffered chats were written.
func (s *stream) recordWrite(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.lastWrite, func(_ string, at time.Time) bool { return now.Sub(at) > arrivalTime })
	for _, id := range s.buffered {
		s.lastWrite[id] = now
	}
	s.buffered = s.buffered[:0]
}

// untilReady waits until the stream's server is ready. It buffers the greeting first, and then the
// frames that arrived during the wait. It returns the channels to close when these frames are written.
func (s *stream) untilReady(buf *bytes.Buffer) (flushed []chan struct{}) {
	var early []frame
	for ready := false; !ready; {
		select {
		case fr := <-s.frames:
			early = append(early, fr)
		case <-s.ready:
			s.append(buf, s.greeting)
			ready = true
		case <-s.ctx.Done():
			return nil
		}
	}
	for _, fr := range early {
		s.append(buf, fr)
		if fr.flushed != nil {
			flushed = append(flushed, fr.flushed)
		}
	}
	return flushed
}

// append writes a frame to a buffer.
func (s *stream) append(buf *bytes.Buffer, fr frame) {
	if fr.at.chat != "" {
		i := slices.IndexFunc(s.positions, func(p chatPosition) bool { return p.chat == fr.at.chat })
		if i >= 0 { // a deleted chat loses its position, so this is the same chat
			fr.at.created = s.positions[i].created
			s.positions = slices.Delete(s.positions, i, i+1)
		} else {
			fr.at.created = s.createdMillis(fr.at.chat)
		}
		if fr.at.Seq > 0 {
			s.positions = append(s.positions, fr.at)
		}
		s.positions = s.positions[max(0, len(s.positions)-maxPositions):]
		s.idText = formatID(s.positions)
	}
	if fr.event == "" { // the next event contains the new id
		return
	}
	if fr.chat != "" && !slices.Contains(s.buffered, fr.chat) {
		s.buffered = append(s.buffered, fr.chat)
	}
	fmt.Fprintf(buf, "event: %s\n", fr.event)
	if s.idText != "" {
		fmt.Fprintf(buf, "id: %s\n", s.idText)
	}
	fmt.Fprintf(buf, "data: %s\n\n", fr.data)
}

// encode returns a value as JSON. All values that are passed can be encoded, so this cannot fail.
func encode(v any) json.RawMessage {
	text, err := jsonrpc.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

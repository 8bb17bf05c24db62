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
	writeTime   = 30 * time.Second      // for one write to a client that does not read
	writePeriod = 16 * time.Millisecond // between two writes
	maxWrite    = 64 << 10              // bytes of one write, apart from the last event
	maxKept     = 4 << 10               // bytes of a buffer that are kept for the next write
	checkPeriod = 500 * time.Millisecond
	// standstill is how long chats that run are not shown at the start of a stream: the page loads
	// them first.
	standstill = 2 * time.Second
	// arrivalTime is how long what was written needs to reach a page.
	arrivalTime = 300 * time.Millisecond
	// settleTime is how long a page needs to receive a chat that it loads, and to take it over. A page that
	// needs longer loses what comes next, until it loads the chat again. The device's next load waits as long.
	settleTime = 500 * time.Millisecond
	// maxSettleTime is the longest pause between two repetitions of a question for a slow page.
	maxSettleTime = 10 * time.Second
)

// stream sends one client what all chats show, as server-sent events. It is a client of an ECA
// server of its own, which reads the chats' logs: nothing is buffered here, and a client that does
// not read delays only its own server.
type stream struct {
	f      *Face
	device Device
	link   *link
	frames chan frame
	ctx    context.Context
	end    context.CancelFunc
	began  time.Time
	http1  bool
	ready  chan struct{} // closed when the link can be used, and first is set
	first  frame         // the state outside chats

	moving semaphore // held while a chat is moved to another position

	mu       sync.Mutex           // guards the fields below
	wrote    map[string]time.Time // when something of a chat was written last, for arrivalTime
	farewell string               // shown before the stream ends
	followed map[string]bool
	waiting  map[string]bool            // chats that stand still
	loaded   bool                       // the device has loaded a chat
	early    map[string]bool            // chats of before the stream that were shown before that load
	asked    map[string]json.RawMessage // open questions, by request id

	// Owned by the goroutine that writes.
	buffered  []string       // chats that the next write shows
	positions []chatPosition // the chat that moved last comes last
	idText    string
}

// frame is one event on its way out.
type frame struct {
	event   string // empty: nothing is shown, but at counts
	data    json.RawMessage
	chat    string        // whose page shows it; may be empty
	at      chatPosition  // after it; without a chat if it leaves the positions, without a Seq if it ends the chat's
	flushed chan struct{} // closed when everything before it was written; may be nil
}

// eventNames maps the notifications that streams show to the names of events.
var eventNames = map[string]string{ //nolint:gochecknoglobals // a table
	"chat/contentReceived": "chat:content-received", "chat/opened": "chat:opened", "chat/statusChanged": "chat:status-changed",
	"chat/cleared": "chat:cleared", "chat/deleted": "chat:deleted", "config/updated": "config:updated",
	"tool/serverUpdated": "tool:server-updated", "tool/serverRemoved": "tool:server-removed", "providers/updated": "providers:updated",
	"jobs/updated": "jobs:updated", "$/showMessage": "session:message", "$/progress": "session:progress",
}

// newStream returns a stream that goes on at positions if it is resuming. Its link waits until write
// sends what it shows.
func (f *Face) newStream(ctx context.Context, dev Device, http1, resuming bool, resumed []chatPosition) *stream {
	s := &stream{
		f: f, device: dev, moving: make(semaphore, 1), frames: make(chan frame), began: f.opts.Now(), http1: http1, ready: make(chan struct{}), positions: slices.Clone(resumed),
		idText: formatID(resumed), followed: map[string]bool{}, waiting: map[string]bool{}, early: map[string]bool{}, wrote: map[string]time.Time{}, asked: map[string]json.RawMessage{},
	}
	s.ctx, s.end = context.WithCancel(ctx)
	subagents := map[string]position{}
	for _, p := range resumed {
		s.followed[p.chat] = true
		subagents[p.chat] = p.position
	}
	s.link = f.connect(s.ctx, s.handle)
	f.work.Go(func() {
		if err := f.introduce(s.ctx, s.link, dev.Rights >= Control); err != nil {
			s.end()
			return
		}
		// From now on, the server says which chats begin, so a list that is made now lacks none.
		s.wait(resumed)
		s.first = f.greeting(s.ctx, dev, resuming, resumed)
		close(s.ready)
		for _, p := range resumed {
			if !chat.IsSubagent(p.chat) {
				s.follow(p.chat, map[string]any{"seq": p.Seq, "offset": p.Offset, "subagents": subagents})
			}
		}
		select {
		case <-time.After(standstill):
			s.startWaiting()
		case <-s.ctx.Done():
		}
	})
	return s
}

// handle takes a message of the stream's server.
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

// put hands a frame to the goroutine that writes.
func (s *stream) put(fr frame) {
	select {
	case s.frames <- fr:
	case <-s.ctx.Done():
	}
}

// frame returns the event for a notification.
func (s *stream) frame(method string, params json.RawMessage) frame {
	fr := frame{event: eventNames[method], data: params, chat: shownIn(params)}
	switch method {
	case "chat/cleared", "chat/deleted": // what follows has no position
		fr.at.chat = fr.chat
	case "chat/opened": // a page shows an empty title as none
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

// shownIn returns the chat that shows a notification: that of a subagent is shown in its parent.
func shownIn(params json.RawMessage) string {
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

// sync waits until everything that was put before was written.
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

// chatBegan follows a chat that is prompted, unless the page loads it first.
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
	if s.followed[p.ChatID] || s.waiting[p.ChatID] {
		return
	}
	if p.Seq > 1 && s.f.opts.Now().Sub(s.began) < standstill {
		s.waiting[p.ChatID] = true
		return
	}
	s.followed[p.ChatID] = true
	s.early[p.ChatID] = p.Seq > 1 && !s.loaded
	s.f.work.Go(func() { s.follow(p.ChatID, map[string]any{"seq": p.Seq}) })
}

// forget notes that a chat was deleted. A later chat may have the same id.
func (s *stream) forget(chatID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.followed, chatID)
	delete(s.waiting, chatID)
	delete(s.early, chatID)
}

// follow shows a chat from a position on. The chat is marked as followed already.
func (s *stream) follow(chatID string, params map[string]any) {
	if s.moving.lock(s.ctx) {
		defer s.moving.unlock()
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
	s.noteFollowed(chatID, done, err)
}

// startWaiting shows the chats that the page has not loaded meanwhile. A page may have a part of them
// from before it lost its connection, and only the chat that it loads again is complete.
func (s *stream) startWaiting() {
	s.mu.Lock()
	waiting := slices.Sorted(maps.Keys(s.waiting))
	s.mu.Unlock()
	for _, id := range waiting {
		if !s.moving.lock(s.ctx) {
			return
		}
		s.mu.Lock()
		still := s.waiting[id]
		delete(s.waiting, id)
		s.followed[id] = true
		s.early[id] = !s.loaded
		s.mu.Unlock()
		if still { // else the page has loaded it
			s.showWhole(id)
		}
		s.moving.unlock()
	}
}

// showWhole has the page drop what it has of a chat, shows the chat from its beginning, and follows it.
func (s *stream) showWhole(chatID string) {
	// Streams that begin together take turns: each copy of a long chat takes memory. One whose client
	// does not read delays the others only for a moment.
	turn, cancel := context.WithTimeout(s.ctx, advanceTime)
	defer cancel()
	if s.f.replays.lock(turn) {
		defer s.f.replays.unlock()
	}
	var res struct {
		Found bool `json:"found"`
	}
	err := s.link.conn.Call(s.ctx, "chat/open", map[string]any{"chatId": chatID}, &res)
	s.noteFollowed(chatID, res.Found, err)
}

// noteFollowed notes whether a chat is followed.
func (s *stream) noteFollowed(chatID string, done bool, err error) {
	if err != nil && s.ctx.Err() == nil {
		s.f.opts.Log.Warn("remote: a chat cannot be followed", "chat", chatID, "err", err)
	}
	if !done {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.followed, chatID)
	}
}

// close ends the stream with a message to its user.
func (s *stream) close(message string) {
	s.mu.Lock()
	s.farewell = message
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
		s.noteWrite(time.Now())
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
			if !s.f.admitted(s.device) {
				s.end()
			}
			continue
		case <-s.ctx.Done():
			s.mu.Lock()
			farewell := s.farewell
			s.mu.Unlock()
			if farewell != "" {
				buf.WriteString("retry: 20000\n")
				s.append(buf, frame{event: "session:message", data: encode(map[string]string{"type": "warning", "message": farewell})})
			}
			if s.f.leaving.Load() {
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

// noteWrite notes when the buffered chats were written.
func (s *stream) noteWrite(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.wrote, func(_ string, at time.Time) bool { return now.Sub(at) > arrivalTime })
	for _, id := range s.buffered {
		s.wrote[id] = now
	}
	s.buffered = s.buffered[:0]
}

// untilReady collects frames until the stream's server shows what happens, or the stream ends: a client
// that is connected may send a prompt at once. The state comes first.
func (s *stream) untilReady(buf *bytes.Buffer) (flushed []chan struct{}) {
	var early []frame
	for ready := false; !ready; {
		select {
		case fr := <-s.frames:
			early = append(early, fr)
		case <-s.ready:
			s.append(buf, s.first)
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
		if i >= 0 { // as long as it has a position, it is the same chat
			fr.at.began = s.positions[i].began
			s.positions = slices.Delete(s.positions, i, i+1)
		} else {
			fr.at.began = s.beginningOf(fr.at.chat)
		}
		if fr.at.Seq > 0 {
			s.positions = append(s.positions, fr.at)
		}
		s.positions = s.positions[max(0, len(s.positions)-maxPositions):]
		s.idText = formatID(s.positions)
	}
	if fr.event == "" { // the id is sent with the next event
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

// encode returns the JSON of a value of maps, lists and texts.
func encode(v any) json.RawMessage {
	text, err := jsonrpc.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return text
}

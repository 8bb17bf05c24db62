package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// maxReadPause is how long the session stops reading from the server if no page reads. Meanwhile the
// server merges its messages. Then the pages are disconnected; they connect again and load the chat.
const maxReadPause = 20 * time.Second

// maxFrame bounds a message of the server, which is part of this program, in bytes.
const maxFrame = 1 << 30

// pingPeriod and writeTime detect pages whose machine is asleep or unreachable.
const pingPeriod, writeTime = 30 * time.Second, 20 * time.Second

// checkPeriod is how often it is checked that a page may still be attached.
const checkPeriod = 500 * time.Millisecond

// errEnded is the reason that pages get when the session ends.
var errEnded = errors.New("eca web has ended")

// session is one run of the server and the pages attached to it.
type session struct {
	folder, version string
	log             *slog.Logger

	ctx    context.Context
	cancel context.CancelFunc
	ended  chan struct{} // closed when the server has ended
	work   sync.WaitGroup

	maxReadPause time.Duration
	outboxFreed  chan struct{} // gets an element when a message left an outbox, or a page disconnected

	writing sync.Mutex // held while a message is written to the server
	server  io.Writer
	codec   jsonrpc.Codec // of both directions; the server's messages are read by one goroutine

	mu               sync.Mutex // guards the fields below
	initializeResult json.RawMessage
	ready            chan struct{} // closed when initializeResult is set
	pages            map[*page]struct{}
	lastPage         int
	questions        []jsonrpc.Message // not answered yet
}

func isAnswer(m jsonrpc.Message) bool { return m.Method == "" && m.ID != nil }

// page is one attached page.
type page struct {
	name     string // prefix of its requests' ids
	attached bool   // it gets the server's messages; guarded by the session's mu
	outbox   *outbox
	ctx      context.Context // ends with its connection
	end      func()          // ends its connection
	gate     Gate            // decides what it may do
	token    string
}

// allow is Gate.Allow for the page.
func (p *page) allow(method string, params []byte) (allowed []byte, ok bool) {
	return p.gate.Allow(p.token, method, params)
}

// initializeID is the id of the session's only request of its own.
const initializeID = `"initialize"`

// startSession starts and initializes the server.
func startSession(ctx context.Context, o Options) *session {
	ctx, cancel := context.WithCancel(ctx)
	fromPages, toServer := io.Pipe()
	fromServer, toPages := io.Pipe()
	s := &session{
		folder: o.Folder, version: o.Version, log: o.Log, ctx: ctx, cancel: cancel, server: toServer, codec: jsonrpc.ContentLength(fromServer, maxFrame),
		maxReadPause: maxReadPause, ended: make(chan struct{}), ready: make(chan struct{}), outboxFreed: make(chan struct{}, 1), pages: map[*page]struct{}{},
	}
	s.work.Go(func() {
		defer close(s.ended)
		if err := o.Serve(ctx, fromPages, toPages); err != nil && ctx.Err() == nil {
			o.Log.Error("the server ended", "err", err)
		}
		cancel()
		_ = fromPages.CloseWithError(errEnded)
		_ = toPages.CloseWithError(errEnded)
	})
	s.work.Go(func() { s.deliver(fromServer) })
	s.work.Go(func() { s.initialize(o) })
	return s
}

// initialize sends the initialize request; dispatch handles the response.
func (s *session) initialize(o Options) {
	params, _ := json.Marshal(map[string]any{ // strings and maps of them
		"processId":  os.Getpid(),
		"clientInfo": map[string]string{"name": "eca-web", "version": o.Version},
		"capabilities": map[string]any{"codeAssistant": map[string]any{
			"chat":             true,
			"chatCapabilities": map[string]bool{"askQuestion": true, "remount": true},
		}},
		"workspaceFolders": []map[string]string{{"name": filepath.Base(o.Folder), "uri": fileURI(o.Folder)}},
	})
	s.send(jsonrpc.Message{ID: json.RawMessage(initializeID), Method: "initialize", Params: params})
}

func fileURI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") { // C:/x
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}

func (s *session) close() {
	s.cancel()
	s.work.Wait()
}

// send writes a message to the server.
func (s *session) send(m jsonrpc.Message) {
	s.writing.Lock()
	defer s.writing.Unlock()
	if _, err := s.server.Write(s.codec.Frame(m.Encode())); err != nil && s.ctx.Err() == nil {
		s.log.Debug("a message was not sent", "err", err)
	}
}

// deliver passes the server's messages to the pages, in order, until the server ends.
func (s *session) deliver(r io.Closer) {
	defer r.Close()
	for {
		body, err := s.codec.Next()
		if err != nil {
			if s.ctx.Err() == nil {
				s.log.Error("the server is not understood", "err", err)
				s.cancel()
			}
			return
		}
		var m jsonrpc.Message
		if err := json.Unmarshal(body, &m); err != nil {
			s.log.Error("the server is not understood", "err", err)
			continue
		}
		s.dispatch(m, body)
	}
}

// dispatch handles the server's response to initialize. It passes other responses to the page that
// sent the request, and all other messages to all attached pages.
func (s *session) dispatch(m jsonrpc.Message, body []byte) {
	switch {
	case isAnswer(m) && string(m.ID) == initializeID:
		s.mu.Lock()
		s.initializeResult = m.Result
		s.mu.Unlock()
		close(s.ready)
		s.work.Go(func() { s.send(jsonrpc.Message{Method: "initialized", Params: json.RawMessage("{}")}) })
		return
	case isAnswer(m):
		s.answer(m)
		return
	}
	s.mu.Lock()
	switch {
	case m.IsCall():
		s.questions = append(s.questions, m)
	case m.Method == "$/cancelRequest":
		s.removeQuestion(cancelled(m.Params))
	}
	to := s.attachedPages()
	s.mu.Unlock()
	for _, p := range to {
		if m.IsCall() {
			s.ask(p, m)
			continue
		}
		p.outbox.add(body)
	}
	s.waitForOutboxes(to)
}

// ask sends a question to a page, if its gate allows that.
func (s *session) ask(p *page, m jsonrpc.Message) {
	if params, ok := p.gate.Question(p.token, m.Params); ok {
		m.Params = params
		p.outbox.add(m.Encode())
	}
}

// answer passes a response of the server to the page that sent the request.
func (s *session) answer(m jsonrpc.Message) {
	var id string
	if json.Unmarshal(m.ID, &id) != nil {
		return
	}
	name, own, ok := strings.Cut(id, "/")
	if !ok {
		return
	}
	m.ID = json.RawMessage(own)
	s.mu.Lock()
	var to *page
	for p := range s.pages {
		if p.name == name {
			to = p
		}
	}
	s.mu.Unlock()
	if to != nil {
		to.outbox.add(m.Encode())
	}
}

// attachedPages lists the attached pages; mu is held.
func (s *session) attachedPages() []*page {
	var out []*page
	for p := range s.pages {
		if p.attached {
			out = append(out, p)
		}
	}
	return out
}

// waitForOutboxes waits while the outboxes of all pages are full, so that the server merges its
// messages. After maxReadPause, it drops these pages. While some page reads, it does not wait, and drops
// the pages whose outboxes exceed maxOutbox.
func (s *session) waitForOutboxes(pages []*page) {
	var late <-chan time.Time
	for len(pages) > 0 {
		var full, excessive []*page
		for _, p := range pages {
			isFull, isExcessive := p.outbox.level()
			if isFull && p.ctx.Err() == nil {
				full = append(full, p)
			}
			if isExcessive {
				excessive = append(excessive, p)
			}
		}
		if len(full) < len(pages) {
			s.drop(excessive)
			return
		}
		if late == nil {
			timer := time.NewTimer(s.maxReadPause)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-s.outboxFreed:
		case <-s.ctx.Done():
			return
		case <-late:
			s.drop(full)
			return
		}
	}
}

// drop disconnects pages.
func (s *session) drop(pages []*page) {
	for _, p := range pages {
		s.log.Warn("a page does not read and is disconnected")
		s.mu.Lock()
		p.attached = false
		s.mu.Unlock()
		p.end()
	}
}

func (s *session) signalOutboxFreed() {
	select {
	case s.outboxFreed <- struct{}{}:
	default:
	}
}

// removeQuestion removes a question that was answered or cancelled; mu is held.
func (s *session) removeQuestion(id json.RawMessage) (known bool) {
	before := len(s.questions)
	s.questions = slices.DeleteFunc(s.questions, func(q jsonrpc.Message) bool { return string(q.ID) == string(id) })
	return len(s.questions) < before
}

func cancelled(params json.RawMessage) json.RawMessage {
	var p struct {
		ID json.RawMessage `json:"id"`
	}
	_ = json.Unmarshal(params, &p)
	return p.ID
}

// converse serves a connected page until the connection or the session ends.
func (s *session) converse(ctx context.Context, conn *websocket.Conn, gate Gate, token string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	p := &page{outbox: newOutbox(), ctx: ctx, end: cancel, gate: gate, token: token}
	s.mu.Lock()
	s.lastPage++
	p.name = strconv.Itoa(s.lastPage)
	s.pages[p] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.pages, p)
		s.mu.Unlock()
		s.signalOutboxFreed()
	}()
	var writer sync.WaitGroup
	writer.Go(func() {
		defer cancel()
		s.write(ctx, conn, p)
	})
	defer writer.Wait()
	defer cancel()
	for {
		kind, body, err := conn.Read(ctx)
		if err != nil {
			return
		}
		var m jsonrpc.Message
		if kind != websocket.MessageText || json.Unmarshal(body, &m) != nil {
			_ = conn.Close(websocket.StatusUnsupportedData, "not a JSON-RPC message")
			return
		}
		s.handleMessage(ctx, p, m)
	}
}

// write sends the messages in a page's outbox, and pings the page.
func (s *session) write(ctx context.Context, conn *websocket.Conn, p *page) {
	ping := time.NewTicker(pingPeriod)
	defer ping.Stop()
	check := time.NewTicker(checkPeriod)
	defer check.Stop()
	within := func(do func(ctx context.Context) error) bool {
		limited, cancel := context.WithTimeout(ctx, writeTime)
		defer cancel()
		return do(limited) == nil
	}
	for alive := true; alive; {
		select {
		case <-p.outbox.filled:
			body := p.outbox.take()
			s.signalOutboxFreed()
			alive = within(func(ctx context.Context) error { return conn.Write(ctx, websocket.MessageText, body) })
		case <-ping.C:
			alive = within(conn.Ping)
		case <-check.C:
			_, alive = p.allow("host/attach", nil)
		case <-s.ctx.Done():
			_ = conn.Close(websocket.StatusGoingAway, errEnded.Error())
			return
		case <-ctx.Done():
			return
		}
	}
}

// handleMessage handles a message of a page.
func (s *session) handleMessage(ctx context.Context, p *page, m jsonrpc.Message) {
	if m.Method != "$/cancelRequest" {
		allowed, ok := p.allow(m.Method, m.Params)
		if !ok {
			s.refuse(p, m)
			return
		}
		m.Params = allowed
	}
	switch {
	case m.Method == "host/attach":
		s.attach(ctx, p, m.ID)
	case slices.Contains([]string{"initialize", "initialized", "shutdown", "exit"}, m.Method):
		s.log.Warn("a page may not call this", "method", m.Method) // only the session may, for all pages
	case m.IsCall():
		m.ID, _ = json.Marshal(p.name + "/" + string(m.ID)) // of strings
		s.send(m)
	case isAnswer(m):
		s.answerQuestion(p, m)
	case m.Method == "$/cancelRequest":
		id, _ := json.Marshal(p.name + "/" + string(cancelled(m.Params)))
		m.Params, _ = json.Marshal(map[string]json.RawMessage{"id": id})
		s.send(m)
	case m.Method != "":
		s.send(m)
	}
}

// refuse tells a page that it may not do something.
func (s *session) refuse(p *page, m jsonrpc.Message) {
	const text = "This device may not do that."
	if m.IsCall() {
		p.outbox.add(jsonrpc.Message{ID: m.ID, Error: jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "%s", text)}.Encode())
		return
	}
	params, _ := json.Marshal(map[string]string{"type": "warning", "message": text}) // of strings
	p.outbox.add(jsonrpc.Message{Method: "$/showMessage", Params: params}.Encode())
}

// attach answers a page's host/attach. The page then gets the open questions, and all later messages of
// the server.
func (s *session) attach(ctx context.Context, p *page, id json.RawMessage) {
	select {
	case <-s.ready:
	case <-ctx.Done():
		return
	}
	s.mu.Lock()
	result, err := json.Marshal(map[string]any{
		"host": "browser", "version": s.version, "folders": []string{s.folder}, "initialize": s.initializeResult,
	})
	questions := slices.Clone(s.questions)
	p.attached = true
	s.mu.Unlock()
	if err != nil {
		s.log.Error("a page was not attached", "err", err)
		return
	}
	p.outbox.add(jsonrpc.Message{ID: id, Result: result}.Encode())
	for _, q := range questions {
		s.ask(p, q)
	}
}

// answerQuestion passes a page's answer to the server, unless another page answered first, and cancels
// the question in all other pages.
func (s *session) answerQuestion(from *page, m jsonrpc.Message) {
	s.mu.Lock()
	asked := slices.IndexFunc(s.questions, func(q jsonrpc.Message) bool { return string(q.ID) == string(m.ID) })
	var params json.RawMessage
	if asked >= 0 {
		params = s.questions[asked].Params
	}
	s.mu.Unlock()
	if asked >= 0 && !from.gate.MayAnswer(from.token, params, m.Result) { // without mu: it may read a file
		s.refuse(from, jsonrpc.Message{})
		return
	}
	s.mu.Lock()
	known := s.removeQuestion(m.ID)
	to := s.attachedPages()
	s.mu.Unlock()
	if !known {
		return
	}
	s.send(m)
	params, _ = json.Marshal(map[string]json.RawMessage{"id": m.ID}) // it was parsed
	body := jsonrpc.Message{Method: "$/cancelRequest", Params: params}.Encode()
	for _, p := range to {
		if p != from {
			p.outbox.add(body)
		}
	}
}

// equalSecrets compares secrets in constant time.
func equalSecrets(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}

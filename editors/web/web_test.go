package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

type message = jsonrpc.Message

// scripted is a server that answers each request with the name of its method, and sends the messages
// that are passed to say.
type scripted struct {
	mu       sync.Mutex
	received []message
	out      io.Writer
	began    chan struct{}
	arrived  chan message // what pages sent
}

func (s *scripted) serve(ctx context.Context, r io.Reader, w io.Writer) error {
	defer context.AfterFunc(ctx, func() { _ = r.(io.Closer).Close() })()
	s.out = w
	close(s.began)
	in := jsonrpc.ContentLength(r, maxFrame)
	for {
		body, err := in.Next()
		if err != nil {
			return nil
		}
		var m message
		if err := json.Unmarshal(body, &m); err != nil {
			return err
		}
		s.mu.Lock()
		s.received = append(s.received, m)
		s.mu.Unlock()
		select {
		case s.arrived <- m:
		case <-ctx.Done():
			return nil
		}
		if m.IsCall() {
			result, _ := json.Marshal(m.Method)
			s.say(message{ID: m.ID, Result: result})
		}
	}
}

func (s *scripted) say(m message) {
	if _, err := s.out.Write(jsonrpc.ContentLength(nil, 0).Frame(m.Encode())); err != nil {
		panic(err)
	}
}

// rig is a handler with its scripted server.
type rig struct {
	*scripted
	t       *testing.T
	handler *Handler
	http    *httptest.Server
	token   string
	tokens  chan string // of new links
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{scripted: &scripted{began: make(chan struct{}), arrived: make(chan message, 64)}, t: t, tokens: make(chan string, 8)}
	r.handler, r.token = New(t.Context(), Options{
		Serve: r.serve, Folder: "/work", Version: "1", Log: slog.New(slog.DiscardHandler), NewLink: func(token string) { r.tokens <- token },
	})
	r.http = httptest.NewServer(r.handler)
	t.Cleanup(func() {
		r.handler.Close()
		r.http.Close()
	})
	<-r.began
	return r
}

func (r *rig) exchange(token string) (status int, session string) {
	r.t.Helper()
	body, _ := json.Marshal(map[string]string{"token": token})
	res, err := http.Post(r.http.URL+"/session", "application/json", strings.NewReader(string(body)))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	var out struct{ Session string }
	_ = json.NewDecoder(res.Body).Decode(&out)
	return res.StatusCode, out.Session
}

func (r *rig) dial(session string) (*websocket.Conn, error) {
	conn, res, err := websocket.Dial(r.t.Context(), r.http.URL+"/socket", &websocket.DialOptions{Subprotocols: []string{"eca", "session." + session}})
	if err != nil {
		if res != nil && res.StatusCode != http.StatusUnauthorized {
			r.t.Errorf("status %d", res.StatusCode)
		}
		return nil, err
	}
	r.t.Cleanup(func() { _ = conn.CloseNow() })
	return conn, nil
}

// attach connects a page and attaches it to the server's session.
func (r *rig) attach(session string) *websocket.Conn {
	r.t.Helper()
	conn, err := r.dial(session)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write(conn, `{"jsonrpc":"2.0","id":1,"method":"host/attach","params":{}}`)
	if got := r.read(conn); !strings.Contains(got, `"initialize":"initialize"`) || !strings.Contains(got, `"folders":["/work"]`) || !strings.Contains(got, `"id":1`) {
		r.t.Fatalf("attached: %s", got)
	}
	return conn
}

func (r *rig) write(conn *websocket.Conn, text string) {
	r.t.Helper()
	if err := conn.Write(r.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(conn *websocket.Conn) string {
	r.t.Helper()
	_, body, err := conn.Read(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return string(body)
}

// awaits waits for a message to the server that contains a text.
func (r *rig) awaits(what string) message {
	r.t.Helper()
	for m := range r.arrived {
		if raw, _ := json.Marshal(m); strings.Contains(string(raw), what) {
			return m
		}
	}
	return message{}
}

func TestTokenWorksOnce(t *testing.T) {
	r := newRig(t)
	if status, _ := r.exchange("wrong"); status != http.StatusForbidden {
		t.Errorf("a wrong token: %d", status)
	}
	status, session := r.exchange(r.token)
	if status != http.StatusOK || session == "" {
		t.Fatalf("the token: %d", status)
	}
	if status, same := r.exchange(session); status != http.StatusOK || same != session {
		t.Errorf("the session that the token gave: %d, %q", status, same)
	}
	if status, session := r.exchange(r.token); status != http.StatusForbidden || session != "" {
		t.Errorf("the token again: %d", status)
	}
	if status, _ := r.exchange(<-r.tokens); status != http.StatusOK {
		t.Errorf("the next token: %d", status)
	}
	for _, body := range []string{"", "[]", `{"token":""}`, `{"token":7}`, strings.Repeat("x", 2000)} {
		res, err := http.Post(r.http.URL+"/session", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			t.Errorf("the server accepted %.10q instead of a token", body)
		}
	}
}

func TestSocketNeedsTheSession(t *testing.T) {
	r := newRig(t)
	for _, session := range []string{"", "wrong", r.token} {
		if _, err := r.dial(session); err == nil {
			t.Errorf("the socket accepted %q instead of a session", session)
		}
	}
	_, session := r.exchange(r.token)
	r.attach(session)
}

// The script is the committed one, whether a client takes it compressed or not.
func TestScript(t *testing.T) {
	r := newRig(t)
	want, err := os.ReadFile("dist/app.js")
	if err != nil {
		t.Fatal(err)
	}
	for _, plain := range []bool{false, true} {
		client := &http.Client{Transport: &http.Transport{DisableCompression: plain, DisableKeepAlives: true}}
		res, err := client.Get(r.http.URL + "/app.js")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || !bytes.Equal(got, want) || res.Uncompressed == plain {
			t.Errorf("plain %v: %d bytes, want %d; %v", plain, len(got), len(want), err)
		}
	}
}

// Without a session only the page's own files are served, under a policy that keeps
// everything else out.
func TestWebPolicy(t *testing.T) {
	r := newRig(t)
	for path, want := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml", "/sw.js": "text/javascript", "/manifest.json": "application/json"} {
		res, err := http.Get(r.http.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || !strings.HasPrefix(res.Header.Get("Content-Type"), want) {
			t.Errorf("%s: %d, %s", path, res.StatusCode, res.Header.Get("Content-Type"))
		}
		csp := res.Header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types eca-worker"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: no %s in %s", path, part, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || res.Header.Get("Referrer-Policy") != "no-referrer" || res.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, res.Header)
		}
		if strings.Contains(string(body), r.token) {
			t.Errorf("%s has the token", path)
		}
		if path == "/" && (strings.Contains(string(body), "<style") || strings.Contains(string(body), "style=") || strings.Contains(string(body), "<script>")) {
			t.Errorf("the page has something that its policy forbids: %s", body)
		}
	}
	for _, path := range []string{"/nothing", "/../web.go", "/session"} {
		res, err := http.Get(r.http.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode < 400 {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestAnswersGoToThePageThatAsked(t *testing.T) {
	r := newRig(t)
	_, session := r.exchange(r.token)
	one, two := r.attach(session), r.attach(session)
	r.write(one, `{"jsonrpc":"2.0","id":7,"method":"chat/list"}`)
	r.write(two, `{"jsonrpc":"2.0","id":7,"method":"jobs/list"}`)
	for conn, want := range map[*websocket.Conn]string{one: `"result":"chat/list"`, two: `"result":"jobs/list"`} {
		if got := r.read(conn); !strings.Contains(got, want) || !strings.Contains(got, `"id":7`) {
			t.Errorf("%s, want %s", got, want)
		}
	}
	r.say(message{Method: "chat/opened", Params: json.RawMessage(`{"chatId":"c"}`)})
	for _, conn := range []*websocket.Conn{one, two} {
		if got := r.read(conn); !strings.Contains(got, "chat/opened") {
			t.Errorf("notification: %s", got)
		}
	}
}

// A question waits for a page that has not attached yet; the first answer counts, and the
// other pages are notified.
func TestQuestionsWaitForAPage(t *testing.T) {
	r := newRig(t)
	r.awaits(`"initialized"`)
	r.say(message{ID: json.RawMessage("5"), Method: "chat/askQuestion", Params: json.RawMessage(`{"question":"?"}`)})
	r.say(message{ID: json.RawMessage("6"), Method: "chat/askQuestion", Params: json.RawMessage(`{"question":"!"}`)})
	r.say(message{Method: "$/cancelRequest", Params: json.RawMessage(`{"id":6}`)})
	_, session := r.exchange(r.token)
	one, two := r.attach(session), r.attach(session)
	for _, conn := range []*websocket.Conn{one, two} {
		for got := ""; !strings.Contains(got, `"?"`); {
			got = r.read(conn)
		}
	}
	r.write(two, `{"jsonrpc":"2.0","id":5,"result":{"answer":"yes"}}`)
	r.write(two, `{"jsonrpc":"2.0","id":5,"result":{"answer":"no"}}`)
	if m := r.awaits("answer"); !strings.Contains(string(m.Result), "yes") {
		t.Errorf("the answer: %s", m.Result)
	}
	for got := ""; !strings.Contains(got, "$/cancelRequest") || !strings.Contains(got, `"id":5`); {
		got = r.read(one)
	}
	three := r.attach(session)
	r.write(three, `{"jsonrpc":"2.0","id":1,"method":"chat/list"}`)
	if got := r.read(three); !strings.Contains(got, "chat/list") {
		t.Errorf("a page that came after the answer got the question: %s", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.received {
		if strings.Contains(string(m.Result), "no") {
			t.Errorf("the server received a second answer: %s", m.Result)
		}
	}
}

// Only the handler starts and stops the server; pages cannot.
func TestPagesCannotEndTheServer(t *testing.T) {
	r := newRig(t)
	_, session := r.exchange(r.token)
	conn := r.attach(session)
	for _, method := range []string{"initialize", "initialized", "shutdown", "exit"} {
		r.write(conn, fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":%q}`, method))
	}
	r.write(conn, `{"jsonrpc":"2.0","id":3,"method":"chat/list"}`)
	if got := r.read(conn); !strings.Contains(got, `"chat/list"`) {
		t.Errorf("answered: %s", got)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	count := 0
	for _, m := range r.received {
		if m.Method == "initialize" || m.Method == "initialized" {
			count++
		}
		if m.Method == "exit" || m.Method == "shutdown" {
			t.Errorf("the server received %s from a page", m.Method)
		}
	}
	if count > 2 {
		t.Errorf("the server received %d initialize and initialized messages, want 2", count)
	}
}

func TestPagesAreDisconnectedAtTheEnd(t *testing.T) {
	r := newRig(t)
	_, session := r.exchange(r.token)
	conn := r.attach(session)
	r.handler.Close()
	if _, _, err := conn.Read(t.Context()); err == nil {
		t.Error("the page is still connected")
	}
	<-r.handler.Ended()
}

// An invalid message ends only the connection of the page that sent it.
func TestMalformedMessages(t *testing.T) {
	r := newRig(t)
	_, session := r.exchange(r.token)
	good := r.attach(session)
	for _, text := range []string{"", "x", "[]", `"x"`} {
		bad := r.attach(session)
		r.write(bad, text)
		if _, _, err := bad.Read(t.Context()); err == nil {
			t.Errorf("the connection did not end after the invalid message %q", text)
		}
	}
	r.write(good, `{"jsonrpc":"2.0","id":1,"method":"chat/list"}`)
	if got := r.read(good); !strings.Contains(got, "chat/list") {
		t.Errorf("%s", got)
	}
}

// sayMore has the server say more than sockets and outboxes hold.
func (r *rig) sayMore() (messages int, said *atomic.Int64) {
	r.t.Helper()
	messages, said = 560, &atomic.Int64{}
	text, err := json.Marshal(strings.Repeat("x", 40<<10))
	if err != nil {
		r.t.Fatal(err)
	}
	go func() {
		for range messages {
			r.say(message{Method: "chat/contentReceived", Params: text})
			said.Add(1)
		}
	}()
	return messages, said
}

// A page that does not read delays no other page, and is disconnected.
func TestPageThatDoesNotRead(t *testing.T) {
	r := newRig(t)
	r.handler.session.maxReadPause = time.Hour
	_, session := r.exchange(r.token)
	asleep, awake := r.attach(session), r.attach(session)
	defer time.AfterFunc(time.Minute, func() { _ = awake.CloseNow() }).Stop()
	messages, _ := r.sayMore()
	awake.SetReadLimit(-1)
	for range messages {
		r.read(awake)
	}
	asleep.SetReadLimit(-1)
	for n := 0; ; n++ {
		if _, _, err := asleep.Read(t.Context()); err != nil {
			break
		} else if n == messages {
			t.Fatal("the page that does not read was not disconnected")
		}
	}
}

// While its only page does not read, the server waits. When the page reads again, it gets all messages.
func TestServerWaitsForThePages(t *testing.T) {
	r := newRig(t)
	r.handler.session.maxReadPause = time.Hour
	_, session := r.exchange(r.token)
	conn := r.attach(session)
	messages, said := r.sayMore()
	for before := int64(-1); before != said.Load(); time.Sleep(200 * time.Millisecond) {
		before = said.Load()
	}
	if int(said.Load()) == messages {
		t.Error("the server did not wait")
	}
	conn.SetReadLimit(-1)
	for range messages {
		r.read(conn)
	}
}

// If no page reads for long, the pages are disconnected.
func TestPagesThatDoNotReadAreDisconnected(t *testing.T) {
	r := newRig(t)
	r.handler.session.maxReadPause = 100 * time.Millisecond
	_, session := r.exchange(r.token)
	conn := r.attach(session)
	messages, said := r.sayMore()
	for int(said.Load()) < messages {
		time.Sleep(10 * time.Millisecond)
	}
	conn.SetReadLimit(-1)
	for n := 0; ; n++ {
		if _, _, err := conn.Read(t.Context()); err != nil {
			break
		} else if n == messages {
			t.Fatal("the page was not disconnected")
		}
	}
}

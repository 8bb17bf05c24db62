package remote_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	chatevent "github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// rawStream opens a stream whose bytes its caller reads, or does not.
func (r *rig) rawStream(token string) net.Conn {
	r.t.Helper()
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", r.port))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.(*net.TCPConn).SetReadBuffer(256 << 10); err != nil {
		r.t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n\r\n", token)
	return conn
}

// A stream has whole events with one line of JSON each, begins with the state, and has a comment when
// nothing happens for a while, also while another stream of the device hangs.
func TestFrames(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: 'One.'}]\n", nil, nil)
	r.rawStream(r.token) // it is not read
	conn := r.rawStream(r.token)
	var all strings.Builder
	lines := bufio.NewReader(conn)
	read := func() string {
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after\n%s", err, all.String())
		}
		all.WriteString(line)
		return line
	}
	for !strings.HasPrefix(read(), "data: ") { // the stream is connected
	}
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	for read() != ":\n" {
	}
	_, body, _ := strings.Cut(all.String(), "\r\n\r\n")
	body = regexp.MustCompile(`(?m)^[0-9a-f]+\r\n|\r\n`).ReplaceAllString(body, "") // the chunks of HTTP
	blocks := strings.Split(strings.TrimSuffix(body, ":\n"), "\n\n")
	form := regexp.MustCompile(`^event: [a-z:-]+\n(id: \S+\n)?data: (.*)$`)
	for i, block := range blocks {
		m := form.FindStringSubmatch(block)
		switch {
		case block == ":" || block == "" && i == len(blocks)-1:
		case m == nil || !json.Valid([]byte(m[2])) || strings.Contains(block, "\r"):
			t.Errorf("event %d: %q", i, block)
		case (i == 0) != strings.HasPrefix(block, "event: session:connected\n"):
			t.Errorf("event %d is %q", i, block)
		}
	}
	if !strings.Contains(body, "One.") {
		t.Error(body)
	}
}

// Of 1,000 chats the newest 200 are listed, oldest first, and the first event stays small.
func TestManyChats(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns: []\n", nil, nil)
	r.end()
	s := store.New(r.world.State())
	const chats = 1000
	for i := range chats {
		at := time.Now().Add(time.Duration(i-chats) * time.Minute)
		meta := chat.Meta{ID: fmt.Sprintf("chat-%d", i), Title: strings.Repeat("A rather long title ", 5), Roots: []string{r.world.Root}, Created: at, Updated: at}
		if err := s.Append(t.Context(), meta, []chatevent.Event{{Seq: 1, Time: at, Body: chatevent.UserMessage{ContentID: "u", Text: "hi"}}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	r.start(nil)
	_, first := r.events(r.token, "").await(0, "session:connected")
	_, list := r.do("GET", "/chats", nil)
	var state struct{ Chats json.RawMessage }
	var chatsListed []struct{ ID string }
	if err := json.Unmarshal([]byte(first.data), &state); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(list), &chatsListed); err != nil {
		t.Fatal(err)
	}
	if len(first.data) > 300_000 || string(state.Chats) != list {
		t.Errorf("%d bytes; the same list: %v", len(first.data), string(state.Chats) == list)
	}
	if n := len(chatsListed); n != 200 || chatsListed[0].ID != "chat-800" || chatsListed[n-1].ID != "chat-999" {
		t.Errorf("%d chats: %.200s", n, list)
	}
}

// Six pages of one browser over HTTP/1.1, which has six connections, leave calls possible; over HTTP/2,
// twenty pages are shown everything.
func TestManyTabs(t *testing.T) {
	t.Parallel()
	ca := testkit.NewAuthority(t, "ca")
	c := ca.Issue(testkit.Tomorrow(), "one.example", "127.0.0.1")
	cert, key := ca.Write("c.pem", testkit.CertPEM(c)), ca.Write("c.key", testkit.PEM("PRIVATE KEY", testkit.PKCS8(t, c.PrivateKey)))
	pem, err := os.ReadFile(ca.File())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	for version, tabs := range map[int]int{1: 6, 2: 20} {
		t.Run(fmt.Sprint("HTTP ", version), func(t *testing.T) {
			t.Parallel()
			settings, scheme, transport := object{}, "http", &http.Transport{MaxConnsPerHost: 6}
			if version == 2 {
				settings, scheme = object{"bindHost": "127.0.0.1", "tls": object{"certFile": cert, "keyFile": key}}, "https"
				transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "one.example"}, ForceAttemptHTTP2: true}
			}
			r := newRig(t, "turns:\n  - steps: [{text: Hello.}]\n", object{"remote": settings}, nil)
			t.Cleanup(transport.CloseIdleConnections)
			browser := &http.Client{Transport: transport}
			ctx, cancel := context.WithCancel(t.Context())
			call := func(method, path string, body any) *http.Response {
				t.Helper()
				req := r.request(r.token, method, path, body)
				req.URL.Scheme = scheme
				res, err := browser.Do(req.WithContext(ctx))
				if err != nil || res.ProtoMajor != version {
					t.Fatalf("%s: %v", path, err)
				}
				return res
			}
			var mu sync.Mutex
			var shown []string
			var reading sync.WaitGroup
			for range tabs {
				res := call("GET", "/api/v1/events", nil)
				reading.Go(func() {
					defer res.Body.Close()
					var all strings.Builder
					for lines := bufio.NewReader(res.Body); ; {
						line, err := lines.ReadString('\n')
						if all.WriteString(line); err != nil || strings.Contains(line, `"state":"finished"`) {
							break
						}
					}
					mu.Lock()
					defer mu.Unlock()
					shown = append(shown, all.String())
				})
			}
			res := call("POST", "/api/v1/chats/c/prompt", object{"message": "go"})
			if _, err := io.Copy(io.Discard, res.Body); err != nil || res.StatusCode != http.StatusOK {
				t.Fatal(res.Status, err)
			}
			_ = res.Body.Close()
			reading.Wait()
			cancel()
			ended := 0
			for _, all := range shown {
				if strings.Contains(all, "Too many pages are open") && strings.Contains(all, "retry: 20000\n") {
					ended++
				} else if !strings.Contains(all, "Hello.") {
					t.Errorf("a page was shown only %s", all)
				}
			}
			if want := map[int]int{1: 2}[version]; ended != want {
				t.Errorf("%d pages were disconnected, not %d", ended, want)
			}
		})
	}
}

package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// numberedText is a text of n different words.
func numberedText(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "w%d ", i)
	}
	return b.String()
}

// remoteTape is what the model answers in the tests of pages. Each word of a long answer is a delta.
var remoteTape = `cassette: 1
turns:
  - user: '^fast'
    steps: [{text: "` + numberedText(5000) + `end", delay: 2ms}]
  - user: '^slow'
    steps: [{text: "` + numberedText(2500) + `end", delay: 190ms}]
  - user: '^count'
    steps: [{text: "` + numberedText(2500) + `end", delay: 4ms}]
  - user: '^long command'
    steps: [{calls: [{id: l1, tool: eca__shell_command, arguments: {command: "` + strings.Repeat("printf '%s' a-rather-long-argument >> out.txt && ", 12) + `echo the-end-of-the-command"}}]}, {text: Long done.}]
` + dayTurns + `default: {steps: [{text: There is no answer to that.}]}
`

// browserRig is what a page in a browser has around it: eca with an editor, and a web server.
type browserRig struct {
	*process
	t      *testing.T
	place  place
	site   *httptest.Server
	secure *httptest.Server // the same over HTTPS
	token  string
	port   string   // of eca
	others []string // ports of further servers
	line   *line    // to eca
}

// line forwards connections to an address, and can be cut.
type line struct {
	net.Listener
	to string

	mu    sync.Mutex // guards the fields below
	down  bool
	conns []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &line{Listener: listener, to: to}
	t.Cleanup(func() { listener.Close(); l.cut(true) })
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", l.to)
			l.mu.Lock()
			if err != nil || l.down {
				from.Close()
			} else {
				l.conns = append(l.conns, from, to)
				go func() { _, _ = io.Copy(to, from); to.Close() }()
				go func() { _, _ = io.Copy(from, to); from.Close() }()
			}
			l.mu.Unlock()
		}
	}()
	return l
}

// cut closes all connections, and new ones at once until the line is mended.
func (l *line) cut(down bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.down = down
	for _, conn := range l.conns {
		conn.Close()
	}
	l.conns = nil
}

// newBrowserRig starts eca with the remote server, after prepare, and a web server with the files of a folder and
// with controls for the test's program: /control/prompt?chat=C&text=T prompts in the editor,
// /control/saw?method=M&part=P waits for what the editor sees, /control/asked?part=P fails unless the last
// request to the model has that part, /control/cut?down=true cuts the line to eca until down=false mends it,
// and /control/kill?chat=C kills eca, starts it again, and returns the last answer of the chat in the editor.
func newBrowserRig(t *testing.T, files, rights string, prepare ...func(place)) *browserRig {
	t.Helper()
	r := &browserRig{t: t}
	mux := http.NewServeMux()
	mux.HandleFunc("/control/prompt", func(_ http.ResponseWriter, q *http.Request) {
		r.Call("chat/prompt", map[string]any{"chatId": q.FormValue("chat"), "message": q.FormValue("text")})
	})
	mux.HandleFunc("/control/cut", func(_ http.ResponseWriter, q *http.Request) {
		r.line.cut(q.FormValue("down") == "true")
	})
	mux.HandleFunc("/control/kill", func(w http.ResponseWriter, q *http.Request) {
		r.kill9(t)
		r.start()
		mark, answer := r.Mark(), ""
		r.Call("chat/open", map[string]any{"chatId": q.FormValue("chat")})
		for _, m := range r.Since(mark) {
			var p struct {
				Role    string
				Content struct{ Type, Text string }
			}
			if m.Method != "chat/contentReceived" || json.Unmarshal(m.Params, &p) != nil || p.Content.Type != "text" {
				continue
			}
			switch p.Role {
			case "user":
				answer = ""
			case "assistant":
				answer += p.Content.Text
			}
		}
		_, _ = io.WriteString(w, answer)
	})
	mux.HandleFunc("/control/saw", func(_ http.ResponseWriter, q *http.Request) {
		r.Await(0, "what the page did", fake.Contains(q.FormValue("method"), q.Form["part"]...))
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, q *http.Request) {
		path := filepath.Join(files, filepath.Clean(q.URL.Path))
		if info, err := os.Stat(path); files == "" || err != nil || info.IsDir() {
			path = filepath.Join(files, "index.html")
		}
		http.ServeFile(w, q, path)
	})
	r.site, r.secure = httptest.NewServer(mux), httptest.NewTLSServer(mux)
	t.Cleanup(r.site.Close)
	t.Cleanup(r.secure.Close)
	provider := newProvider(t, remoteTape)
	mux.HandleFunc("/control/asked", func(w http.ResponseWriter, q *http.Request) {
		if asked, _ := json.Marshal(provider.last(t)); !strings.Contains(string(asked), q.FormValue("part")) {
			http.Error(w, string(asked), http.StatusNotFound)
		}
	})
	settings, err := json.Marshal(map[string]any{
		"chat":   map[string]any{"title": false},
		"remote": map[string]any{"enabled": true, "push": true, "origins": []string{onLocalhost(r.site), onLocalhost(r.secure)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	outside := recordProxy(t)
	r.place = newPlace(t, append(provider.env(), "ECA_CONFIG="+string(settings), "HTTP_PROXY="+outside, "HTTPS_PROXY="+outside)...)
	if err := os.WriteFile(filepath.Join(r.place.root, "old.txt"), []byte("first\nsecond\nthird\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range prepare {
		p(r.place)
	}
	r.start()
	out, err := r.place.command("remote", "pair", "--name", "page", "--rights", rights).Output()
	found := regexp.MustCompile(`(?s)Token: (\S+).*http://eca\.localhost:(\d+)/`).FindSubmatch(out)
	if err != nil || found == nil {
		t.Fatalf("eca remote pair: %v\n%s", err, out)
	}
	r.token, r.port = string(found[1]), string(found[2])
	r.line = newLine(t, "127.0.0.1:"+r.port)
	return r
}

// start starts eca with an editor.
func (r *browserRig) start() {
	r.t.Helper()
	r.process = r.place.serve(r.t)
	r.Open(r.place.root, nil)
	r.Await(0, "the remote server", fake.Contains("$/progress", `"finish"`, `"remote-server"`))
}

// onLocalhost returns the URL of a web server at localhost.
func onLocalhost(s *httptest.Server) string {
	return strings.Replace(s.URL, "127.0.0.1", "localhost", 1)
}

// recordProxy returns the URL of a proxy, and fails the test if eca connects to another machine through
// it. Connections to this machine need no proxy.
func recordProxy(t *testing.T) string {
	t.Helper()
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		t.Errorf("eca wanted to connect to %s", q.Host)
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	return proxy.URL
}

// drive runs one of the programs in testdata/remote with Chromium.
func (r *browserRig) drive(script string) { r.driveWith("chromium", script) }

// driveWith runs one of the programs in testdata/remote with a browser.
func (r *browserRig) driveWith(browser, script string) {
	r.t.Helper()
	program := needs.Program(r.t, browser, browser)
	node, modules := testkit.NodeTools(r.t, os.Getenv, "playwright-core")
	given, err := json.Marshal(map[string]any{
		"site": onLocalhost(r.site), "secure": onLocalhost(r.secure), "host": "eca.localhost:" + r.port, "port": r.port,
		"others": append([]string{}, r.others...), "line": fmt.Sprint("eca.localhost:", r.line.Addr().(*net.TCPAddr).Port),
		"client": os.Getenv("ECA_WEB_CLIENT") != "", "token": r.token, "root": r.place.root, "modules": modules, "browser": program, "patience": 60_000,
		"pictures": os.Getenv("ECA_WEB_PICTURES"), "soak": os.Getenv("ECA_REMOTE_SOAK") != "", "kills": cmp.Or(os.Getenv("REMOTE_KILLS"), "2"),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), node, "--experimental-websocket", filepath.Join("testdata", "remote", script), string(given))
	cmd.Env = append(slices.Clone(r.place.env), "HTTP_PROXY=", "HTTPS_PROXY=") // the requests of a browser do not count
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	cmd.WaitDelay = 10 * time.Second // a browser that is left running has its output open
	out, err := cmd.Output()
	r.t.Logf("went well:\n%s", out)
	if err != nil {
		r.t.Errorf("%v\n%s", err, stderr.String())
	}
}

// TestRemotePhone uses our own page in Chromium as it is on a phone: testdata/remote/phone.mjs taps
// and looks. ECA_WEB_PICTURES is a folder for screenshots.
func TestRemotePhone(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	newBrowserRig(t, "", "control").drive("phone.mjs")
}

// TestRemotePush turns notifications on in our own page in Chromium, by a device that may only watch,
// and has its service worker show some: testdata/remote/push.mjs.
func TestRemotePush(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	newBrowserRig(t, "", "watch").drive("push.mjs")
}

// TestRemoteFirefox uses our own page in Firefox and, if ECA_WEB_CLIENT is set, the reference's, and calls
// the API from a page on localhost: testdata/remote/firefox.mjs.
func TestRemoteFirefox(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	newBrowserRig(t, os.Getenv("ECA_WEB_CLIENT"), "control").driveWith("firefox-esr", "firefox.mjs")
}

// webClient returns the folder with the reference's built web client.
func webClient(t *testing.T) string {
	t.Helper()
	needs.Long(t)
	needs.POSIX(t)
	files := os.Getenv("ECA_WEB_CLIENT")
	if files == "" {
		t.Skip("NOT TESTED: the reference's web client is missing; set ECA_WEB_CLIENT to the folder dist of a checkout of editor-code-assistant/eca-web, built with npm ci && npm run build")
	}
	return files
}

// TestReferenceWebClient uses the reference's web client, unchanged, in Chromium:
// testdata/remote/client.mjs types, clicks and looks. ECA_WEB_CLIENT names the folder with its built
// page. With ECA_REMOTE_SOAK, it loads 200 times while a chat streams.
func TestReferenceWebClient(t *testing.T) {
	newBrowserRig(t, webClient(t), "trust").drive("client.mjs")
}

// TestRemoteKills has our own page and, if ECA_WEB_CLIENT is set, the reference's watch a chat of an
// editor while eca is killed: testdata/remote/kills.mjs. REMOTE_KILLS is how often.
func TestRemoteKills(t *testing.T) {
	needs.Long(t)
	needs.POSIX(t)
	newBrowserRig(t, os.Getenv("ECA_WEB_CLIENT"), "control", func(here place) {
		text := fmt.Sprintf(`{"remote": {"port": %d}}`, testkit.FreePort(t)) // the same after each kill
		dir := filepath.Join(here.root, "..", "config", "eca")
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}).drive("kills.mjs")
}

// TestReferenceWebClientWithManyChats has 1,000 chats: testdata/remote/many.mjs.
func TestReferenceWebClientWithManyChats(t *testing.T) {
	newBrowserRig(t, webClient(t), "trust", func(here place) {
		s := store.New(filepath.Join(filepath.Dir(here.root), "state", "eca"))
		const chats = 1000
		for i := range chats {
			at := time.Now().Add(time.Duration(i-chats) * time.Minute)
			meta := chat.Meta{ID: fmt.Sprintf("chat-%d", i), Title: fmt.Sprintf("Number %d", i), Roots: []string{here.root}, Created: at, Updated: at}
			if err := s.Append(t.Context(), meta, []event.Event{{Seq: 1, Time: at, Body: event.UserMessage{ContentID: "u", Text: fmt.Sprintf("This is %d.", i)}}}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}).drive("many.mjs")
}

// TestReferenceWebClientOverBadLines does the same with several servers, lines that are cut, and chats
// that run at the same time: testdata/remote/lines.mjs. With ECA_REMOTE_SOAK, it selects running chats 200
// times, and cuts for up to six minutes.
func TestReferenceWebClientOverBadLines(t *testing.T) {
	r := newBrowserRig(t, webClient(t), "trust")
	second := r.place.serve(t)
	second.Open(r.place.root, nil)
	second.Await(0, "the second remote server", fake.Contains("$/showMessage", "remote server", "at port"))
	for _, m := range second.Since(0) {
		if found := regexp.MustCompile(`at port (\d+)`).FindSubmatch(m.Params); m.Method == "$/showMessage" && found != nil {
			r.others = append(r.others, string(found[1]))
		}
	}
	r.drive("lines.mjs")
}

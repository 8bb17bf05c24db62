package server_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

// apis are the wire formats that the matrix is played in.
var apis = slices.DeleteFunc(config.WireFormats(), func(api string) bool {
	return api == "openai" || api == "cassette" // an earlier name, and one without a server
})

// fault is one way in which a provider can fail.
type fault struct {
	name, what string
	steps      string                                // script of its server (llm/cassette)
	bytes      func(api string, whole []byte) []byte // the part of the answer that is sent; nil: all
	then       ending
	mime       string         // content type, unless it is the format's
	url        string         // replaces the server's URL; such a fault never ends
	tls        bool           // the server's certificate is signed by an unknown authority
	config     map[string]any // of the provider: short time limits. Such a fault never ends, so healthy answers need not meet the limits
}

// ending is what happens after the bytes.
type ending int

const (
	finish ending = iota
	cut           // the connection closes
	hang
	trickle // bytes without content, endlessly
)

// words is an answer of two deltas.
const words = `{text: "FIRST SECOND"}`

func upTo(mark string) func(string, []byte) []byte {
	return func(_ string, whole []byte) []byte { return whole[:bytes.Index(whole, []byte(mark))] }
}

func status(code int, more string) string {
	return fmt.Sprintf(`{error: {status: %d, message: "reason"%s}}`, code, more)
}

// faults is the other axis of the matrix.
func faults() []fault {
	// Long enough that a request reaches a server on a busy machine.
	limit := func(key string) map[string]any { return map[string]any{key: 2} }
	list := []fault{
		{name: "refused", what: "No server listens at the address.", url: noServer},
		{name: "dns", what: "The host has no address.", url: "http://no..such..host"},
		{name: "tls", what: "The server's certificate is signed by an authority that is not trusted.", tls: true},
	}
	for _, code := range []int{400, 401, 403, 404, 408, 413, 429} {
		list = append(list, fault{name: fmt.Sprint(code), what: fmt.Sprintf("The server answers %d %s.", code, http.StatusText(code)), steps: status(code, "")})
	}
	return append(list,
		fault{name: "429-delay", what: "The server answers 429 Too Many Requests, and says when to try again.", steps: status(429, ", retryAfter: 0.01")},
		fault{name: "429-hour", what: "The server answers 429 Too Many Requests, and says to try again in an hour, which is longer than `rateLimitMaxWaitSeconds`.", steps: status(429, ", retryAfter: 3600")},
		fault{name: "500", what: "The server answers 500 Internal Server Error.", steps: status(500, "")},
		fault{name: "529", what: "The server answers 529: overloaded.", steps: status(529, "")},
		fault{name: "cut-before", what: "The connection closes before the first delta.", steps: words, bytes: upTo("FIRST"), then: cut},
		fault{name: "cut-after", what: "The connection closes after the first delta.", steps: words, bytes: upTo("SECOND"), then: cut},
		fault{name: "cut-in-call", what: "The connection closes in the middle of a tool call.", steps: `{calls: [{tool: eca__read_file, arguments: {path: "/CUT.txt"}}]}`, bytes: upTo("CUT"), then: cut},
		fault{name: "end-before", what: "The stream ends normally before the first delta.", steps: `{cut: true}`},
		fault{name: "end-after", what: "The stream ends after a delta, without the event that ends an answer.", steps: `{text: "FIRST", cut: true}`},
		fault{name: "garbage", what: "The stream is not in the format that its content type names.", steps: words, bytes: func(string, []byte) []byte { return []byte("data: {%%%\n\n{%%%\n\n" + strings.Repeat("%", 20)) }},
		fault{name: "garbage-after", what: "After the first delta, an event of the stream cannot be read.", steps: words, bytes: func(_ string, whole []byte) []byte {
			return bytes.Replace(whole, []byte("SECOND"), []byte(`SEC"ND`), 1)
		}},
		fault{name: "content-type", what: "The server answers with a web page, as gateways and login pages do.", steps: words, mime: "text/html; charset=utf-8", bytes: func(string, []byte) []byte { return []byte("<html><body>Please log in</body></html>") }},
		fault{name: "silence-before", what: "The server sends nothing within `firstByteTimeoutSeconds`.", steps: words, bytes: upTo(""), then: hang, config: limit("firstByteTimeoutSeconds")},
		fault{name: "silence-after", what: "After the first delta, the server sends nothing within `streamIdleTimeoutSeconds`.", steps: words, bytes: upTo("SECOND"), then: hang, config: limit("streamIdleTimeoutSeconds")},
		fault{name: "keep-alives", what: "The server sends only keep-alives within `requestTimeoutSeconds`.", steps: words, bytes: upTo(""), then: trickle, config: limit("requestTimeoutSeconds")},
		fault{name: "huge-line", what: "The server sends an event of more than 16 MiB.", steps: words, bytes: hugeEvent},
		fault{name: "error-before", what: "The stream contains an error in place of an answer.", steps: status(503, ", late: true")},
		fault{name: "error-after", what: "The stream contains an error after a delta.", steps: `{text: "FIRST", error: {status: 503, message: "reason", late: true}}`},
		fault{name: "arguments", what: "The model calls a tool with arguments that are invalid JSON.", steps: `{calls: [{tool: eca__read_file, rawArguments: '{"path": '}]}, {text: "I see"}`},
	)
}

const tooMuch = 17 << 20

func hugeEvent(api string, _ []byte) []byte {
	filler := strings.Repeat("x", tooMuch)
	if api == "bedrock" {
		head := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, tooMuch), 0)
		return append(binary.BigEndian.AppendUint32(head, crc32.ChecksumIEEE(head)), filler...)
	}
	return []byte("data: " + filler)
}

// TestFaults plays each fault in each API, first in all requests of a turn, then in the first request
// only. After each fault, the same chat continues with a history that the API would accept.
// docs/faults.md shows the outcomes.
func TestFaults(t *testing.T) {
	needs.Long(t)
	if runtime.GOOS != "linux" {
		t.Skip("NOT TESTED: other systems have words of their own for errors of the network; run it on Linux")
	}
	found := outcomes{}
	t.Run("matrix", func(t *testing.T) {
		for _, api := range apis {
			t.Run(api, func(t *testing.T) {
				t.Parallel()
				playFaults(t, api, found.add)
			})
		}
	})
	if !t.Failed() && len(found.cells) == len(apis)*len(faults()) {
		found.compare(t)
	}
}

// playFaults plays all faults in one API, in one daemon.
func playFaults(t *testing.T, api string, add func(f fault, api string, lasting, once outcome)) {
	healthy, err := cassette.Parse([]byte("cassette: 1\nturns: []\ndefault: {steps: [{text: fine}, {text: fine}]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	servers, providers := map[string]*faulty{}, map[string]any{}
	for _, f := range faults() {
		s := newFaulty(t, f, api, healthy)
		servers[f.name] = s
		p := map[string]any{
			"api": api, "url": s.url + "/v1", "key": "sk-mock", "fetchModels": false, "rateLimitMaxWaitSeconds": 60,
			"retry":  map[string]any{"baseDelayMs": 0, "maxRetries": 2, "prematureStopMaxRetries": 1, "maxAutoContinues": 1},
			"models": map[string]any{"m": map[string]any{"limit": map[string]any{"context": 100_000, "output": 1000}}},
		}
		merge(p, f.config)
		providers["acme-"+f.name] = p
	}
	// A single tool, because the tools' descriptions affect how often a request is shortened.
	config := map[string]any{"providers": providers, "disabledTools": []string{"(?!read_file).*"}}
	r := newRig(t, options{api: api, model: "cassette: 1\nturns: []\ndefault: {steps: [{text: fine}]}\n", config: config})
	r.Await(0, "the start", fake.Ready())
	// The time limits pass while the other faults are played.
	lasting := map[string]func() outcome{}
	for _, f := range faults() {
		if f.config != nil {
			lasting[f.name] = begin(t, r, servers[f.name], f, "go", "acme-"+f.name+"/m", lasts)
		}
	}
	list := slices.DeleteFunc(faults(), func(f fault) bool { return f.config != nil })
	list = append(list, slices.DeleteFunc(faults(), func(f fault) bool { return f.config == nil })...)
	for _, f := range list {
		s, model := servers[f.name], "acme-"+f.name+"/m"
		end, begun := lasting[f.name]
		if !begun {
			end = begin(t, r, s, f, "go", model, lasts)
		}
		lasting := end()
		if lasting.end == "" || lasting.requests == 0 && f.url == "" && !f.tls {
			t.Errorf("%s: the turn did not end, or sent no request: %+v", f.name, lasting)
		}
		once, next := outcome{}, model
		if f.endless() {
			next = "mock/m" // the user chooses another provider
		}
		checkContinues(t, r, s, f, api, next)
		if !f.endless() {
			once = play(t, r, s, f, "once", model, happensOnce)
			checkContinues(t, r, s, f, api, model)
		}
		add(f, api, lasting, once)
	}
}

// endless reports whether the provider never recovers.
func (f fault) endless() bool { return f.url != "" || f.tls || f.config != nil }

// checkContinues prompts the chat of a fault after the provider has recovered.
func checkContinues(t *testing.T, r *rig, s *faulty, f fault, api, model string) {
	t.Helper()
	// The text is so long that a later request becomes shorter without it.
	text := "again " + strings.Repeat("and again ", 400)
	r.mu.Lock()
	before := len(r.requests)
	r.mu.Unlock()
	got := play(t, r, s, f, text, model, healthyNow)
	if got.end != "done" || got.shown != "“fine”" || got.requests > 1 {
		t.Errorf("%s: the next prompt: %+v", f.name, got)
	}
	s.mu.Lock()
	path, body := s.path, s.body
	s.mu.Unlock()
	r.mu.Lock()
	if len(r.requests) > before {
		path, body = r.requests[len(r.requests)-1].path, r.requests[len(r.requests)-1].body
	}
	r.mu.Unlock()
	if err := validHistory(api, path, body, strings.TrimSpace(text)); err != nil {
		t.Errorf("%s: the history after it: %v\n%s", f.name, err, body)
	}
}

// play prompts the chat of a fault, waits for the end of the turn, and returns its outcome.
func play(t *testing.T, r *rig, s *faulty, f fault, text, model string, m mode) outcome {
	t.Helper()
	return begin(t, r, s, f, text, model, m)()
}

// begin is play in two steps: the returned function waits.
func begin(t *testing.T, r *rig, s *faulty, f fault, text, model string, m mode) (end func() outcome) {
	t.Helper()
	s.begin(m)
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": f.name, "message": text, "model": model})
	return func() outcome {
		t.Helper()
		r.Await(mark, f.name+": the end", fake.Contains("chat/contentReceived", `"`+f.name+`"`, `"state":"finished"`))
		out := look(t, r.Since(mark), f)
		s.mu.Lock()
		defer s.mu.Unlock()
		out.requests = s.requests
		return out
	}
}

// mode says how often a faulty server fails.
type mode int

const (
	lasts mode = iota
	happensOnce
	healthyNow
)

// faulty is a provider's server that fails.
type faulty struct {
	fault   fault
	api     string
	url     string
	broken  http.Handler
	healthy http.Handler

	mu       sync.Mutex // guards the fields below
	mode     mode
	requests int    // for models, since the last begin
	path     string // of the last request
	body     []byte
}

func newFaulty(t *testing.T, f fault, api string, healthy *cassette.Player) *faulty {
	t.Helper()
	s := &faulty{fault: f, api: api, url: f.url}
	if f.url != "" {
		return s
	}
	steps := f.steps
	if steps == "" {
		steps = words
	}
	player, err := cassette.Parse([]byte("cassette: 1\nturns: []\ndefault: {steps: [" + steps + "]}\n"))
	if err != nil {
		t.Fatal(err)
	}
	s.broken, s.healthy = player.Handler(nil), healthy.Handler(nil)
	server := httptest.NewUnstartedServer(s)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that fail on purpose
	if f.tls {
		server.StartTLS()
	} else {
		server.Start()
	}
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *faulty) begin(m mode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode, s.requests = m, 0
}

// ServeHTTP answers requests for models with the fault or without it.
func (s *faulty) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/api/show") {
		s.healthy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	s.mu.Lock()
	s.requests++
	s.path, s.body = r.URL.Path, body
	broken := s.mode == lasts || s.mode == happensOnce && s.requests == 1
	s.mu.Unlock()
	if !broken {
		s.healthy.ServeHTTP(w, r)
		return
	}
	s.fail(w, r)
}

func (s *faulty) fail(w http.ResponseWriter, r *http.Request) {
	whole := httptest.NewRecorder()
	func() {
		// Cassettes cut streams by a panic.
		defer func() { _ = recover() }() //nolint:errcheck // no other panic is possible
		s.broken.ServeHTTP(whole, r)
	}()
	send := whole.Body.Bytes()
	if s.fault.bytes != nil {
		send = s.fault.bytes(s.api, send)
	}
	for k, v := range whole.Header() {
		w.Header()[k] = v
	}
	if s.fault.mime != "" {
		w.Header().Set("Content-Type", s.fault.mime)
	}
	w.WriteHeader(whole.Code)
	_, _ = w.Write(send)
	flush := w.(http.Flusher).Flush
	flush()
	switch s.fault.then {
	case cut:
		panic(http.ErrAbortHandler)
	case hang:
		<-r.Context().Done()
	case trickle:
		s.trickle(w, r, whole.Body.Bytes(), flush)
	}
}

// trickle sends data that keeps a connection alive: comments, blank lines, or, in formats without
// these, single bytes of an event that is never complete.
func (s *faulty) trickle(w io.Writer, r *http.Request, whole []byte, flush func()) {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		alive := []byte(": alive\n\n")
		switch {
		case s.api == "ollama":
			alive = []byte("\n")
		case s.api == "bedrock" && i < 50:
			alive = whole[i : i+1]
		case s.api == "bedrock":
			continue
		}
		_, _ = w.Write(alive)
		flush()
	}
}

// outcome is the result of a turn as the client sees it.
type outcome struct {
	requests int
	shown    string
	end      string // reason of the one terminal event
}

// look reads the outcome of a turn from the client's messages.
func look(t *testing.T, messages []fake.Message, f fault) outcome {
	t.Helper()
	var out outcome
	var shown []string
	said := "" // the model's text since other output was shown: where a text is split depends on the machine
	flush := func() {
		if said != "" {
			shown = append(shown, "“"+strings.TrimSpace(said)+"”")
		}
		said = ""
	}
	show := func(s string) {
		flush()
		shown = append(shown, s)
	}
	for _, m := range messages {
		var p struct {
			ChatID  string
			Role    string
			Content struct {
				Type, Text, State, Reason, Name string
				Error                           bool
				Outputs                         []struct{ Text string }
			}
		}
		if m.Method != "chat/contentReceived" {
			continue
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			t.Fatal(err)
		}
		switch c := p.Content; {
		case p.ChatID != f.name || p.Role == "user":
		case c.State == "finished":
			if out.end != "" {
				t.Errorf("%s: a second end", f.name)
			}
			out.end = c.Reason
		case c.Type == "progress" && strings.HasPrefix(c.Text, "⏳"):
			show("*" + c.Text + "*")
		case c.Type == "text" && p.Role == "assistant":
			said += c.Text
		case c.Type == "text":
			show("**" + strings.Join(strings.Fields(c.Text), " ") + "**")
		case c.Type == "toolCallRejected":
			show("the call is withdrawn")
		case c.Type == "toolCalled":
			show("the call fails: " + c.Outputs[0].Text)
		}
	}
	flush()
	out.shown = normalize(strings.Join(shown, " · "), f)
	return out
}

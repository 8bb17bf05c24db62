package remote_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/editors/web"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
	"github.com/seed-dec29ce4/eca/remote"
	"github.com/seed-dec29ce4/eca/server"
)

func TestMain(m *testing.M) {
	if state := os.Getenv("REMOTE_TEST_STATE"); state != "" { // a daemon that is killed
		d := daemon.New(daemon.Options{StateDir: state, CacheDir: state})
		attach(d, state, os.Getenv("REMOTE_TEST_ROOT"), slog.Default())
		_ = server.Serve(context.Background(), os.Stdin, os.Stdout, server.Options{Host: d, Version: "test"})
		d.Close()
		return
	}
	daemontest.Main(m)
}

// attach has a daemon run the remote server.
func attach(d *daemon.Daemon, state, root string, log *slog.Logger) {
	join := func(ctx context.Context, in io.Reader, out io.Writer, follow bool) error {
		return server.Serve(ctx, in, out, server.Options{Host: d, Version: "test", Shared: true, Follow: follow, Log: log})
	}
	d.AttachRemote(remote.New(remote.Options{
		Engine: d.Engine(), Config: d.Config, Watch: d.Watch, Roots: d.Roots, Serve: join, StateDir: state, Version: "test", Log: log,
		Limit: func(l net.Listener) net.Listener { return l },
		Page: func(ctx context.Context, g remote.Gate) http.Handler {
			h, _ := web.New(ctx, web.Options{
				Serve:  func(ctx context.Context, in io.Reader, out io.Writer) error { return join(ctx, in, out, false) },
				Folder: root, Version: "test", Log: log, Gate: g,
			})
			return h
		},
	}))
}

// syncBuffer is a log that tests read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// rig is a daemon with an editor on pipes and the remote server.
type rig struct {
	*fake.Editor
	t       *testing.T
	world   *daemontest.World
	daemon  *daemon.Daemon
	devices *remote.Devices
	port    int
	log     *syncBuffer
	token   string // of a device with all rights
	end     func()
}

type object = map[string]any

// newRig starts a daemon whose model plays a cassette. capabilities are the editor's for chats.
func newRig(t *testing.T, model string, settings, capabilities object) *rig {
	t.Helper()
	port := freePort(t)
	w := daemontest.New(t, model, func(c object) {
		c["remote"] = object{"enabled": true, "port": port}
		for key, value := range settings {
			if key == "remote" {
				for k, v := range value.(object) {
					c["remote"].(object)[k] = v
				}
				continue
			}
			c[key] = value
		}
	})
	r := &rig{t: t, world: w, port: port, devices: remote.OpenDevices(w.State(), time.Now)}
	r.start(capabilities)
	r.token, _ = r.pair(remote.Trust)
	t.Cleanup(func() { r.end() })
	return r
}

// start starts the daemon of a rig, and an editor.
func (r *rig) start(capabilities object) {
	r.t.Helper()
	d := r.world.Daemon()
	r.daemon, r.log = d, &syncBuffer{}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(r.log, os.Stderr), &slog.HandlerOptions{Level: slog.LevelInfo}))
	attach(d, r.world.State(), r.world.Root, log)
	toServer, in := io.Pipe()
	out, toEditor := io.Pipe()
	served := make(chan struct{})
	go func() {
		defer close(served)
		if err := server.Serve(context.Background(), toServer, toEditor, server.Options{Host: d, Version: "test", Log: log}); err != nil {
			r.t.Error(err)
		}
		d.Close()
		_ = toEditor.Close()
	}()
	r.end = sync.OnceFunc(func() {
		_ = in.Close()
		<-served
		r.Close()
	})
	r.Editor = fake.Connect(r.t, out, in)
	r.Open(r.world.Root, object{"capabilities": object{"codeAssistant": object{"chat": true, "chatCapabilities": capabilities}}})
	r.Await(0, "the remote server", fake.Contains("$/progress", `"finish"`, `"remote-server"`))
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

func (r *rig) pair(rights remote.Rights) (token string, dev remote.Device) {
	r.t.Helper()
	token, dev, err := r.devices.Pair("test "+rights.String(), rights)
	if err != nil {
		r.t.Fatal(err)
	}
	return token, dev
}

func (r *rig) request(token, method, path string, body any) *http.Request {
	r.t.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		text, err := json.Marshal(b)
		if err != nil {
			r.t.Fatal(err)
		}
		content = bytes.NewReader(text)
	}
	req, err := http.NewRequest(method, fmt.Sprintf("http://127.0.0.1:%d%s", r.port, path), content)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

// client is one without connections that outlive their test.
func (r *rig) client() *http.Client {
	transport := &http.Transport{}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func (r *rig) send(req *http.Request) (status int, body string, header http.Header) {
	r.t.Helper()
	res, err := r.client().Do(req)
	if err != nil {
		r.t.Fatalf("%s %s: %v", req.Method, req.URL, err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(text), res.Header
}

// do calls the API as a device with all rights.
func (r *rig) do(method, path string, body any) (status int, result string) {
	r.t.Helper()
	status, result, _ = r.send(r.request(r.token, method, "/api/v1"+path, body))
	return status, result
}

// event is an event of a stream.
type event struct{ id, name, data string }

// events reads a stream.
type events struct {
	t    *testing.T
	res  *http.Response
	stop context.CancelFunc
	over chan struct{}

	mu      sync.Mutex
	list    []event
	changed chan struct{}
}

func (r *rig) events(token, lastID string) *events {
	r.t.Helper()
	req := r.request(token, "GET", "/api/v1/events", nil)
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	ctx, stop := context.WithCancel(context.Background())
	res, err := r.client().Do(req.WithContext(ctx))
	if err != nil {
		r.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		r.t.Fatalf("events: %s", res.Status)
	}
	e := &events{t: r.t, res: res, stop: stop, over: make(chan struct{}), changed: make(chan struct{})}
	go e.read()
	r.t.Cleanup(e.close)
	return e
}

func (e *events) read() {
	defer close(e.over)
	lines := bufio.NewReaderSize(e.res.Body, 1<<20)
	var one event
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSuffix(line, "\n")
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case strings.Contains(line, "\r"):
			e.t.Errorf("a carriage return in %q", line)
		case key == "event":
			one.name = value
		case key == "id":
			one.id = value
		case key == "data":
			one.data = value
		case line == "" && one.name != "":
			e.mu.Lock()
			e.list = append(e.list, one)
			close(e.changed)
			e.changed = make(chan struct{})
			e.mu.Unlock()
			one = event{id: one.id}
		}
	}
}

func (e *events) close() {
	e.stop()
	_ = e.res.Body.Close()
	<-e.over
}

// all returns the events so far.
func (e *events) all() []event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

// await waits for an event with all pieces, and returns its number.
func (e *events) await(from int, name string, pieces ...string) (int, event) {
	e.t.Helper()
	deadline := time.After(time.Minute)
	for {
		e.mu.Lock()
		list, changed := e.list, e.changed
		e.mu.Unlock()
		for i := from; i < len(list); i++ {
			if list[i].name == name && !slices.ContainsFunc(pieces, func(p string) bool { return !strings.Contains(list[i].data, p) }) {
				return i, list[i]
			}
		}
		select {
		case <-changed:
		case <-e.over:
			e.t.Fatalf("the stream ended without %s %v; it had %v", name, pieces, list)
		case <-deadline:
			e.t.Fatalf("no %s %v; there are %v", name, pieces, list)
		}
	}
}

// text returns the model's text in events.
func text(list []event) string {
	var b strings.Builder
	for _, e := range list {
		var p struct {
			Role    string
			Content struct{ Type, Text string }
		}
		if e.name == "chat:content-received" && json.Unmarshal([]byte(e.data), &p) == nil && p.Role == "assistant" && p.Content.Type == "text" {
			b.WriteString(p.Content.Text)
		}
	}
	return b.String()
}

// One prompt in the page is shown in the page and in the editor, is in the list and in the loaded
// chat; one in the editor is shown in the page; a deletion is shown in both.
func TestChatInBoth(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: Hello page.}]\n  - steps: [{text: Hello editor.}]\n", nil, nil)
	page := r.events(r.token, "")
	if _, first := page.await(0, "session:connected", `"protocolVersion":"1.0"`, `"mock/m"`, `"rights":"trust"`); first != page.all()[0] {
		t.Errorf("the first event is %v", page.all()[0])
	}
	status, result := r.do("POST", "/chats/p-1/prompt", object{"message": "hi"})
	if status != 200 || !strings.Contains(result, `"chatId":"p-1"`) {
		t.Fatal(status, result)
	}
	opened, _ := page.await(0, "chat:opened", `"p-1"`, `"title":"New chat"`)
	said, _ := page.await(opened, "chat:content-received", `"role":"user"`, "hi")
	page.await(said, "chat:content-received", "Hello page.")
	page.await(said, "chat:status-changed", `"idle"`)
	r.Await(0, "the new chat", fake.Contains("chat/opened", "p-1"))
	r.Await(0, "the answer", fake.Content("text", "Hello page."))
	_, loaded := r.do("GET", "/chats/p-1", nil)
	var c struct {
		Status   string
		Messages []struct {
			Role      string
			ContentID string
			Content   []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(loaded), &c); err != nil || len(c.Messages) != 2 || c.Messages[0].ContentID == "" || c.Messages[1].Content[0].Text != "Hello page." || c.Status != "idle" {
		t.Errorf("%v: %s", err, loaded)
	}
	from := len(page.all())
	r.Call("chat/prompt", object{"chatId": "p-1", "message": "me too"})
	page.await(from, "chat:content-received", "Hello editor.")
	if _, list := r.do("GET", "/chats", nil); !strings.Contains(list, `"id":"p-1"`) {
		t.Error(list)
	}
	if status, _ := r.do("POST", "/chats/p-1/update", object{"title": "Named", "trust": true}); status != 204 {
		t.Error(status)
	}
	page.await(from, "chat:content-received", `"metadata"`, "Named")
	r.Await(0, "the new setting", fake.Contains("config/updated", `"chatId":"p-1"`, `"selectTrust":true`))
	if status, _ := r.do("DELETE", "/chats/p-1", nil); status != 204 {
		t.Error(status)
	}
	page.await(from, "chat:deleted", "p-1")
	r.Await(0, "the deletion", fake.Contains("chat/deleted", "p-1"))
}

// pulses is a model that answers with n pieces of text, one each pause.
func pulses(n int, pause string) string {
	return fmt.Sprintf("turns:\n  - steps: [{text: '0123456789 ', repeat: %d, delay: %s}]\n", n, pause)
}

func pulsed(n int) string { return strings.Repeat("0123456789 ", n) }

// after returns the events of the chat c behind a position.
func after(t *testing.T, list []event, position string) (out []event) {
	t.Helper()
	parse := func(id string) (seq, offset int) {
		if _, err := fmt.Sscanf(id, "c:%d.%d", &seq, &offset); err != nil && id != "" {
			t.Fatalf("%q: %v", id, err)
		}
		return seq, offset
	}
	from, _ := parse(position)
	for _, e := range list {
		if seq, offset := parse(e.id); seq > from || seq == from && offset > 0 {
			out = append(out, e)
		}
	}
	return out
}

// A client that comes back with the id of its last event gets exactly what it missed, wherever it
// was cut off. Positions that a chat does not have are refused.
func TestResume(t *testing.T) {
	t.Parallel()
	const n = 400
	r := newRig(t, pulses(n, "5ms"), nil, nil)
	first := r.events(r.token, "")
	first.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	_, said := first.await(0, "chat:content-received", `"role":"user"`)
	var whole []event
	last, cuts := said.id, 0
	for done := false; !done; cuts++ {
		page := r.events(r.token, last)
		page.await(0, "session:connected", `"resumed":true`, `"resumedChats":["c"]`)
		want := 10 * (cuts % 7)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			list := page.all()
			done = slices.ContainsFunc(list, func(e event) bool { return strings.Contains(e.data, `"state":"finished"`) })
			if done || len(text(list)) > want {
				break
			}
		}
		page.close()
		list := page.all()
		whole = append(whole, list...)
		last = list[len(list)-1].id
	}
	if got := text(whole); got != pulsed(n) {
		t.Errorf("after %d cuts: %d bytes of %d", cuts, len(got), n*len("0123456789 "))
	}
	t.Logf("%d cuts", cuts)
	for _, forged := range []string{"c:999999.0", "c:5.0,c", "nobody:1.0", "::::,%%%", strings.Repeat("c:1.0,", 1000)} {
		page := r.events(r.token, forged)
		_, e := page.await(0, "session:connected")
		if valid := strings.Contains(forged, "c:1.0") || strings.Contains(forged, "c:5.0"); strings.Contains(e.data, `"resumed":true`) != valid {
			t.Errorf("%.30s: %.300s", forged, e.data)
		}
		page.close()
	}
}

// The loaded messages and the events after them are the chat, each word once: the load ends where
// the stream goes on.
func TestLoadDuringStream(t *testing.T) {
	t.Parallel()
	const n = 1500
	r := newRig(t, pulses(n, "2ms"), nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:content-received", "0123")
	type loaded struct {
		text     string
		position string
	}
	var loads []loaded
	for range 6 {
		_, result := r.do("GET", "/chats/c", nil)
		var c struct {
			Position string
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(result), &c); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, m := range c.Messages {
			var parts []struct{ Text string }
			if m.Role == "assistant" && json.Unmarshal(m.Content, &parts) == nil {
				b.WriteString(parts[0].Text)
			}
		}
		loads = append(loads, loaded{b.String(), c.Position})
	}
	// A page that comes later loads first and is then shown the rest.
	other, _ := r.pair(remote.Watch)
	late := r.events(other, "")
	late.await(0, "session:connected")
	_, result, _ := r.send(r.request(other, "GET", "/api/v1/chats/c", nil))
	page.await(0, "chat:content-received", `"state":"finished"`)
	late.await(0, "chat:content-received", `"state":"finished"`)
	for i, l := range loads {
		if got := l.text + text(after(t, page.all(), l.position)); got != pulsed(n) {
			t.Errorf("load %d: %d bytes and %d, not %d", i, len(l.text), len(got)-len(l.text), len(pulsed(n)))
		}
	}
	var c struct {
		Messages []struct {
			Role    string
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(result), &c); err != nil {
		t.Fatal(err)
	}
	if got := c.Messages[len(c.Messages)-1].Content[0].Text + text(late.all()); got != pulsed(n) {
		t.Errorf("a late page has %d bytes, not %d", len(got), len(pulsed(n)))
	}
}

const asking = `turns:
  - steps:
      - calls: [{id: call_1, tool: eca__ask_user, arguments: {question: Which?, options: [{label: A}, {label: B}]}}]
      - {text: 'Done.'}
`

// A question is shown in the editor and in all pages, also in one that connects later, and not in
// that of a device that may only watch. The first answer counts, and the others are taken back.
func TestQuestionInAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, asking, nil, object{"askQuestion": true})
	cancelled := make(chan struct{})
	r.Answer("chat/askQuestion", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	watcher, _ := r.pair(remote.Watch)
	second, _ := r.pair(remote.Control)
	one, spectator := r.events(r.token, ""), r.events(watcher, "")
	one.await(0, "session:connected")
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	_, q := one.await(0, "chat:ask-question", "Which?")
	two := r.events(second, "")
	two.await(0, "chat:ask-question", "Which?")
	var question struct{ RequestID string }
	if err := json.Unmarshal([]byte(q.data), &question); err != nil {
		t.Fatal(err)
	}
	answer := func(token, id string, cancelled bool) int {
		status, _, _ := r.send(r.request(token, "POST", "/api/v1/answer", object{"requestId": id, "answer": "B", "cancelled": cancelled}))
		return status
	}
	if got := answer(watcher, question.RequestID, false); got != 403 {
		t.Errorf("a watcher's answer: %d", got)
	}
	if got := answer(second, "other", false); got != 404 {
		t.Errorf("an unknown question: %d", got)
	}
	statuses := make(chan int, 2)
	for _, token := range []string{r.token, second} {
		go func() { statuses <- answer(token, question.RequestID, false) }()
	}
	if got := []int{<-statuses, <-statuses}; got[0]+got[1] != 204+409 {
		t.Errorf("two answers: %v", got)
	}
	one.await(0, "chat:content-received", "Done.")
	<-cancelled
	if got := answer(second, question.RequestID, true); got != 204 {
		t.Errorf("closing a settled question: %d", got)
	}
	closed := 0
	for _, page := range []*events{one, two} {
		for _, e := range page.all() {
			if e.name == "chat:ask-question" && strings.Contains(e.data, `"cancelled":true`) {
				closed++
			}
		}
	}
	if closed != 1 {
		t.Errorf("%d pages were told that it is answered", closed)
	}
	for _, e := range spectator.all() {
		if e.name == "chat:ask-question" {
			t.Error("the watcher was asked:", e.data)
		}
	}
	if requests := r.world.Requests(); !strings.Contains(requests[len(requests)-1], `B`) {
		t.Error(requests[len(requests)-1])
	}
}

// The first decision about a call counts, wherever it comes from; the others are refused. After a
// load, a waiting call is shown again.
func TestDecisionOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, `turns:
  - steps:
      - calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: x}}]
      - {text: 'Done.'}
`, nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	r.do("POST", "/chats/c/prompt", object{"message": "go"})
	page.await(0, "chat:content-received", "toolCallRun", `"manualApproval":true`)
	from := len(page.all())
	if _, loaded := r.do("GET", "/chats/c", nil); !strings.Contains(loaded, `"pendingToolCalls":[{`) || !strings.Contains(loaded, `"role":"tool_call"`) {
		t.Error(loaded)
	}
	page.await(from, "chat:content-received", "toolCallRun", `"manualApproval":true`)
	if _, list := r.do("GET", "/chats", nil); !strings.Contains(list, `"pendingApprovalCount":1`) {
		t.Error(list)
	}
	watcher, _ := r.pair(remote.Watch)
	control, _ := r.pair(remote.Control)
	for token, body := range map[string]string{watcher: "{}", control: `{"save":"session"}`} {
		if status, _, _ := r.send(r.request(token, "POST", "/api/v1/chats/c/approve/call_1", body)); status != 403 {
			t.Errorf("%s: %d", body, status)
		}
	}
	if status, _ := r.do("POST", "/chats/c/approve/other", nil); status != 404 {
		t.Errorf("an unknown call: %d", status)
	}
	statuses := make(chan int, 20)
	for i := range cap(statuses) {
		go func() {
			status, _ := r.do("POST", fmt.Sprintf("/chats/c/%s/call_1", []string{"approve", "reject"}[i%2]), nil)
			statuses <- status
		}()
	}
	first := 0
	for range cap(statuses) {
		switch status := <-statuses; status {
		case 204:
			first++
		case 409:
		default:
			t.Errorf("a decision: %d", status)
		}
	}
	if first != 1 {
		t.Errorf("%d decisions counted", first)
	}
}

// A client that comes back after the daemon was killed in the middle of a turn gets exactly the
// rest of what is stored, and the end of the turn.
func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	const n = 2000
	port := freePort(t)
	w := daemontest.New(t, pulses(n, "2ms"), func(c object) { c["remote"] = object{"enabled": true, "port": port} })
	r := &rig{t: t, world: w, port: port, devices: remote.OpenDevices(w.State(), time.Now)}
	r.token, _ = r.pair(remote.Trust)
	start := func() (kill func()) {
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{"REMOTE_TEST_STATE=" + w.State(), "REMOTE_TEST_ROOT=" + w.Root}
		for key, value := range w.Env {
			cmd.Env = append(cmd.Env, key+"="+value)
		}
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		editor := fake.Connect(t, out, in)
		editor.Open(w.Root, nil)
		editor.Await(0, "the remote server", fake.Contains("$/progress", `"finish"`, `"remote-server"`))
		return sync.OnceFunc(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			editor.Close()
		})
	}
	kill := start()
	defer func() { kill() }()
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	from, _ := page.await(0, "chat:content-received", "0123")
	for range 20 { // events, so that the kill comes at an event of its own
		from, _ = page.await(from+1, "chat:content-received", "0123")
	}
	kill()
	<-page.over
	shown := page.all()
	kill = start()
	again := r.events(r.token, shown[len(shown)-1].id)
	again.await(0, "session:connected", `"resumedChats":["c"]`)
	again.await(0, "chat:content-received", `"state":"finished"`)
	again.await(0, "chat:content-received", "Interrupted")
	got := text(shown) + text(again.all())
	if len(text(shown)) == 0 || !strings.HasPrefix(pulsed(n), got) || len(got) == len(pulsed(n)) {
		t.Errorf("%d bytes were shown, then %q", len(text(shown)), text(again.all()))
	}
	_, loaded := r.do("GET", "/chats/c", nil)
	if !strings.Contains(loaded, `"text":"`+got+`"`) {
		t.Errorf("the chat has something else than the %d bytes that were shown", len(got))
	}
}

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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/editors/web"
	"github.com/seed-dec29ce4/eca/internal/fetch"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/testkit"
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
func attach(d *daemon.Daemon, state, root string, log *slog.Logger) *remote.Face {
	join := func(ctx context.Context, in io.Reader, out io.Writer, follow func() time.Duration) error {
		return server.Serve(ctx, in, out, server.Options{Host: d, Version: "test", Shared: true, Follow: follow, Log: log})
	}
	face := remote.New(remote.Options{
		Engine: d.Engine(), Models: d, Config: d.Config, Watch: d.Watch, Roots: d.Roots, Serve: join, StateDir: state, Version: "test", Log: log,
		Limit: func(l net.Listener) net.Listener { return l },
		// The push service of a test is at a loopback address.
		Push: fetch.NewPoster(netclient.New(func(string) string { return "" }), fetch.Rules{Private: []string{"127.0.0.1"}}, "test"),
		Page: func(ctx context.Context, g remote.Gate) http.Handler {
			h, _ := web.New(ctx, web.Options{
				Serve:  func(ctx context.Context, in io.Reader, out io.Writer) error { return join(ctx, in, out, nil) },
				Folder: root, Version: "test", Log: log, Gate: g,
			})
			return h
		},
	})
	d.AttachRemote(face)
	return face
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
	face    *remote.Face
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
	port := testkit.FreePort(t)
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

// start starts the daemon of a rig, and an editor, and waits for the remote server.
func (r *rig) start(capabilities object) {
	r.t.Helper()
	r.open(capabilities)
	r.Await(0, "the remote server", fake.Contains("$/progress", `"finish"`, `"remote-server"`))
}

// open starts the daemon of a rig, and an editor.
func (r *rig) open(capabilities object) {
	r.t.Helper()
	d := r.world.Daemon()
	r.daemon, r.log = d, &syncBuffer{}
	log := slog.New(slog.NewTextHandler(io.MultiWriter(r.log, os.Stderr), &slog.HandlerOptions{Level: slog.LevelInfo}))
	r.face = attach(d, r.world.State(), r.world.Root, log)
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
type event struct {
	id, name, data string
	at             time.Time // when it had arrived
}

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
			one.at = time.Now()
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

// next returns a channel that is closed with the next event.
func (e *events) next() <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.changed
}

// await waits for an event with all pieces, and returns its number.
func (e *events) await(from int, name string, pieces ...string) (int, event) {
	e.t.Helper()
	deadline := time.After(time.Minute)
	for {
		e.mu.Lock()
		list, changed := e.list, e.changed
		e.mu.Unlock()
		for ; from < len(list); from++ {
			e := list[from]
			if e.name == name && !slices.ContainsFunc(pieces, func(p string) bool { return !strings.Contains(e.data, p) }) {
				return from, e
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

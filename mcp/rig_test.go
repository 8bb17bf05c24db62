package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

func clock() time.Time { return time.Now() }

// deadline is far longer than anything here takes.
func deadline(t *testing.T) <-chan time.Time {
	timer := time.NewTimer(60 * time.Second)
	t.Cleanup(func() { timer.Stop() })
	return timer.C
}

// rig is a manager whose servers are this test binary or at addresses.
type rig struct {
	t       *testing.T
	m       *Manager
	changed chan struct{}
	log     *logBuffer

	mu     sync.Mutex // guards the fields below
	now    time.Time
	waits  []time.Duration  // before restarts
	fire   []chan time.Time // of waits that have not fired
	starts map[string]int   // by server
	modes  map[string]string
}

// logBuffer is a log whose text can be read.
type logBuffer struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t *testing.T, modes map[string]string, options ...func(*rig, *Settings)) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, changed: make(chan struct{}, 1), log: &logBuffer{}, now: time.Unix(1e9, 0), starts: map[string]int{}, modes: modes}
	network := netclient.New(func(string) string { return "" })
	t.Cleanup(network.Close)
	children := proc.NewPool(self, 1)
	t.Cleanup(children.Close)
	r.m = New(Deps{
		Resolve: func(_ context.Context, name string, c config.MCPServer) (Launch, error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.starts[name]++
			defer r.wakeUntil()
			l := Launch{Clean: func(s string) string { return strings.ReplaceAll(s, "hunter22", "***") }}
			if c.URL != "" {
				l.URL, l.Headers = c.URL, c.Headers
				return l, nil
			}
			l.Command, l.Env = self, []string{modeVariable + "=" + c.Command}
			if c.Command == "missing" {
				l.Command = "/does/not/exist"
			}
			return l, nil
		},
		HTTP:     func() *http.Client { return network.Client(netclient.Options{}) },
		Changed:  r.wakeUntil,
		Children: children, Version: "1", Log: slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.now
		},
		After: func(d time.Duration) (<-chan time.Time, func()) {
			r.mu.Lock()
			defer r.mu.Unlock()
			ch := make(chan time.Time, 1)
			r.waits, r.fire = append(r.waits, d), append(r.fire, ch)
			return ch, func() {}
		},
	})
	t.Cleanup(r.m.Close)
	settings := Settings{}
	for _, o := range options {
		o(r, &settings)
	}
	servers := map[string]config.MCPServer{}
	for name, mode := range modes {
		servers[name] = configOf(mode)
	}
	r.m.Apply(settings, servers)
	r.m.Begin()
	return r
}

// wakeUntil makes until check its condition again.
func (r *rig) wakeUntil() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

func configOf(mode string) config.MCPServer {
	if strings.HasPrefix(mode, "http") {
		return config.MCPServer{URL: mode}
	}
	return config.MCPServer{Command: mode}
}

func withStartTimeout(d time.Duration) func(*rig, *Settings) {
	return func(_ *rig, s *Settings) { s.Start = d }
}

// fireTimers fires the pending waits.
func (r *rig) fireTimers() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, ch := range r.fire {
		ch <- r.now
	}
	r.fire = nil
}

func (r *rig) startCount(name string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.starts[name]
}

// until waits for a condition, which may change with each status.
func (r *rig) until(what string, holds func() bool) {
	r.t.Helper()
	late := deadline(r.t)
	for !holds() {
		select {
		case <-r.changed:
		case <-late:
			r.t.Fatalf("%s did not come; there is %+v\n%s", what, r.m.Statuses(), r.log)
		}
	}
}

func (r *rig) await(name string, state State) Status {
	r.t.Helper()
	var out Status
	r.until(name+" "+string(state), func() bool {
		out, _ = r.m.Status(name)
		return out.State == state
	})
	return out
}

func (r *rig) tool(server, name string) tools.Tool {
	r.t.Helper()
	for _, tool := range r.m.Tools() {
		if s := tool.Spec(); s.Server == server && s.Name == name {
			return tool
		}
	}
	r.t.Fatalf("%s has no tool %s", server, name)
	return nil
}

func (r *rig) call(server, name, args string) (tools.Result, error) {
	r.t.Helper()
	return r.tool(server, name).Run(r.t.Context(), tools.Call{ID: "c", Arguments: json.RawMessage(args)}, nil)
}

// text calls a tool that answers with one text.
func (r *rig) text(server, name, args string) string {
	r.t.Helper()
	res, err := r.call(server, name, args)
	if err != nil || res.Failed {
		r.t.Fatalf("%s %s: %+v, %v\n%s", server, name, res, err, r.log)
	}
	return strings.Join(res.Outputs, "\n")
}

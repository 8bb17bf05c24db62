package telemetry

import (
	"context"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/otlp"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type scripted struct {
	deltas []llm.Delta
	err    error
}

func (s scripted) Stream(context.Context, llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		for _, d := range s.deltas {
			if !yield(d, nil) {
				return
			}
		}
		if s.err != nil {
			yield(llm.Delta{}, s.err)
		}
	}
}

type reading struct{ tools.Tool }

func (reading) Spec() tools.Spec { return tools.Spec{Server: "eca", Name: "read_file"} }

func (reading) Run(context.Context, tools.Call, tools.Sink) (tools.Result, error) {
	return tools.Result{}, errors.New("secret text")
}

// remote is a tool of an MCP server whose result reports a failure.
type remote struct{ tools.Tool }

func (remote) Spec() tools.Spec {
	return tools.Spec{Server: "library", Name: "find", Origin: tools.OriginMCP}
}

func (remote) Run(context.Context, tools.Call, tools.Sink) (tools.Result, error) {
	return tools.Result{Failed: true, Outputs: []string{"not found"}}, nil
}

// The turn of a subagent is in the trace of the turn that started it, below its call, and so are
// its requests.
func TestTrace(t *testing.T) {
	bodies := make(chan string, 2)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		bodies <- string(body)
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ids := 0
	tele := New(Options{
		Client: client, Now: time.Now, Clean: strings.ToUpper, Changed: func() {}, Log: slog.New(slog.DiscardHandler),
		NewID: func() string { ids++; return string(rune('a' + ids)) },
	})
	c, errs := Parse(map[string]string{"otel.exporter.otlp.endpoint": server.URL, "otel.metrics.exporter": "none"}, "1")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	tele.Use(c)
	begin := func(chat, parent, turn string) {
		tele.Log(chat, parent, []event.Event{{Turn: turn, Time: time.Now(), Body: event.TurnStarted{Model: "mock/m", Agent: "code"}}})
	}
	end := func(chat, turn string) {
		tele.Log(chat, "", []event.Event{{Turn: turn, Time: time.Now(), Body: event.TurnFinished{Reason: event.FinishedDone}}})
	}
	begin("parent", "", "t1")
	begin("subagent-1", "parent", "call-1") // its turn has the id of the call
	asked := tele.Model(scripted{err: &llm.Error{Kind: llm.ErrOverloaded, Message: "secret text"}}, "mock/m")
	for range asked.Stream(t.Context(), llm.Request{Origin: llm.Origin{Chat: "subagent-1"}}) {
	}
	_, _ = tele.Tool(reading{}).Run(t.Context(), tools.Call{ChatID: "subagent-1", ID: "c2"}, nil)
	end("subagent-1", "call-1")
	end("parent", "t1")
	end("parent", "unknown")
	tele.Close()
	body := <-bodies
	trace, call := traceID("parent", "t1"), spanID("call", "parent", "call-1")
	for what, want := range map[string]struct {
		bytes string
		times int
	}{
		"spans in the trace":   {string(trace[:]), 4},
		"turns below the call": {string(call[:]), 1},
		"overloaded":           {"overloaded", 1},
		"other errors":         {"_OTHER", 1},
		"messages of errors":   {"ecret text", 0},
		"turns":                {"invoke_agent code", 2},
	} {
		if n := strings.Count(body, want.bytes); n != want.times {
			t.Errorf("%s: %d instead of %d", what, n, want.times)
		}
	}
	if len(tele.turns) > 0 {
		t.Errorf("%d ended turns are still in memory", len(tele.turns))
	}
}

// A call of an MCP server's tool is a client's request, with the server's name and a duration of its own.
func TestCallsOfMCPServers(t *testing.T) {
	var mu sync.Mutex
	bodies := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		bodies[r.URL.Path] += string(body)
	}))
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	tele := New(Options{
		Client: client, Now: time.Now, Clean: func(s string) string { return s }, Changed: func() {}, Log: slog.New(slog.DiscardHandler),
		NewID: func() string { return "id" },
	})
	c, errs := Parse(map[string]string{"otel.exporter.otlp.endpoint": server.URL}, "1")
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	tele.Use(c)
	_, _ = tele.Tool(remote{}).Run(t.Context(), tools.Call{ChatID: "c", ID: "c1"}, nil)
	tele.Close()
	mu.Lock()
	defer mu.Unlock()
	for path, wants := range map[string][]string{
		"/v1/traces":  {"tools/call find", "mcp.method.name", "tools/call", "eca.mcp.server", "library", "error.type", "tool_error"},
		"/v1/metrics": {"mcp.client.operation.duration", "library__find", "tool_error", "eca-tool-called"},
	} {
		for _, want := range wants {
			if !strings.Contains(bodies[path], want) {
				t.Errorf("%s lacks %s", path, want)
			}
		}
	}
	if strings.Contains(bodies["/v1/metrics"], "eca.tool.duration") {
		t.Error("the call of an MCP server's tool is measured as a call of a native tool")
	}
}

func TestNotice(t *testing.T) {
	changes := 0
	tele := New(Options{Now: time.Now, Changed: func() { changes++ }, Log: slog.New(slog.DiscardHandler)})
	defer tele.Close()
	tele.report("traces", errors.New("connection refused by localhost:4318"))
	if n := tele.Notice(); !strings.Contains(n, "cannot export traces: connection refused by localhost:4318") {
		t.Errorf("%q", n)
	}
	tele.report("traces", nil)
	if n := tele.Notice(); n != "" || changes != 2 {
		t.Errorf("%q after %d changes", n, changes)
	}
}

// withoutExport returns two turns of the same work: a request to a model, a call of a tool, and the
// stored events. The first has telemetry that is not configured, the second has none.
func withoutExport(t testing.TB) (off, floor func()) {
	tele := New(Options{Now: time.Now, Changed: func() {}})
	t.Cleanup(tele.Close)
	tele.Use(otlp.Config{})
	events := []event.Event{{Body: event.TurnStarted{Model: "mock/m"}}, {Body: event.UsageReported{}}, {Body: event.TurnFinished{}}}
	turn := func(m llm.Model, tool tools.Tool, log func([]event.Event)) func() {
		return func() {
			log(events)
			for range m.Stream(t.Context(), llm.Request{}) {
			}
			_, _ = tool.Run(t.Context(), tools.Call{}, nil)
		}
	}
	off = turn(tele.Model(scripted{}, "mock/m"), tele.Tool(remote{}), func(e []event.Event) { tele.Log("c", "", e) })
	return off, turn(scripted{}, remote{}, func([]event.Event) {})
}

// Without a configuration, telemetry allocates nothing.
func TestOff(t *testing.T) {
	off, floor := withoutExport(t)
	if got, want := testing.AllocsPerRun(100, off), testing.AllocsPerRun(100, floor); got > want {
		t.Errorf("%v allocations, %v without telemetry", got, want)
	}
}

// BenchmarkOff: what telemetry costs a turn without a configuration. The floor is the same turn
// without telemetry.
func BenchmarkOff(b *testing.B) {
	off, floor := withoutExport(b)
	for name, turn := range map[string]func(){"off": off, "floor": floor} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				turn()
			}
		})
	}
}

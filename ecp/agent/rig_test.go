package agent_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/agent"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/llm/cassette"
)

func TestMain(m *testing.M) {
	// The pattern matcher keeps a clock running for a moment after a match with a time limit.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2.runClock"))
}

// options of a rig.
type options struct {
	model  string         // cassette
	config map[string]any // of eca, in addition to the provider
	limit  time.Duration
}

// rig is an agent on a real daemon, with a scripted model behind real HTTP.
type rig struct {
	t     testing.TB
	root  string // workspace
	agent *agent.Agent
	host  *daemon.Daemon

	heard chan struct{} // one element for each request, unless the buffer is full

	mu       sync.Mutex // guards requests
	requests []string   // the bodies of requests to the model
}

func newRig(t testing.TB, o options) *rig {
	t.Helper()
	r := &rig{t: t, root: testkit.TempDir(t), heard: make(chan struct{}, 100)}
	player, err := cassette.Parse([]byte("cassette: 1\n" + o.model))
	if err != nil {
		t.Fatal(err)
	}
	provider := httptest.NewServer(player.Handler(func(_ string, body []byte) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests = append(r.requests, string(body))
		select {
		case r.heard <- struct{}{}:
		default:
		}
	}))
	t.Cleanup(provider.Close)
	cfg := map[string]any{
		"providers": map[string]any{"mock": map[string]any{
			"api": "openai-responses", "url": provider.URL + "/v1", "key": "sk-mock-0123456789", "fetchModels": false,
			"retry": map[string]any{"baseDelayMs": 1, "maxRetries": 1},
			"models": map[string]any{
				"m": map[string]any{"limit": map[string]any{"context": 100000, "output": 1000}, "cost": map[string]any{"input": 100, "output": 200}}, // 1 token in: $0.0001
				"n": map[string]any{},
			},
		}},
		"defaultModel": "mock/m",
	}
	maps.Copy(cfg, o.config)
	raw, err := json.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	state := testkit.TempDir(t)
	env := map[string]string{"ECA_CONFIG": string(raw), "OLLAMA_API_URL": "http://127.0.0.1:1", "XDG_CONFIG_HOME": filepath.Join(state, "config"), "PATH": os.Getenv("PATH")}
	r.host = daemon.New(daemon.Options{Getenv: func(k string) string { return env[k] }, StateDir: state, CacheDir: filepath.Join(state, "cache")})
	t.Cleanup(r.host.Close)
	r.agent = agent.New(agent.Options{Host: r.host, Version: "test", Workspace: r.root, Limit: o.limit})
	t.Cleanup(r.agent.Close)
	return r
}

// write writes a file into the workspace.
func (r *rig) write(name, text string) {
	r.t.Helper()
	path := filepath.Join(r.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// exists reports whether the workspace has a file.
func (r *rig) exists(name string) bool {
	_, err := os.Stat(filepath.Join(r.root, filepath.FromSlash(name)))
	return err == nil
}

// lastRequest is the body of the last request to the model.
func (r *rig) lastRequest() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.requests[len(r.requests)-1]
}

func (r *rig) requestCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

// runtime is the other side of a pair of pipes.
type runtime struct {
	t    testing.TB
	in   *os.File
	out  *bufio.Reader
	next int
	done chan error // the error that Serve returned
	stop context.CancelFunc
}

// connect serves a runtime over pipes of the system.
func (r *rig) connect() *runtime {
	r.t.Helper()
	toAgent, in := pipe(r.t)
	out, fromAgent := pipe(r.t)
	ctx, stop := context.WithCancel(context.Background())
	c := &runtime{t: r.t, in: in, out: bufio.NewReaderSize(out, 1<<20), done: make(chan error, 1), stop: stop}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.done <- r.agent.Serve(ctx, toAgent, fromAgent)
		_ = fromAgent.Close()
	}()
	r.t.Cleanup(func() {
		_ = in.Close()
		stop()
		<-ended
		_ = toAgent.Close()
		_ = out.Close()
	})
	return c
}

func pipe(t testing.TB) (r, w *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	return r, w
}

// send writes a line.
func (c *runtime) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// line reads a line.
func (c *runtime) line() string {
	c.t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil {
		c.t.Fatalf("after %q: %v", line, err)
	}
	return strings.TrimSuffix(line, "\n")
}

// begin sends a call and returns its id.
func (c *runtime) begin(method string, params any) int {
	c.t.Helper()
	c.next++
	raw, err := json.Marshal(params)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s,"id":%d}`, method, raw, c.next))
	return c.next
}

// answer reads the next answer, which must answer a given call.
func (c *runtime) answer(id int) ecp.Response {
	c.t.Helper()
	line := c.line()
	for i := range len(line) {
		if line[i] > '~' {
			c.t.Fatalf("not ASCII: %q", line)
		}
	}
	res, err := ecp.ParseResponse([]byte(line))
	if err != nil {
		c.t.Fatalf("%v: %s", err, line)
	}
	if !res.Answers(json.RawMessage(fmt.Sprint(id))) {
		c.t.Fatalf("the answer to %s came, not that to %d: %s", res.ID, id, line)
	}
	return res
}

func (c *runtime) call(method string, params any) ecp.Response {
	c.t.Helper()
	return c.answer(c.begin(method, params))
}

// initialize initialises the agent, which must succeed.
func (c *runtime) initialize(config map[string]any) {
	c.t.Helper()
	res := c.call(ecp.MethodInitialize, map[string]any{"config": config})
	if res.Err != nil {
		c.t.Fatal(res.Err)
	}
	if _, err := ecp.ParseInitializeResult(res.Result); err != nil {
		c.t.Fatal(err)
	}
}

// step makes a step, which must succeed.
func (c *runtime) step(input string) ecp.StepResult {
	c.t.Helper()
	return c.result(c.call(ecp.MethodStep, map[string]any{"input": input}))
}

// stepAtTimeLimit calls agent/step with an input for which the step reaches its time limit. On a
// busy machine, that may happen before the model is called, and then no model is named.
func (c *runtime) stepAtTimeLimit(input string) ecp.StepResult {
	c.t.Helper()
	res := c.call(ecp.MethodStep, map[string]any{"input": input})
	step, err := ecp.ParseStepResult(res.Result)
	if res.Err != nil || err != nil {
		c.t.Fatal(res.Err, err)
	}
	return step
}

// result is the result of a step; it checks the fields that are always present.
func (c *runtime) result(res ecp.Response) ecp.StepResult {
	c.t.Helper()
	if res.Err != nil {
		c.t.Fatal(res.Err)
	}
	return checkComplete(c.t, res.Result)
}

// checkComplete checks that a result has the fields that are always present.
func checkComplete(t testing.TB, raw json.RawMessage) ecp.StepResult {
	t.Helper()
	step, err := ecp.ParseStepResult(raw)
	if err != nil {
		t.Fatal(err)
	}
	if step.PublicOutput == nil || step.EvaluationContext == nil || step.PrivateThought == nil || step.Logs == nil || step.ToolCalls == nil ||
		object(t, raw)["usage"] == nil && !strings.Contains(string(raw), `"usage":null`) || step.CostUSD == nil || step.Timing == nil || step.StopReason == "" || step.Model == "" {
		t.Errorf("something is missing: %s", raw)
	}
	if *step.EvaluationContext != *step.PrivateThought || *step.EvaluationContext == "" {
		t.Errorf("the aliases differ: %s", raw)
	}
	return step
}

func (c *runtime) reset() {
	c.t.Helper()
	res := c.call(ecp.MethodReset, map[string]any{})
	if err := ecp.ParseResetResult(res.Result); res.Err != nil || err != nil {
		c.t.Fatal(res.Err, err)
	}
}

// callError returns the error of a call, which must fail.
func (c *runtime) callError(method string, params any) *ecp.Error {
	c.t.Helper()
	res := c.call(method, params)
	if res.Err == nil {
		c.t.Fatalf("%s was not refused: %s", method, res.Result)
	}
	return res.Err
}

// callNames of the calls of a step.
func callNames(step ecp.StepResult) string {
	var out []string
	for _, c := range step.ToolCalls {
		out = append(out, c.Name)
	}
	return strings.Join(out, " ")
}

// extraValue is the value of an extra key of a call.
func extraValue[T any](t testing.TB, c ecp.ToolCall, key string) (v T) {
	t.Helper()
	if err := json.Unmarshal(c.Extra[key], &v); err != nil {
		t.Fatalf("%s of %s: %v", key, c.Name, err)
	}
	return v
}

func checkContains(t testing.TB, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in:\n%s", p, text)
		}
	}
}

// object parses a value like a strict reader.
func object(t testing.TB, raw []byte) map[string]any {
	t.Helper()
	var m map[string]any
	dec := json.NewDecoder(bytes.NewReader(raw))
	if err := dec.Decode(&m); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	return m
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	line, err := ecp.Encode(v)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// awaitRequest waits for the next request to the model.
func (r *rig) awaitRequest() {
	r.t.Helper()
	select {
	case <-r.heard:
	case <-time.After(time.Minute):
		r.t.Fatal("the model is not asked")
	}
}

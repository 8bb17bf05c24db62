package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

func TestGoodServer(t *testing.T) {
	r := newRig(t, map[string]string{"s": "good"})
	status := r.await("s", Running)
	if o := status.Offer; o.Server != "faulty 1" || o.Instructions != "be kind" || o.Protocol != "2025-06-18" || len(o.Tools) != 11 {
		t.Errorf("offer: %+v", o)
	}
	spec := r.tool("s", "echo").Spec()
	if spec.FullName() != "s__echo" || spec.Origin != "mcp" || spec.Description != "echo it" || !strings.Contains(string(spec.Schema), `"anyOf"`) {
		t.Errorf("spec: %+v %s", spec, spec.Schema)
	}
	if spec := r.tool("s", "hang").Spec(); !strings.Contains(spec.Description, "hang") || !strings.Contains(string(spec.Schema), `"properties"`) {
		t.Errorf("a tool without a description: %+v %s", spec, spec.Schema)
	}
	if fork, hang := r.tool("s", "fork").Spec(), r.tool("s", "hang").Spec(); !strings.Contains(fork.Caution, "destroy") || hang.Caution != "" {
		t.Errorf("what the server says of its tools is lost: %q, %q", fork.Caution, hang.Caution)
	}
	if got := r.text("s", "echo", `{"text":"hällo"}`); got != "hällo" {
		t.Errorf("echo: %q", got)
	}
	if got := r.text("s", "structured", `{}`); got != `{"a": [1, 9007199254740993]}` {
		t.Errorf("structured content: %s", got)
	}
	if got := r.text("s", "pingme", `{}`); got != "the client answered {}" {
		t.Errorf("a ping of the server: %s", got)
	}
	var steps []string
	res, err := r.tool("s", "progress").Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{}`)}, func(s string) { steps = append(steps, s) })
	if err != nil || res.Outputs[0] != "done" || strings.Join(steps, "") != "step 0\nstep 1\nstep 2\n" {
		t.Errorf("progress: %v %v %v", res, err, steps)
	}
	plan, err := r.tool("s", "echo").Plan(t.Context(), tools.Call{})
	if err != nil || plan.Summary != "Calling tool: s__echo" || plan.ReadOnly {
		t.Errorf("plan: %+v, %v", plan, err)
	}
}

// Fifty calls of one server run at once: the server answers none before all have arrived.
func TestParallelCalls(t *testing.T) {
	const calls = 50
	r := newRig(t, map[string]string{"s": "good"})
	r.await("s", Running)
	var work sync.WaitGroup
	for range calls {
		work.Go(func() {
			res, err := r.tool("s", "together").Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"calls":50}`)}, nil)
			if err != nil || res.Outputs[0] != "all 50" {
				t.Errorf("%v, %v", res, err)
			}
		})
	}
	work.Wait()
}

// With one call more than the limit, the server sees only as many calls as the limit allows.
func TestCallLimit(t *testing.T) {
	r := newRig(t, nil)
	r.m.Apply(Settings{}, map[string]config.MCPServer{"s": {Command: "good", MaxParallelCalls: 2}})
	r.await("s", Running)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 2)
	for range 2 {
		go func() {
			_, err := r.tool("s", "hang").Run(ctx, tools.Call{Arguments: json.RawMessage(`{}`)}, nil)
			done <- err
		}()
	}
	conn := r.m.servers["s"].conn
	for len(conn.slots) < 2 {
		runtime.Gosched()
	}
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := r.tool("s", "echo").Run(short, tools.Call{Arguments: json.RawMessage(`{}`)}, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a third call was let through: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: %v", err)
		}
	}
	if got := r.text("s", "echo", `{"text":"free again"}`); got != "free again" {
		t.Error(got)
	}
}

// Invalid lines and duplicate answers are ignored.
func TestNoise(t *testing.T) {
	for _, mode := range []string{"garbage", "twice"} {
		r := newRig(t, map[string]string{"s": mode})
		r.await("s", Running)
		for i := range 20 {
			want := fmt.Sprint("text ", i)
			if got := r.text("s", "echo", `{"text":"`+want+`"}`); got != want {
				t.Fatalf("%s: %q, want %q", mode, got, want)
			}
		}
		if mode == "garbage" && !strings.Contains(r.log.String(), "Listening on nothing") {
			t.Error("the noise is not in the log")
		}
	}
}

// Output of a server that is not a message is logged up to a limit, whether its lines end or not.
func TestNoiseWithoutEnd(t *testing.T) {
	var log strings.Builder
	clean := func(s string) string { return s }
	handler := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := newStdio(Launch{Clean: clean}, nil, handler)
	line := []byte(strings.Repeat("x", 1<<10))
	for range 4 * maxLogged >> 10 {
		s.logStray(line)
	}
	if log.Len() < maxLogged/2 || log.Len() > 2*maxLogged {
		t.Errorf("stdout: %d bytes in the log", log.Len())
	}
	log.Reset()
	for range 4 * maxLogged >> 10 {
		_, _ = s.stderr.Write(append(line, '\n'))
	}
	if log.Len() < maxLogged/2 || log.Len() > 2*maxLogged {
		t.Errorf("stderr: %d bytes in the log", log.Len())
	}
	for range 100 {
		_, _ = s.stderr.Write(line)
	}
	if tail := len(s.stderr.tail.String()); len(s.stderr.line) > maxLogLine || tail > 16<<10 {
		t.Errorf("%d bytes of a line and %d of the end are kept", len(s.stderr.line), tail)
	}
}

// An answer over HTTP, and an event in one, has the same size limit as a line over stdio.
func TestEndlessAnswer(t *testing.T) {
	whole := &limitedBody{ReadCloser: io.NopCloser(io.LimitReader(endless{}, 2*maxMessage))}
	if _, err := io.Copy(io.Discard, whole); !errors.Is(err, errTooLong) {
		t.Errorf("a body: %v", err)
	}
	lines := strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", maxMessage>>20+1)
	if _, err := newEvents(strings.NewReader(lines)).Next(); !errors.Is(err, errTooLong) {
		t.Errorf("an event: %v", err)
	}
}

// An endless list of tools is cut, and so is every text of a server.
func TestEndlessTools(t *testing.T) {
	r := newRig(t, map[string]string{"s": "endless"})
	r.await("s", Running)
	list := r.m.Tools()
	if n := len(list); n == 0 || n > maxTools {
		t.Errorf("%d tools", n)
	}
	const mark = 10 // bytes of the mark for cut text
	for _, tool := range list {
		if spec := tool.Spec(); spec.Name == "large" || len(spec.Description) > maxDescription+mark || len(spec.Schema) > maxSchema {
			t.Errorf("%s has a description of %d bytes and a schema of %d", spec.Name, len(spec.Description), len(spec.Schema))
		}
	}
	if s, _ := r.m.Status("s"); len(s.Offer.Instructions) > maxInstructions+mark {
		t.Errorf("%d bytes of instructions", len(s.Offer.Instructions))
	}
}

// A failed start gives a reason.
func TestFailedStarts(t *testing.T) {
	r := newRig(t, map[string]string{"exit": "exit", "missing": "missing"})
	if s := r.await("exit", Failed); !strings.Contains(s.Reason, "exit code 3") || !strings.Contains(s.Reason, "no such option") {
		t.Errorf("exit: %+v", s)
	}
	if s := r.await("missing", Failed); !strings.Contains(s.Reason, "/does/not/exist") {
		t.Errorf("missing: %+v", s)
	}
	r = newRig(t, map[string]string{"silent": "silent"}, withStartTimeout(200*time.Millisecond))
	if s := r.await("silent", Failed); !strings.Contains(s.Reason, "no answer within 200ms") {
		t.Errorf("silent: %+v", s)
	}
}

// Restarts get rarer and then stop until the user starts the server. A start that cannot succeed is
// not repeated.
func TestBackoff(t *testing.T) {
	r := newRig(t, map[string]string{"s": "exit", "missing": "missing"})
	for n := 1; n <= maxRestarts+1; n++ {
		r.until("a failed start", func() bool {
			s, _ := r.m.Status("s")
			return r.startCount("s") == n && s.State == Failed
		})
		r.fireTimers()
	}
	r.await("missing", Failed)
	r.mu.Lock()
	want := "[1s 2s 4s 8s 16s]"
	if got := fmt.Sprint(r.waits); got != want {
		t.Errorf("waits: %s, want %s", got, want)
	}
	r.mu.Unlock()
	if r.startCount("missing") != 1 {
		t.Error("a program that does not exist is started again")
	}
	r.m.Start("s")
	r.until("one start more", func() bool { return r.startCount("s") == maxRestarts+2 })
}

// A crash during a call becomes the call's result, and the server is back for the next call.
func TestCrash(t *testing.T) {
	r := newRig(t, map[string]string{"s": "good"})
	r.await("s", Running)
	_, err := r.call("s", "crash", `{}`)
	if err == nil || !strings.Contains(err.Error(), "the server ended during the call: ") || !strings.Contains(err.Error(), "exit code 7") || !strings.Contains(err.Error(), "out of cheese") {
		t.Errorf("crash: %v", err)
	}
	if got := r.text("s", "echo", `{"text":"back"}`); got != "back" { // the restart is not due yet: the call starts the server
		t.Error(got)
	}
	// A server that ran for a long time gets all its restarts again.
	r.mu.Lock()
	r.now = r.now.Add(stableAfter)
	r.waits = nil
	r.mu.Unlock()
	_, _ = r.call("s", "crash", `{}`)
	r.until("the failure", func() bool { s, _ := r.m.Status("s"); return s.State == Failed })
	r.mu.Lock()
	defer r.mu.Unlock()
	if fmt.Sprint(r.waits) != "[1s]" {
		t.Errorf("waits: %v", r.waits)
	}
}

// A message of a gigabyte is not read into memory.
func TestHugeMessage(t *testing.T) {
	r := newRig(t, map[string]string{"s": "good"})
	r.await("s", Running)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := r.call("s", "huge", `{}`)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more than 32 MiB") {
		t.Errorf("huge: %v", err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8*maxMessage {
		t.Errorf("%d bytes were allocated", grown)
	}
	if got := r.text("s", "echo", `{"text":"back"}`); got != "back" {
		t.Error(got)
	}
}

// An unanswered call ends at its time limit, or when its caller cancels it. The server whose
// call took too long is notified.
func TestUnanswered(t *testing.T) {
	r := newRig(t, nil)
	r.m.Apply(Settings{}, map[string]config.MCPServer{"s": {Command: "good", CallTimeoutSeconds: 0.1}, "t": {Command: "good"}})
	r.await("s", Running)
	r.await("t", Running)
	if _, err := r.call("s", "hang", `{}`); err == nil || !strings.Contains(err.Error(), "said nothing for 100ms") {
		t.Errorf("hang: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := r.tool("t", "hang").Run(ctx, tools.Call{Arguments: json.RawMessage(`{}`)}, nil)
		ended <- err
	}()
	conn := r.m.servers["t"].conn
	for len(conn.slots) < 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	late := deadline(t)
	for strings.Count(r.log.String(), "cancelled") < 1 || !strings.Contains(r.log.String(), "server=s text=\"cancelled") {
		select {
		case <-late:
			t.Fatalf("the server got no cancellation:\n%s", r.log)
		default:
			runtime.Gosched()
		}
	}
	if s, _ := r.m.Status("s"); s.State != Running {
		t.Errorf("the server was restarted after a slow call: %+v", s)
	}
}

// Callers with the old tools keep them; later callers get the new ones.
func TestChangedTools(t *testing.T) {
	r := newRig(t, map[string]string{"s": "good"})
	r.await("s", Running)
	old := r.tool("s", "echo")
	r.text("s", "change", `{}`)
	r.until("the new tools", func() bool {
		for _, tool := range r.m.Tools() {
			if tool.Spec().Name == "other" {
				return true
			}
		}
		return false
	})
	if res, err := old.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"text":"still"}`)}, nil); err != nil || res.Outputs[0] != "still" {
		t.Errorf("the old tool: %v, %v", res, err)
	}
}

// The server speaks only the version without a handshake.
func TestModernServer(t *testing.T) {
	r := newRig(t, map[string]string{"s": "modern"})
	if s := r.await("s", Running); s.Offer.Protocol != "2026-07-28" || s.Offer.Server != "modern 2" {
		t.Errorf("offer: %+v", s.Offer)
	}
	if got := r.text("s", "echo", `{"text":"hi"}`); got != "hi" {
		t.Error(got)
	}
}

package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// shared is a buffer for concurrent reading and writing.
type shared struct {
	mu   sync.Mutex // guards data
	data bytes.Buffer
}

func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.data.Write(p)
}

// await waits until a text has been written a number of times.
func (s *shared) await(t *testing.T, text string, times int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		s.mu.Lock()
		all := s.data.String()
		s.mu.Unlock()
		if strings.Count(all, text) >= times {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%q was not written %d times: %s", text, times, all)
		}
	}
}

func TestWatch(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "ok"), scenario("a", has("x"), "x"))
	html := filepath.Join(filepath.Dir(m), "report.html") // the run writes it itself
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs shared
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"run", "--manifest", m, "--watch", "--report", html}, streams{io.Discard, &errs})
	}()
	errs.await(t, "PASSED", 1)
	errs.await(t, "Ctrl-C ends", 1)
	data, err := os.ReadFile(m)
	if err != nil {
		t.Fatal(err)
	}
	write(t, m, strings.Replace(string(data), `value: "x"`, `value: "y"`, 1))
	errs.await(t, "FAILED", 1)
	errs.await(t, "Ctrl-C ends", 2)
	write(t, m, "broken")
	errs.await(t, "a manifest is a mapping", 1)
	write(t, m, string(data))
	errs.await(t, "PASSED", 2)
	cancel()
	<-code
}

// An interrupted run reports its results, and leaves nothing behind.
func TestInterrupt(t *testing.T) {
	isolateEnvironment(t)
	m := manifest(t, agentTarget(t, "hang-once:bad"), scenario("a", has("x"), "x")+scenario("b", has("x"), "bad")+scenario("c", has("x"), "x"))
	out := filepath.Join(t.TempDir(), "r.json")
	file := filepath.Join(t.TempDir(), "j")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var errs shared
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"run", "--manifest", m, "--json-out", out, "--run-file", file, "--timeout", "600", "-j", "2"}, streams{io.Discard, &errs})
	}()
	for end := time.Now().Add(time.Minute); len(finishedNames(file)) < 2; time.Sleep(5 * time.Millisecond) { // the others are done
		if time.Now().After(end) {
			t.Fatal("nothing finishes")
		}
	}
	cancel()
	if got := <-code; got != exitInterrupted {
		t.Errorf("exit %d", got)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Parse(data)
	if err != nil || !r.Interrupted || len(r.Scenarios) != 2 || r.Status != report.Error || r.ExitReason != report.ReasonError {
		t.Errorf("%v: %+v", err, r)
	}
}

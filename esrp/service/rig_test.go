package service

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/esrp"
)

const token = "secret of the tests"

// echo provides operations that answer with their input. "hold" waits until it is released or its
// time limit is reached. "slow" does the same, and then fails with a code.
type echo struct {
	hold chan struct{}

	mu   sync.Mutex // guards runs
	runs map[string]int
}

func newEcho() *echo { return &echo{hold: make(chan struct{}), runs: map[string]int{}} }

func (e *echo) List() []Operation {
	return []Operation{{Service: "test", Name: "echo"}, {Service: "test", Name: "hold"}, {Service: "test", Name: "slow"}, {Service: "test", Name: "look", Repeatable: true}}
}

func (e *echo) Check(r esrp.Request) error {
	for _, o := range e.List() {
		if o.Service == r.Target.Service && o.Name == r.Target.Operation {
			return nil
		}
	}
	return &Failure{Code: esrp.InvalidInputSemantic, Message: "there is no such operation"}
}

func (e *echo) Repeatable(r esrp.Request) bool { return r.Target.Operation == "look" }

func (e *echo) Run(ctx context.Context, c Call) (Result, error) {
	data := c.Request.Inputs[0].Data
	e.mu.Lock()
	e.runs[data]++
	e.mu.Unlock()
	if operation := c.Request.Target.Operation; operation == "hold" || operation == "slow" {
		c.Progress(Progress{Message: "holding"})
		select {
		case <-e.hold:
		case <-ctx.Done():
			if operation == "slow" {
				return Result{}, &Failure{Code: esrp.Unknown, Message: "stopped"}
			}
			return Result{}, ctx.Err()
		}
	}
	if n, ok := strings.CutPrefix(data, "large "); ok {
		data = strings.Repeat(n, 1<<20)
	}
	if data == "panic" {
		panic("asked to")
	}
	return Result{Outputs: []Output{{Name: "out", ContentType: "text/plain", Data: []byte(data)}}}, nil
}

func (e *echo) count(data string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[data]
}

// rig is a service over real HTTP, with a worker in its process.
type rig struct {
	t    *testing.T
	ops  *echo
	s    *Service
	http *httptest.Server
	base string
}

func discardLogger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

func options(dir string, ops Operations) Options {
	return Options{
		Dir: dir, Token: token, Operations: ops, Log: discardLogger(),
	}
}

func newRig(t *testing.T, change func(*Options, *HTTPOptions)) *rig {
	t.Helper()
	ops := newEcho()
	o, h := options(t.TempDir(), ops), HTTPOptions{}
	if change != nil {
		change(&o, &h)
	}
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	w, err := s.Worker(t.Context(), WorkerOptions{Operations: ops, Log: o.Log})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	r := &rig{t: t, ops: ops, s: s, http: httptest.NewServer(s.Handler(h))}
	r.base = r.http.URL
	t.Cleanup(func() {
		r.http.CloseClientConnections()
		r.http.Close()
		http.DefaultClient.CloseIdleConnections()
	})
	return r
}

// request returns a request; fields is JSON that is inserted among the other fields.
func request(operation, data, mode, fields string) string {
	return `{"esrp_version":"1.0","request_id":"` + uuid.NewString() + `","timestamp":"2026-11-20T10:00:00Z","caller":{"system":"test"},` +
		`"target":{"service":"test","operation":"` + operation + `"},"mode":` + mode + `,` + fields +
		`"inputs":[{"name":"in","content_type":"text/plain","data":"` + data + `","encoding":"utf-8"}]}`
}

const (
	syncMode  = `{"type":"sync","timeout_ms":600000}`
	asyncMode = `{"type":"async","timeout_ms":600000}`
)

// do sends a request with the token.
func (r *rig) do(method, path, body string, header ...string) (int, string, http.Header) {
	r.t.Helper()
	q, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			q.Host = header[i+1]
		}
	}
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	out, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return res.StatusCode, string(out), res.Header
}

// respond is do for answers that must be valid responses.
func (r *rig) respond(method, path, body string, header ...string) (int, esrp.Response) {
	r.t.Helper()
	status, doc, _ := r.do(method, path, body, header...)
	out, err := esrp.DecodeResponse([]byte(doc))
	if err == nil {
		err = out.ValidateStrictly()
	}
	if err != nil {
		r.t.Fatalf("%d %s: %v", status, doc, err)
	}
	return status, out
}

// await waits for the end of a job, through its events.
func (r *rig) await(id string) esrp.Response {
	r.t.Helper()
	r.do("GET", "/v1/jobs/"+id+"/events", "")
	status, out := r.respond("GET", "/v1/jobs/"+id, "")
	if status != http.StatusOK || !out.Job.State.Final() {
		r.t.Fatalf("%d, %+v", status, out.Job)
	}
	return out
}

// waitUntilStarted waits until a job has started.
func (r *rig) waitUntilStarted(id string) {
	r.t.Helper()
	for {
		news, leave := r.s.hub.subscribe(id)
		j, err := r.s.job(r.t.Context(), id)
		if err != nil {
			r.t.Fatal(err)
		}
		if j.jobState() != esrp.JobQueued {
			leave()
			return
		}
		select {
		case <-news:
		case <-time.After(time.Minute):
			r.t.Fatal("the job does not start")
		}
		leave()
	}
}

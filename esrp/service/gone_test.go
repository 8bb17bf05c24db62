package service

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// submit sends a request, and returns the id of its job.
func submit(t *testing.T, s *Service, doc string) string {
	t.Helper()
	j, err := accept(t, s, doc)
	if err != nil {
		t.Fatal(err)
	}
	return j.id
}

// A job fails, and names the reason, if an artifact that it refers to was removed before a worker
// begins it.
func TestJobWhoseArtifactIsGone(t *testing.T) {
	ops := newEcho()
	s, err := Open(t.Context(), options(t.TempDir(), ops))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hash, err := s.blobs.PutBytes(t.Context(), []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	id := submit(t, s, strings.Replace(request("echo", artifactPrefix+hash, asyncMode, ""), `"encoding":"utf-8"`, `"encoding":"path"`, 1))
	next := submit(t, s, request("echo", "next", asyncMode, ""))
	if err := s.blobs.Delete(t.Context(), hash); err != nil {
		t.Fatal(err)
	}
	w, err := s.Worker(t.Context(), WorkerOptions{Operations: ops, Jobs: 1, Log: discardLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for id, want := range map[string]string{id: "failed " + hash, next: "succeeded"} {
		j, err := s.waitForEnd(ctx, id)
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		out, err := esrp.DecodeResponse(j.data)
		if err != nil {
			t.Fatal(err)
		}
		state, reason, _ := strings.Cut(want, " ")
		if string(out.Job.State) != state || reason != "" && (out.Error.Code != esrp.InvalidInputSemantic || !strings.Contains(out.Error.Message, reason)) {
			t.Errorf("want %s: %s", want, j.data)
		}
	}
}

// Services that use the same NATS server share their jobs. When the service that accepted a job is
// closed, the job continues, and another service answers requests about it.
func TestServiceIsGone(t *testing.T) {
	natsURL := addresses([]*server.Server{node(t, server.Options{})})
	ops := newEcho()
	open := func() *Service {
		o := options(t.TempDir(), ops)
		o.NATS.URL, o.Lease = natsURL, time.Second
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	gone, stays := open(), open()
	defer stays.Close()
	conn, err := Dial(t.Context(), Access{URL: natsURL, Token: token}, discardLogger())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorker(conn, WorkerOptions{Operations: ops, Jobs: 1, Log: discardLogger()})
	defer w.Close()
	doc := request("hold", "held", asyncMode, "")
	held, waits := submit(t, gone, doc), submit(t, gone, request("echo", "waits", asyncMode, ""))
	waitForEvent(t, gone, held, "holding")
	gone.Close()
	if same := submit(t, stays, doc); same != held {
		t.Errorf("the other service made a second job of the same request: %s, %s", same, held)
	}
	close(ops.hold)
	waitAllSucceededOnce(t, stays, []string{held, waits})
	if ops.count("held") != 1 {
		t.Errorf("run %d times", ops.count("held"))
	}
}

// A worker stops a job whose server is gone for good, with all its jobs, and takes jobs of the next
// server.
func TestServerIsGoneForGood(t *testing.T) {
	needs.Long(t)
	natsURL := addresses([]*server.Server{node(t, server.Options{})})
	ops := newEcho()
	open := func() *Service {
		o := options(t.TempDir(), ops)
		o.NATS.URL, o.Lease = natsURL, time.Second
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	gone := open()
	conn, err := Dial(t.Context(), Access{URL: natsURL, Token: token}, discardLogger())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorker(conn, WorkerOptions{Operations: ops, Jobs: 1, Log: discardLogger()})
	defer w.Close()
	waitForEvent(t, gone, submit(t, gone, request("hold", "held", asyncMode, "")), "holding")
	gone.Close()
	nc, err := nats.Connect(natsURL, nats.Token(token))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(js.DeleteStream(t.Context(), streamName), js.DeleteObjectStore(t.Context(), bucketName)); err != nil {
		t.Fatal(err)
	}
	stays := open()
	defer stays.Close()
	waitAllSucceededOnce(t, stays, []string{submit(t, stays, request("echo", "next", asyncMode, ""))})
}

// The warning about jobs of an earlier version names the folder and what to do.
func TestOldJobs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "service.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	o := options(dir, newEcho())
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if !strings.Contains(log.String(), "service.db") || !strings.Contains(log.String(), "not carried over") {
		t.Errorf("the log is %q", log.String())
	}
}

// A request whose header announces too long a body is refused before the body is sent.
func TestContentLengthBeyondTheLimit(t *testing.T) {
	r := newRig(t, func(_ *Options, h *HTTPOptions) { h.MaxBody = 1000 })
	for _, path := range []string{"/v1/execute", "/v1/jobs"} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(r.base, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 123456789\r\n\r\n", path, token)
		head := make([]byte, len("HTTP/1.1 413"))
		if _, err := io.ReadFull(conn, head); err != nil || string(head) != fmt.Sprint("HTTP/1.1 ", http.StatusRequestEntityTooLarge) {
			t.Errorf("%s: %q %v", path, head, err)
		}
	}
}

package service

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/artifact"
)

// taken submits a request.
func taken(t *testing.T, s *Service, doc string) string {
	t.Helper()
	q, err := esrp.DecodeRequest([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	j, err := s.accept(t.Context(), q, []byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return j.id
}

// A job fails with the reason if a file that it refers to is gone when a worker requests the job.
func TestJobWhoseArtifactIsGone(t *testing.T) {
	ops, kept := newEcho(), t.TempDir()
	o := options(t, t.TempDir(), ops)
	o.Artifacts = artifact.New(kept, artifact.Options{})
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	hash, err := o.Artifacts.Put(t.Context(), []byte("content"))
	if err != nil {
		t.Fatal(err)
	}
	id := taken(t, s, strings.Replace(request("echo", artifactPrefix+hash, asyncMode, ""), `"encoding":"utf-8"`, `"encoding":"path"`, 1))
	next := taken(t, s, request("echo", "next", asyncMode, ""))
	entries, err := os.ReadDir(kept)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.RemoveAll(filepath.Join(kept, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	w, err := s.Worker(t.Context(), WorkerOptions{Operations: ops, Jobs: 1, Log: quiet()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for id, want := range map[string]string{id: "failed " + hash, next: "succeeded"} {
		j, err := s.wait(ctx, id)
		if err != nil {
			t.Fatalf("%s: %v", want, err)
		}
		doc, _, err := j.answer()
		if err != nil {
			t.Fatal(err)
		}
		out, err := esrp.DecodeResponse(doc)
		if err != nil {
			t.Fatal(err)
		}
		state, reason, _ := strings.Cut(want, " ")
		if string(out.Job.State) != state || reason != "" && (out.Error.Code != esrp.InvalidInputSemantic || !strings.Contains(out.Error.Message, reason)) {
			t.Errorf("want %s: %s", want, doc)
		}
	}
}

// A worker stops a job whose server is gone for good, and frees its slot.
func TestServerIsGone(t *testing.T) {
	at := addresses([]*server.Server{node(t, server.Options{})})
	ops := newEcho()
	open := func() *Service {
		o := options(t, t.TempDir(), ops)
		o.NATS, o.Lease = at, time.Second
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	gone, stays := open(), open()
	defer stays.Close()
	nc, err := Dial(t.Context(), at, token, quiet())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorker(nc, WorkerOptions{Operations: ops, Jobs: 1, Log: quiet()})
	defer w.Close()
	held := taken(t, gone, request("hold", "held", asyncMode, ""))
	taken(t, gone, request("echo", "waits", asyncMode, ""))
	eventually(t, gone, held, "holding")
	gone.Close()
	id := taken(t, stays, request("echo", "next", asyncMode, ""))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if j, err := stays.wait(ctx, id); err != nil || j.state != esrp.JobSucceeded {
		t.Errorf("%s %v", j.state, err)
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

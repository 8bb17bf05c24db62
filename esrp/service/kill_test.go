package service

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// role is the role of this program, unless it is the test: "worker URL", "server DIR", or "node URL",
// which is a server without a worker that uses another's NATS.
const role = "ESRP_TEST_ROLE"

func TestMain(m *testing.M) {
	if what := os.Getenv(role); what != "" {
		if err := runRole(what); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m, testkit.IgnoreNATS())
}

// runRole acts as the worker or server that will be killed. It ends when the test does.
func runRole(what string) error {
	ops := newEcho()
	kind, where, _ := strings.Cut(what, " ")
	o := WorkerOptions{Operations: ops}
	if kind == "worker" {
		nc, err := Dial(context.Background(), Access{URL: where, Token: token}, discardLogger())
		if err != nil {
			return err
		}
		defer NewWorker(nc, o).Close()
	} else {
		service := Options{Dir: where, Token: token, Operations: ops, Log: discardLogger()}
		if kind == "node" {
			service.NATS.URL = where
		}
		s, err := Open(context.Background(), service)
		if err != nil {
			return err
		}
		defer s.Close()
		if kind == "server" {
			w, err := s.Worker(context.Background(), o)
			if err != nil {
				return err
			}
			defer w.Close()
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go func() { _ = http.Serve(l, s.Handler(HTTPOptions{})) }()
		fmt.Println("http://" + l.Addr().String())
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// startProcess starts this program in a role.
func startProcess(t *testing.T, what string) (c *exec.Cmd, out *bufio.Reader) {
	t.Helper()
	c = exec.Command(os.Args[0])
	c.Env = append(os.Environ(), role+"="+what)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	return c, bufio.NewReader(stdout)
}

// frames returns all events of a job so far, in the form in which listeners get them.
func frames(t *testing.T, s *Service, id string) (kinds []esrp.JobEventType, bodies []string) {
	t.Helper()
	for after := uint64(0); ; {
		e, err := s.next(t.Context(), id, after)
		if errors.Is(err, jet.ErrNotFound) {
			return kinds, bodies
		}
		if err != nil {
			t.Fatal(err)
		}
		kind, body, err := e.clientEvent()
		if err != nil {
			t.Fatal(err)
		}
		kinds, bodies, after = append(kinds, kind), append(bodies, string(body)), e.seq
	}
}

// waitForEvent waits for an event of a job that contains a text.
func waitForEvent(t *testing.T, s *Service, id, says string) {
	t.Helper()
	for {
		news, leave := s.hub.subscribe(id)
		_, bodies := frames(t, s, id)
		if slices.ContainsFunc(bodies, func(body string) bool { return strings.Contains(body, says) }) {
			leave()
			return
		}
		select {
		case <-news:
		case <-time.After(2 * time.Minute):
			t.Fatalf("job %s has no event with %q", id, says)
		}
		leave()
	}
}

// Two workers use two connections to NATS, and one of them is killed during a job. All jobs
// complete exactly once.
func TestKilledWorker(t *testing.T) {
	needs.Long(t)
	ops := newEcho()
	o := options(t.TempDir(), ops)
	o.NATSListen, o.Lease = "127.0.0.1:0", 3*time.Second
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	victim, _ := startProcess(t, "worker nats://"+s.NATSAddress())
	ids := []string{submit(t, s, request("hold", "victim", asyncMode, ""))}
	waitForEvent(t, s, ids[0], "holding") // the other process has it
	for i := range 199 {
		ids = append(ids, submit(t, s, request("echo", fmt.Sprint("job ", i), asyncMode, "")))
	}
	close(ops.hold) // jobs in this process do not hold
	nc, err := Dial(t.Context(), Access{URL: "nats://" + s.NATSAddress(), Token: token}, discardLogger())
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorker(nc, WorkerOptions{Operations: ops, Log: discardLogger()})
	defer w.Close()
	if _, err := s.waitForEnd(t.Context(), ids[len(ids)/2]); err != nil { // both workers are busy
		t.Fatal(err)
	}
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	waitAllSucceededOnce(t, s, ids)
	waitForEvent(t, s, ids[0], "its worker was lost")
	if ops.count("victim") == 0 {
		t.Error("the job of the killed worker has an answer, although no other worker ran it again")
	}
}

// When a server is killed with queued and running jobs, the next one finishes them.
func TestKilledServer(t *testing.T) {
	dir := t.TempDir()
	server, out := startProcess(t, "server "+dir)
	url, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, base: strings.TrimSpace(url)}
	var ids []string
	for i := range 10 {
		// four run, the others wait
		status, res := r.respond("POST", "/v1/jobs", request("hold", fmt.Sprint("job ", i), asyncMode, ""))
		if status != http.StatusAccepted {
			t.Fatalf("%d %+v", status, res)
		}
		ids = append(ids, res.Job.ID.String())
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait()
	http.DefaultClient.CloseIdleConnections()

	ops := newEcho()
	close(ops.hold)
	o := options(dir, ops)
	o.Lease = time.Hour // the service does not wait for workers that died with the server
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.Worker(t.Context(), WorkerOptions{Operations: ops, Log: discardLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i, id := range ids {
		if j, err := s.waitForEnd(t.Context(), id); err != nil || j.jobState() != esrp.JobSucceeded || ops.count(fmt.Sprint("job ", i)) != 1 {
			t.Errorf("job %d: %s, %v, run %d times", i, j.jobState(), err, ops.count(fmt.Sprint("job ", i)))
		}
	}
}

// waitAllSucceededOnce waits for jobs. Each must succeed, and end exactly once.
func waitAllSucceededOnce(t *testing.T, s *Service, ids []string) {
	t.Helper()
	for i, id := range ids {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute) // most callers have a deadline
		j, err := s.waitForEnd(ctx, id)
		cancel()
		if err != nil || j.jobState() != esrp.JobSucceeded {
			t.Fatalf("job %d: %s, %v", i, j.jobState(), err)
		}
		kinds, _ := frames(t, s, id)
		ends := 0
		for _, kind := range kinds {
			if isEnd(kind) {
				ends++
			}
		}
		if ends != 1 || !isEnd(kinds[len(kinds)-1]) {
			t.Errorf("job %d ended %d times: %q", i, ends, kinds)
		}
	}
}

func isEnd(kind esrp.JobEventType) bool {
	return kind == esrp.JobCompletedEvent || kind == esrp.JobFailedEvent || kind == esrp.JobCancelledEvent
}

package service

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// nodesOf opens services that share one NATS.
func nodesOf(t *testing.T, n int, lease time.Duration) (address string, out []*Service) {
	t.Helper()
	alone := node(t, server.Options{})
	if !alone.ReadyForConnections(time.Minute) {
		t.Fatal("NATS does not start")
	}
	address = addresses([]*server.Server{alone})
	for range n {
		o := options(t.TempDir(), newEcho())
		o.NATS.URL, o.Lease = address, lease
		s, err := Open(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		out = append(out, s)
	}
	return address, out
}

// accept sends a request.
func accept(t *testing.T, s *Service, doc string) (jobEvent, error) {
	t.Helper()
	q, err := esrp.DecodeRequest([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	return s.accept(t.Context(), q, []byte(doc))
}

// Two nodes that get the same key at the same time make one job of it, and refuse another payload.
func TestTwoNodesOneKey(t *testing.T) {
	needs.Long(t)
	_, nodes := nodesOf(t, 2, time.Minute)
	for i := range 1000 {
		key := fmt.Sprintf(`"idempotency_key":"k%d",`, i)
		var ids [2]string
		var together sync.WaitGroup
		for n, s := range nodes {
			doc := request("echo", "x", asyncMode, key)
			together.Go(func() {
				j, err := accept(t, s, doc)
				if ids[n] = j.id; err != nil {
					t.Error(err)
				}
			})
		}
		together.Wait()
		if ids[0] != ids[1] {
			t.Fatalf("key %d has two jobs: %q", i, ids)
		}
		if j, err := accept(t, nodes[i%2], request("echo", "y", asyncMode, key)); err == nil {
			t.Errorf("key %d: a request with another payload was accepted as job %s", i, j.id)
		}
	}
	last, err := nodes[0].stream.LastSeq(t.Context())
	if err != nil || last != 1000 {
		t.Errorf("there are %d events of 1000 jobs, %v", last, err)
	}
}

// cuttingProxy forwards connections to NATS until a client has sent a number of events. Then it cuts all
// connections and takes no others, so that the answer to the last event is lost.
type cuttingProxy struct {
	l    net.Listener
	to   string
	done chan struct{} // closed by the cut

	mu   sync.Mutex // guards the fields below
	left int
	open []net.Conn
}

func newCutting(t *testing.T, to string, after int) *cuttingProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cuttingProxy{l: l, to: to, left: after, done: make(chan struct{})}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			work.Go(func() { c.forward(from) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		c.cut()
		work.Wait()
	})
	return c
}

func (c *cuttingProxy) forward(from net.Conn) {
	defer from.Close()
	to, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer to.Close()
	c.mu.Lock()
	c.open = append(c.open, from, to)
	c.mu.Unlock()
	go func() { _, _ = io.Copy(from, to) }()
	const event = "HPUB esrp.job."
	var tail []byte // of what was sent, shorter than event
	chunk := make([]byte, 64<<10)
	for {
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		if _, err := to.Write(chunk[:n]); err != nil {
			return
		}
		tail = append(tail, chunk[:n]...)
		found := bytes.Count(tail, []byte(event))
		tail = tail[max(0, len(tail)-len(event)+1):]
		c.mu.Lock()
		c.left -= found
		over := c.left <= 0 && found > 0
		c.mu.Unlock()
		if over {
			c.cut()
			return
		}
	}
}

func (c *cuttingProxy) cut() {
	_ = c.l.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	select {
	case <-c.done:
	default:
		close(c.done)
	}
}

// progressOperations reports progress, and has an output that is stored beside the events.
type progressOperations struct{ *echo }

func (s progressOperations) Run(_ context.Context, c Call) (Result, error) {
	c.Progress(Progress{Message: "begun"})
	return Result{Outputs: []Output{{Name: "out", ContentType: "text/plain", Data: bytes.Repeat([]byte("x"), maxInline)}}}, nil
}

// In each round, a worker loses its connection after one event more, before it gets the answer to
// that event. Another worker finishes the job. The job ends once and has no event after its end,
// and the node that did not accept it returns the events after each position.
func TestWorkerIsLostBetweenEvents(t *testing.T) {
	needs.Long(t)
	address, nodes := nodesOf(t, 2, time.Second)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(nodes[1].Handler(HTTPOptions{}))
	defer other.Close()
	defer http.DefaultClient.CloseIdleConnections()
	r := &rig{t: t, s: nodes[1], base: other.URL}
	work := func(address string) *Worker {
		conn, err := Dial(t.Context(), Access{URL: address, Token: token}, discardLogger())
		if err != nil {
			t.Fatal(err)
		}
		return NewWorker(conn, WorkerOptions{Operations: progressOperations{newEcho()}, Jobs: 1, Log: discardLogger()})
	}
	for after := 1; ; after++ {
		proxy := newCutting(t, u.Host, after)
		lost := work("nats://" + proxy.l.Addr().String())
		j, err := accept(t, nodes[0], request("echo", fmt.Sprint("cut ", after), asyncMode, ""))
		if err != nil {
			t.Fatal(err)
		}
		finished := make(chan struct{})
		go func() {
			defer close(finished)
			_, _ = nodes[0].waitForEnd(t.Context(), j.id)
		}()
		cut := true
		select {
		case <-proxy.done:
		case <-finished:
			select {
			case <-proxy.done:
			default:
				cut = false
			}
		}
		rescuer := work(address)
		<-finished
		waitAllSucceededOnce(t, nodes[0], []string{j.id})
		r.wholeStream(j.id)
		rescuer.Close()
		lost.Close()
		if !cut { // it adds no more events than these
			if after <= 3 {
				t.Errorf("there were only %d events", after-1)
			}
			return
		}
	}
}

// wholeStream checks that a request for a job's events after any event returns the same events as a
// request for all.
func (r *rig) wholeStream(id string) {
	r.t.Helper()
	_, all, _ := r.do("GET", "/v1/jobs/"+id+"/events", "")
	events := strings.SplitAfter(all, "\n\n")
	events = events[:len(events)-1]
	for n, e := range events {
		_, seq, _ := strings.Cut(e, "id: ")
		seq, _, _ = strings.Cut(seq, "\n")
		if _, err := strconv.Atoi(seq); err != nil {
			r.t.Fatalf("an event without a number: %q", e)
		}
		if _, rest, _ := r.do("GET", "/v1/jobs/"+id+"/events", "", "Last-Event-ID", seq); rest != strings.Join(events[n+1:], "") {
			r.t.Errorf("after %s there is %q of %q", seq, rest, all)
		}
	}
}

// The only node is killed at random moments while jobs are accepted. Each job that it accepted ends
// once.
func TestOnlyNodeIsKilled(t *testing.T) {
	needs.Long(t)
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv("ESRP_KILLS")); err == nil {
		rounds = n
	}
	dir := t.TempDir()
	var ids []string
	for round := range rounds {
		server, out := startProcess(t, "server "+dir)
		address, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		base := strings.TrimSpace(address)
		kill := time.AfterFunc(time.Duration(rand.IntN(300))*time.Millisecond, func() { _ = server.Process.Kill() })
		for i := 0; ; i++ {
			body := request("echo", fmt.Sprintf("job %d of %d", i, round), asyncMode, "")
			q, err := http.NewRequestWithContext(t.Context(), "POST", base+"/v1/jobs", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			q.Header.Set("Authorization", "Bearer "+token)
			res, err := http.DefaultClient.Do(q)
			if err != nil {
				break
			}
			text, err := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if err != nil {
				break
			}
			if a, err := esrp.DecodeResponse(text); err == nil && res.StatusCode == http.StatusAccepted {
				ids = append(ids, a.Job.ID.String())
			}
		}
		kill.Stop()
		_ = server.Wait()
		http.DefaultClient.CloseIdleConnections()
	}
	if len(ids) < rounds {
		t.Fatalf("only %d jobs were accepted", len(ids))
	}
	o := options(dir, newEcho())
	o.Lease = time.Second
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	w, err := s.Worker(t.Context(), WorkerOptions{Operations: newEcho(), Log: discardLogger()})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	waitAllSucceededOnce(t, s, ids)
	t.Logf("%d jobs", len(ids))
}

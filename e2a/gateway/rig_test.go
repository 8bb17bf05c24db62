package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/gateway"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

func TestMain(m *testing.M) { daemontest.Main(m) }

// rig is a gateway on a real daemon, with a scripted model over real HTTP.
type rig struct {
	*daemontest.World
	t       testing.TB
	host    *daemon.Daemon
	turns   *turn.Service
	gateway *gateway.Gateway
}

func newRig(t testing.TB, model string) *rig {
	t.Helper()
	r := &rig{World: daemontest.New(t, model, nil), t: t}
	host := r.Daemon()
	r.host = host
	t.Cleanup(host.Close)
	r.turns = turn.New(turn.Options{Host: host, Workspace: r.Root})
	t.Cleanup(r.turns.Close)
	r.gateway = gateway.New(gateway.Options{Turns: r.turns, CloseGrace: time.Minute})
	return r
}

// client talks to the gateway in lines. It checks every frame.
type client struct {
	t     testing.TB
	in    io.WriteCloser
	out   *bufio.Reader
	done  chan error
	stop  context.CancelFunc // acts as the end of the program
	check checker
	next  int
}

func (r *rig) connect() *client {
	r.t.Helper()
	in, toGateway := io.Pipe()
	fromGateway, out := io.Pipe()
	c := &client{t: r.t, in: toGateway, out: bufio.NewReader(fromGateway), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = cancel
	go func() {
		err := r.gateway.Serve(ctx, in, out)
		_ = out.Close()
		c.done <- err
	}()
	r.t.Cleanup(func() {
		cancel()
		_ = toGateway.Close()
		_ = fromGateway.Close()
		<-c.done
	})
	return c
}

// say sends an envelope and returns its request id.
func (c *client) say(e map[string]any) string {
	c.t.Helper()
	c.next++
	id := fmt.Sprint("req", c.next)
	if _, there := e["request_id"]; !there {
		e["request_id"] = id
	}
	line, err := json.Marshal(e)
	if err != nil {
		c.t.Fatal(err)
	}
	c.line(string(line))
	return id
}

func (c *client) line(text string) {
	c.t.Helper()
	if _, err := c.in.Write([]byte(text + "\n")); err != nil {
		c.t.Fatal(err)
	}
}

// frame returns the next frame.
func (c *client) frame() e2a.Response {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("no frame: %v", err)
	}
	var f e2a.Response
	if err := json.Unmarshal(line, &f); err != nil {
		c.t.Fatalf("%s: %v", line, err)
	}
	if err := c.check.check(f); err != nil {
		c.t.Errorf("%v\n%s", err, line)
	}
	return f
}

// readUntil reads frames of a request up to a wanted one; other frames are kept separately.
func (c *client) readUntil(request string, want func(e2a.Response) bool) []e2a.Response {
	c.t.Helper()
	var frames []e2a.Response
	for {
		f := c.frame()
		if *f.RequestID != request {
			continue
		}
		frames = append(frames, f)
		if want(f) {
			return frames
		}
		if f.IsFinal {
			c.t.Fatalf("the answer ended with %v", body(f.Body))
		}
	}
}

// answer reads all frames of a request.
func (c *client) answer(request string) []e2a.Response {
	c.t.Helper()
	return c.readUntil(request, func(f e2a.Response) bool { return f.IsFinal })
}

// call sends an envelope and returns the final frame.
func (c *client) call(e map[string]any) e2a.Response {
	c.t.Helper()
	frames := c.answer(c.say(e))
	return frames[len(frames)-1]
}

// body decodes the body of a frame.
func body(raw json.RawMessage) (out map[string]any) {
	_ = json.Unmarshal(raw, &out)
	return out
}

// result returns the result in a final frame.
func result(t testing.TB, f e2a.Response) map[string]any {
	t.Helper()
	r, ok := body(f.Body)["result"].(map[string]any)
	if !ok || f.Status != e2a.Succeeded {
		t.Fatalf("%s %s: %v", f.Kind, f.Status, body(f.Body))
	}
	return r
}

// code returns the code of a failure.
func code(t testing.TB, f e2a.Response) string {
	t.Helper()
	if f.Kind != e2a.KindError || f.Status != e2a.Failed || !f.IsFinal {
		t.Fatalf("%s %s: %v", f.Kind, f.Status, body(f.Body))
	}
	return fmt.Sprint(body(f.Body)["code"])
}

// tool returns the delta of a tool chunk.
func tool(f e2a.Response) (delta map[string]any, ok bool) {
	delta, _ = body(f.Body)["delta"].(map[string]any)
	return delta, body(f.Body)["delta_kind"] == "tool"
}

// asks reports whether a frame shows a call that waits for a decision.
func asks(f e2a.Response) bool {
	d, ok := tool(f)
	return ok && d["phase"] == "run" && d["manual_approval"] == true
}

// summarize summarizes frames.
func summarize(frames []e2a.Response) string {
	var out []string
	add := func(s string) {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	for _, f := range frames {
		if d, ok := tool(f); ok {
			add(fmt.Sprint(d["phase"]))
		} else if f.Kind == e2a.KindChunk && body(f.Body)["delta_kind"] != "custom" {
			add(fmt.Sprint(body(f.Body)["delta_kind"]))
		} else if f.IsFinal {
			add(string(f.Kind))
		} else if body(f.Body)["event_type"] == "question" {
			add("question")
		}
	}
	return strings.Join(out, " ")
}

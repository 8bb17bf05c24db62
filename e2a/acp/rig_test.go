package acp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/e2a/acp"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

func TestMain(m *testing.M) { daemontest.Main(m) }

type object = map[string]any

// rig is an agent on real daemons, with a scripted model over real HTTP.
type rig struct {
	*daemontest.World
	t      testing.TB
	opened int // instances
	closed int
	last   acp.Setup
}

func newRig(t testing.TB, model string) *rig {
	t.Helper()
	return &rig{World: daemontest.New(t, model, nil), t: t}
}

func (r *rig) open(p acp.Setup) (*turn.Service, func(), error) {
	host := r.Daemon()
	turns := turn.New(turn.Options{Host: host, Workspace: p.Folders[0], Folders: p.Folders[1:], InitOptions: p.InitOptions, Editor: p.Editor})
	r.opened++
	r.last = p
	return turns, func() {
		r.closed++
		turns.Close()
		host.Close()
	}, nil
}

// client is an ACP client over pipes. Every message from the agent is checked.
type client struct {
	t    testing.TB
	in   io.WriteCloser
	out  *bufio.Reader
	done chan error
	next int
	sent map[int]string // methods of requests, by id
	// notifications and requests contain all that the agent has sent so far.
	notifications []object
	requests      []object
	answer        func(method string, params object) object // to the agent's requests; nil leaves them unanswered
}

func (r *rig) connect() *client {
	r.t.Helper()
	in, toAgent := io.Pipe()
	fromAgent, out := io.Pipe()
	c := &client{t: r.t, in: toAgent, out: bufio.NewReader(fromAgent), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := acp.Serve(ctx, in, out, acp.Options{Open: r.open, Cwd: r.Root, Version: "test"})
		_ = out.Close()
		c.done <- err
	}()
	r.t.Cleanup(func() {
		cancel()
		_ = toAgent.Close()
		_ = fromAgent.Close()
		<-c.done
		if r.opened != r.closed {
			r.t.Errorf("%d instances were opened, %d closed", r.opened, r.closed)
		}
	})
	return c
}

// leave closes the client's side and waits for the agent's end.
func (c *client) leave() {
	c.t.Helper()
	_ = c.in.Close()
	if err := <-c.done; err != nil {
		c.t.Error(err)
	}
	c.done <- nil // for the cleanup
}

func (c *client) line(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, text+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) send(m object) {
	c.t.Helper()
	m["jsonrpc"] = "2.0"
	line, err := json.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	c.line(string(line))
}

func (c *client) notify(method string, params object) {
	c.t.Helper()
	c.send(object{"method": method, "params": params})
}

// begin sends a request and returns its id.
func (c *client) begin(method string, params object) int {
	c.t.Helper()
	c.next++
	if c.sent == nil {
		c.sent = map[int]string{}
	}
	c.sent[c.next] = method
	c.send(object{"id": c.next, "method": method, "params": params})
	return c.next
}

// methodOf returns the method that an answer is for.
func (c *client) methodOf(id any) string {
	n, err := strconv.Atoi(fmt.Sprint(id))
	if err != nil {
		c.t.Fatalf("the id %v is none of ours", id)
	}
	return c.sent[n]
}

// message reads the next message, stores notifications and answers requests.
func (c *client) message() object {
	c.t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		c.t.Fatalf("the agent says nothing: %v", err)
	}
	var m object
	if err := json.Unmarshal(line, &m); err != nil || m["jsonrpc"] != "2.0" {
		c.t.Fatalf("%s: %v", line, err)
	}
	checkSchema(c.t, c, line)
	method, _ := m["method"].(string)
	id, isRequest := m["id"]
	switch {
	case method != "" && isRequest:
		c.requests = append(c.requests, m)
		if c.answer != nil {
			params, _ := m["params"].(object)
			if result := c.answer(method, params); result != nil {
				c.send(object{"id": id, "result": result})
			}
		}
	case method != "":
		c.notifications = append(c.notifications, m)
	}
	return m
}

// readUntil reads messages up to a wanted one, which it returns.
func (c *client) readUntil(want func(object) bool) object {
	c.t.Helper()
	for {
		if m := c.message(); want(m) {
			return m
		}
	}
}

// end reads up to the answer of a request.
func (c *client) end(id int) object {
	c.t.Helper()
	return c.readUntil(func(m object) bool { return m["method"] == nil && m["id"] == float64(id) })
}

// call sends a request and returns its result.
func (c *client) call(method string, params object) object {
	c.t.Helper()
	m := c.end(c.begin(method, params))
	result, ok := m["result"].(object)
	if !ok {
		c.t.Fatalf("%s: %v", method, m)
	}
	return result
}

// fails sends a request and returns the code and the message of its error.
func (c *client) fails(method string, params object) (int, string) {
	c.t.Helper()
	m := c.end(c.begin(method, params))
	failure, ok := m["error"].(object)
	if !ok {
		c.t.Fatalf("%s: %v", method, m)
	}
	return int(failure["code"].(float64)), failure["message"].(string)
}

// start initializes the connection and creates a session in the rig's folder.
func (c *client) start(r *rig, capabilities object) (sessionID string) {
	c.t.Helper()
	c.call("initialize", object{"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": object{"name": "test", "version": "1"}})
	made := c.call("session/new", object{"cwd": r.Root, "mcpServers": []any{}})
	return made["sessionId"].(string)
}

func prompt(session, text string) object {
	return object{"sessionId": session, "prompt": []any{object{"type": "text", "text": text}}}
}

// updates returns the session updates after the given number of notifications.
func (c *client) updates(from int) []object {
	var out []object
	for _, m := range c.notifications[from:] {
		if params, ok := m["params"].(object); ok && m["method"] == "session/update" {
			out = append(out, params["update"].(object))
		}
	}
	return out
}

// story summarizes updates: texts are joined, and calls have their states.
func story(updates []object) string {
	var out []string
	for _, u := range updates {
		kind := u["sessionUpdate"].(string)
		switch kind {
		case "agent_message_chunk", "agent_thought_chunk", "user_message_chunk":
			kind = strings.TrimSuffix(kind, "_chunk")
			if len(out) > 0 && out[len(out)-1] == kind {
				continue
			}
		case "tool_call", "tool_call_update":
			kind = fmt.Sprintf("%s(%v)", strings.TrimPrefix(kind, "tool_"), u["status"])
			kind = strings.ReplaceAll(kind, "<nil>", "")
		case "available_commands_update", "usage_update":
			continue
		}
		out = append(out, kind)
	}
	return strings.Join(out, " ")
}

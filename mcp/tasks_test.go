package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/tools"
)

// taskServer is a server with tasks: it answers each request with the next answer for its method, and
// then repeats the last one. An empty answer is not sent.
type taskServer struct {
	answers map[string][]string

	mu    sync.Mutex // guards the fields below
	heard []string   // methods with parameters
}

func (k *taskServer) serve(t *testing.T, l *testTransport, s *session) {
	for {
		select {
		case e := <-l.out:
			k.mu.Lock()
			k.heard = append(k.heard, e.Method+" "+string(e.Params)+string(e.Result))
			list := k.answers[e.Method]
			if len(list) > 1 {
				k.answers[e.Method] = list[1:]
			}
			k.mu.Unlock()
			if len(list) > 0 && list[0] != "" {
				l.say(t, strings.ReplaceAll(list[0], "$ID", string(e.ID)))
			}
		case <-s.ctx.Done():
			return
		}
	}
}

// count counts the requests that contain a text.
func (k *taskServer) count(text string) (n int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range k.heard {
		if strings.Contains(one, text) {
			n++
		}
	}
	return n
}

func ok(result string) string { return `{"jsonrpc":"2.0","id":$ID,"result":` + result + `}` }

// withTasks returns the capabilities of a server that can turn calls into tasks.
func withTasks(t *testing.T) (c wire.ServerCapabilities) {
	t.Helper()
	if err := json.Unmarshal([]byte(`{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}`), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// A tool that requires a task is called as one, and the result of the task becomes its result,
// whichever way the server takes. With the extension, the server decides which calls become tasks.
func TestCallsBecomeTasks(t *testing.T) {
	const (
		working   = `"taskId":"t1","status":"working","pollInterval":2000,"pollIntervalMs":2000`
		done      = `{"content":[{"type":"text","text":"the result"}]}`
		created   = `{"task":{` + working + `,"statusMessage":"begun"}}`
		extension = `{"resultType":"task",` + working + `,"statusMessage":"begun"}`
	)
	for name, c := range map[string]struct {
		answers map[string][]string
		modern  bool
		want    string
		polls   int
	}{
		"required": {map[string][]string{
			"tools/call":   {ok(created)},
			"tasks/get":    {ok(`{` + working + `}`), ok(`{` + working + `,"statusMessage":"half way"}`), ok(`{"taskId":"t1","status":"completed"}`)},
			"tasks/result": {ok(done)},
		}, false, "the result", 3},
		"failed": {map[string][]string{
			"tools/call":   {ok(created)},
			"tasks/get":    {ok(`{"taskId":"t1","status":"failed"}`)},
			"tasks/result": {`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32603,"message":"out of cheese"}}`},
		}, false, "out of cheese", 1},
		"cancelled": {map[string][]string{
			"tools/call": {ok(created)},
			"tasks/get":  {ok(`{"taskId":"t1","status":"cancelled","statusMessage":"quota"}`)},
		}, false, "the server cancelled the task: quota", 1},
		"unknown": {map[string][]string{
			"tools/call": {ok(created)},
			"tasks/get":  {`{"jsonrpc":"2.0","id":$ID,"error":{"code":-32602,"message":"Task has expired"}}`},
		}, false, "Task has expired", 1},
		"extension": {map[string][]string{
			"tools/call": {ok(extension)},
			"tasks/get":  {ok(`{` + working + `}`), ok(`{"taskId":"t1","status":"completed","result":` + done + `}`)},
		}, true, "the result", 2},
		"extension failed": {map[string][]string{
			"tools/call": {ok(extension)},
			"tasks/get":  {ok(`{"taskId":"t1","status":"failed","error":{"code":-32603,"message":"out of cheese"}}`)},
		}, true, "out of cheese", 1},
		"extension asks": {map[string][]string{
			"tools/call": {ok(extension)},
			"tasks/get": {
				ok(`{"taskId":"t1","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`),
				ok(`{"taskId":"t1","status":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{}}}}`), // the server notices the answer late
				ok(`{"taskId":"t1","status":"completed","result":` + done + `}`),
			},
			"tasks/update": {ok(`{}`)},
		}, true, "the result", 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				conn, l := newTestConnection(t)
				conn.session.handlers = map[string]Handler{"elicitation/create": func(context.Context, ServerRequest) (any, error) {
					asked++
					return elicitResult{Action: "decline"}, nil
				}}
				if conn.capabilities = withTasks(t); c.modern {
					conn.session.setVersion(newestVersion)
				}
				server := &taskServer{answers: c.answers}
				go server.serve(t, l, conn.session)
				var said []string
				tool := &Tool{name: "t", spec: tools.Spec{Name: "t"}, tasks: "required"}
				if c.modern {
					tool.tasks, conn.capabilities.Tasks = "", nil
				}
				start := time.Now()
				res, err := conn.call(t.Context(), tool, tools.Call{}, func(text string) { said = append(said, text) })
				got := strings.Join(res.Outputs, " ") + fmt.Sprint(err)
				if !strings.Contains(got, c.want) || strings.Contains(got, "was lost") {
					t.Errorf("%q, want %q", got, c.want)
				}
				if n := server.count("tasks/get "); n != c.polls || time.Since(start) < time.Duration(min(n, 1))*time.Second {
					t.Errorf("%d polls in %s, want %d", n, time.Since(start), c.polls)
				}
				if len(said) == 0 || said[0] != "begun\n" {
					t.Errorf("the user saw %q", said)
				}
				if n := server.count(`"task":{"ttl":3600000}`); (n == 1) == c.modern {
					t.Errorf("%d calls were made as tasks", n)
				}
				if name == "extension asks" && (asked != 1 || server.count("tasks/update ") != 1) {
					t.Errorf("the user was asked %d times, the server heard %q", asked, server.heard)
				}
				if server.count("tasks/cancel") > 0 {
					t.Error("a task that had ended was cancelled")
				}
			})
		})
	}
}

// While a task waits for the user, eca requests its result, and the question arrives on that
// stream. Progress reports count even after the first answer.
func TestTaskAsksTheUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, l := newTestConnection(t)
		conn.capabilities = withTasks(t)
		var said []string
		server := &taskServer{answers: map[string][]string{
			"tools/call":   {ok(`{"task":{"taskId":"t1","status":"working"}}`)},
			"tasks/get":    {ok(`{"taskId":"t1","status":"input_required","statusMessage":"waits for you"}`)},
			"tasks/result": {""},
		}}
		conn.session.handlers = map[string]Handler{"elicitation/create": func(_ context.Context, r ServerRequest) (any, error) {
			if r.Calls[len(r.Calls)-1].Tool != "t" {
				t.Errorf("asked for %+v", r.Calls)
			}
			return elicitResult{Action: "decline"}, nil
		}}
		go server.serve(t, l, conn.session)
		conn.session.calls = conn.activeCalls
		ended := make(chan string, 1)
		go func() {
			res, err := conn.call(t.Context(), &Tool{name: "t", spec: tools.Spec{Name: "t"}, tasks: "required"}, tools.Call{}, func(text string) { said = append(said, text) })
			ended <- strings.Join(res.Outputs, " ") + fmt.Sprint(err)
		}()
		time.Sleep(5 * time.Minute)                                                    // longer than a call may be silent: the polls are answered
		_, leave := conn.registerCall(tools.Call{}, "other", time.NewTimer(time.Hour)) // the newest call, which the question is not for
		defer leave()
		l.say(t, `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1,"message":"still here"}}`)
		l.say(t, `{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}}`)
		time.Sleep(10 * time.Second)
		l.say(t, `{"jsonrpc":"2.0","id":3,"result":{"content":[{"type":"text","text":"thank you"}]}}`)
		if got := <-ended; !strings.Contains(got, "thank you") {
			t.Error(got)
		}
		if got := strings.Join(said, ""); got != "waits for you\nstill here\n" {
			t.Errorf("the user saw %q", got)
		}
		if server.count("tasks/result ") != 1 || server.count(`{"action":"decline"}`) != 1 {
			t.Errorf("the server heard %q", server.heard)
		}
	})
}

// An abandoned task is cancelled at the server.
func TestTaskIsCancelled(t *testing.T) {
	for _, status := range []string{"working", "input_required"} {
		synctest.Test(t, func(t *testing.T) {
			conn, l := newTestConnection(t)
			conn.capabilities = withTasks(t)
			server := &taskServer{answers: map[string][]string{
				"tools/call":   {ok(`{"task":{"taskId":"t1","status":"` + status + `"}}`)},
				"tasks/get":    {ok(`{"taskId":"t1","status":"` + status + `"}`)},
				"tasks/cancel": {ok(`{"taskId":"t1","status":"cancelled"}`)},
			}}
			go server.serve(t, l, conn.session)
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := conn.call(ctx, &Tool{name: "t", spec: tools.Spec{Name: "t"}, tasks: "required"}, tools.Call{}, nil)
				ended <- err
			}()
			time.Sleep(3 * time.Second)
			cancel()
			if err := <-ended; err == nil {
				t.Error("a cancelled call returned no error")
			}
			synctest.Wait()
			if server.count(`tasks/cancel {"taskId":"t1"}`) != 1 {
				t.Errorf("the server heard %q", server.heard)
			}
		})
	}
}

// Tools for which tasks are optional, and tools of servers without tasks, are called without a
// task.
func TestPlainCallsStay(t *testing.T) {
	conn, l := newTestConnection(t)
	server := &taskServer{answers: map[string][]string{"tools/call": {ok(`{"content":[]}`)}}}
	go server.serve(t, l, conn.session)
	for support, capable := range map[string]bool{"optional": true, "forbidden": true, "": true, "required": false} {
		conn.capabilities = wire.ServerCapabilities{}
		if capable {
			conn.capabilities = withTasks(t)
		}
		if _, err := conn.call(t.Context(), &Tool{name: "t", spec: tools.Spec{Name: "t"}, tasks: support}, tools.Call{}, nil); err != nil {
			t.Error(err)
		}
	}
	if server.count(`"task"`) > 0 {
		t.Errorf("the server heard %q", server.heard)
	}
}

package a2a_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/e2a/a2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
)

func TestMain(m *testing.M) { daemontest.Main(m) }

// rig is an A2A server over real HTTP on a real daemon, with a scripted model.
type rig struct {
	*daemontest.World
	t      testing.TB
	server *httptest.Server
	url    string // of the server
	token  string
	next   int
	stop   func() // ends the server before the test does
}

func newRig(t testing.TB, model, token string) *rig {
	t.Helper()
	return startRig(t, daemontest.New(t, model, nil), token, nil)
}

// startRig starts a server in a world. change may be nil.
func startRig(t testing.TB, world *daemontest.World, token string, change func(*a2a.Options)) *rig {
	t.Helper()
	r := &rig{World: world, t: t, token: token}
	host := r.Daemon()
	turns := turn.New(turn.Options{Host: host, Workspace: r.Root})
	server := httptest.NewUnstartedServer(nil)
	o := a2a.Options{Turns: turns, Version: "1.2.3", Secured: token != "", Notifier: host}
	if change != nil {
		change(&o)
	}
	s := a2a.New(o)
	server.Config.Handler = a2a.Guard(httpguard.Options{Address: server.Listener.Addr().String(), Token: token}, s.Handler())
	server.Start()
	r.stop = sync.OnceFunc(func() {
		http.DefaultClient.CloseIdleConnections()
		s.Close()
		server.Close()
		turns.Close()
		host.Close()
	})
	t.Cleanup(r.stop)
	r.server, r.url = server, server.URL
	return r
}

// post sends a body to the endpoint. change may be nil.
func (r *rig) post(body string, change func(*http.Request)) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+a2a.Endpoint, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	if change != nil {
		change(req)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

type object = map[string]any

func (r *rig) body(method string, params any) string {
	r.t.Helper()
	r.next++
	b, err := json.Marshal(object{"jsonrpc": "2.0", "id": r.next, "method": method, "params": params})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

// answer reads the JSON of a response.
func (r *rig) answer(res *http.Response) object {
	r.t.Helper()
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	var out object
	if err := json.Unmarshal(data, &out); err != nil {
		r.t.Fatalf("%d %s: %v", res.StatusCode, data, err)
	}
	return out
}

// call returns the result of a method.
func (r *rig) call(method string, params any) object {
	r.t.Helper()
	out := r.answer(r.post(r.body(method, params), nil))
	result, ok := out["result"].(object)
	if !ok {
		r.t.Fatalf("%s: %v", method, out)
	}
	return result
}

// fails returns the error code of a method that fails.
func (r *rig) fails(method string, params any) int {
	r.t.Helper()
	return code(r.t, r.answer(r.post(r.body(method, params), nil)))
}

func code(t testing.TB, answer object) int {
	t.Helper()
	e, ok := answer["error"].(object)
	if !ok || e["message"] == "" {
		t.Fatalf("no error: %v", answer)
	}
	n, _ := e["code"].(float64)
	return int(n)
}

// stream is the answer of a streaming method.
type stream struct {
	t   testing.TB
	res *http.Response
	in  *bufio.Reader
}

func (r *rig) stream(method string, params any) *stream {
	r.t.Helper()
	res := r.post(r.body(method, params), nil)
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		r.t.Fatalf("%s: %s: %v", method, got, r.answer(res))
	}
	r.t.Cleanup(func() { _ = res.Body.Close() })
	return &stream{r.t, res, bufio.NewReader(res.Body)}
}

// event returns the result of the next event; nil at the end.
func (s *stream) event() object {
	s.t.Helper()
	for {
		line, err := s.in.ReadBytes('\n')
		if err == io.EOF { //nolint:errorlint // readers return it bare
			return nil
		} else if err != nil {
			s.t.Fatal(err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		var out struct{ Result object }
		if err := json.Unmarshal(data, &out); err != nil || len(out.Result) == 0 {
			s.t.Fatalf("%s: %v", data, err)
		}
		return out.Result
	}
}

// readRest reads to the end and returns a summary: states, with the text between them.
func (s *stream) readRest() string {
	s.t.Helper()
	var out []string
	text := ""
	for e := s.event(); e != nil; e = s.event() {
		if len(e) != 1 {
			s.t.Errorf("an event has not one member: %v", e)
		}
		if a, ok := e["artifactUpdate"].(object); ok {
			if a["append"] != true {
				text += "|"
			}
			text += textOf(a["artifact"])
			if a["lastChunk"] == true {
				text += "."
			}
			continue
		}
		for _, key := range []string{"task", "statusUpdate"} {
			if v, ok := e[key].(object); ok {
				if text != "" {
					out = append(out, text)
				}
				out, text = append(out, stateOf(v)), ""
			}
		}
	}
	return strings.Join(out, " ")
}

func stateOf(v object) string {
	status, _ := v["status"].(object)
	return strings.TrimPrefix(fmt.Sprint(status["state"]), "TASK_STATE_")
}

// textOf joins the text of a value's parts.
func textOf(v any) string {
	o, _ := v.(object)
	parts, _ := o["parts"].([]any)
	text := ""
	for _, p := range parts {
		s, _ := p.(object)["text"].(string)
		text += s
	}
	return text
}

// answerOf returns the answer of a task.
func answerOf(task object) string {
	list, _ := task["artifacts"].([]any)
	text := ""
	for _, a := range list {
		text += textOf(a)
	}
	return text
}

func userMessage(text string, more ...object) object {
	m := object{"messageId": "m", "role": "ROLE_USER", "parts": []any{object{"text": text}}}
	for _, o := range more {
		for k, v := range o {
			m[k] = v
		}
	}
	return object{"message": m}
}

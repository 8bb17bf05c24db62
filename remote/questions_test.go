package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/remote"
)

// Whether a folder is trusted is not asked on a device that may not grant that, and the device
// cannot answer it either: not with the id of the question, and not through the page, however the
// answer is spelled. A device that may is asked.
func TestTrustIsNotAnsweredByControl(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: Hello.}]\n", nil, nil)
	dir := filepath.Join(r.world.Root, ".eca")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	r.end()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"hooks": {"h": {"type": "preRequest", "actions": [{"type": "shell", "shell": "true"}]}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start(nil)
	control, _ := r.pair(remote.Control)
	phone, desk := r.events(control, ""), r.events(r.token, "")
	phone.await(0, "session:connected")
	desk.await(0, "session:connected")
	page := r.page(control)
	write := func(message string) {
		t.Helper()
		if err := page.Write(t.Context(), websocket.MessageText, []byte(message)); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"jsonrpc":"2.0","id":"p","method":"chat/prompt","params":{"chatId":"c","message":"hi"}}`)
	_, asked := desk.await(0, "chat:ask-question", "Do you trust it", `"grants":true`)
	var q struct{ RequestID string }
	if err := json.Unmarshal([]byte(asked.data), &q); err != nil {
		t.Fatal(err)
	}
	answer := func(body object) int {
		body["requestId"] = q.RequestID
		status, _, _ := r.send(r.request(control, "POST", "/api/v1/answer", body))
		return status
	}
	for _, body := range []object{{"answer": "Trust it"}, {"answer": "Not now"}, {"cancelled": true}} {
		if status := answer(body); status != 403 {
			t.Errorf("%v: %d", body, status)
		}
	}
	desk.close()
	status := 403
	for status == 403 { // until it is noticed
		status = answer(object{"answer": "Not now"})
	}
	if status != 404 {
		t.Errorf("while no page shows the question, an answer is refused with %d", status)
	}
	desk = r.events(r.token, "")
	desk.await(0, "chat:ask-question", q.RequestID)
	// The page is a client of a server of its own, whose requests have these ids. That server may
	// get the question later than the desk's, and knows no answer to it before.
	for refused, try := false, 0; !refused; try++ {
		for id := 1_000_000_001; id < 1_000_000_020; id++ {
			for _, answer := range []string{`{"answer":"Trust it"}`, `{"ANS-WER":"Trust\u0020it"}`} {
				write(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, id, answer))
			}
		}
		// The server handles messages in order, so the answers were handled before this one.
		last := fmt.Sprintf(`"id":"last %d"`, try)
		write(`{"jsonrpc":"2.0",` + last + `,"method":"chat/list","params":{}}`)
		for got := ""; !strings.Contains(got, last); {
			_, raw, err := page.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			got = string(raw)
			refused = refused || strings.Contains(got, "may not do that")
			if strings.Contains(got, "chat/askQuestion") {
				t.Errorf("the page was asked: %s", got)
			}
		}
	}
	phone.await(0, "chat:content-received", "Hello.")
	for _, e := range phone.all() {
		if e.name == "chat:ask-question" {
			t.Errorf("the phone was asked: %s", e.data)
		}
	}
	if _, err := os.Stat(filepath.Join(r.world.State(), "trust.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("trust was recorded: %v", err)
	}
	if status, _ := r.do("POST", "/answer", object{"requestId": q.RequestID, "answer": "Trust it"}); status != 204 {
		t.Errorf("a device that may: %d", status)
	}
}

// A question that is open while a page leaves waits for that page or another one. An editor that
// cannot show questions refuses it before or after, which does not end the question.
func TestQuestionOfLeavingPage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first    bool // the editor refuses before the page leaves
		overlaps bool // the page comes back before it leaves
	}{"left alone": {}, "after a refusal": {first: true}, "reloaded": {overlaps: true}, "reloaded after a refusal": {true, true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, asking, nil, object{"askQuestion": true})
			refuse := make(chan struct{})
			refusal := sync.OnceFunc(func() { close(refuse) })
			defer refusal()
			r.Answer("chat/askQuestion", func(context.Context, json.RawMessage) (any, error) {
				<-refuse
				return nil, jsonrpc.MethodNotFound("chat/askQuestion")
			})
			page := r.events(r.token, "")
			page.await(0, "session:connected")
			r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
			_, asked := page.await(0, "chat:ask-question", "Which?")
			var q struct{ RequestID string }
			if err := json.Unmarshal([]byte(asked.data), &q); err != nil {
				t.Fatal(err)
			}
			if c.first {
				refusal()
			}
			for range 3 {
				before := page
				if c.overlaps {
					page = r.events(r.token, asked.id)
					page.await(0, "chat:ask-question", "Which?", q.RequestID)
				}
				before.close()
				for streams := "\n1 stream"; strings.Contains(r.face.Status(), streams) != c.overlaps; {
					time.Sleep(time.Millisecond)
				}
				refusal()
				if !c.overlaps {
					page = r.events(r.token, asked.id)
					page.await(0, "chat:ask-question", "Which?", q.RequestID)
				}
			}
			if status, result := r.do("POST", "/answer", object{"requestId": q.RequestID, "answer": "B"}); status != 204 {
				t.Fatal(status, result)
			}
			page.await(0, "chat:content-received", "Done.")
			if requests := r.world.Requests(); !strings.Contains(requests[len(requests)-1], "The user answered: B") {
				t.Error(requests[len(requests)-1])
			}
		})
	}
}

// If the editor approves a call and a page rejects it at the same moment, one of them counts, all
// show the same, and the log names the device if it was the page. With ECA_REMOTE_SOAK, this
// happens 500 times.
func TestDecisionsOfEditorAndPage(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	times := 20
	if os.Getenv("ECA_REMOTE_SOAK") != "" {
		times = 500
	}
	r := newRig(t, `turns: []
default: {steps: [{calls: [{id: call, tool: eca__write_file, arguments: {path: "${workspace}/a", content: x}}]}, {text: 'Done.'}]}
`, nil, nil)
	second, _ := r.pair(remote.Watch)
	pages := []*events{r.events(r.token, ""), r.events(second, "")}
	for _, page := range pages {
		page.await(0, "session:connected")
	}
	outcomes := map[int]string{204: "toolCallRejected", 409: "toolCallRunning"} // by what the page is answered
	seen := map[int]int{}
	wait := time.Duration(0) // until the editor decides, so that neither is always the first one
	for i := range times {
		id := fmt.Sprint("chat-", i)
		mark := r.Mark()
		r.Call("chat/prompt", object{"chatId": id, "message": "go"})
		_, asked := pages[0].await(0, "chat:content-received", id, "toolCallRun", `"manualApproval":true`)
		var p struct{ Content struct{ ID string } }
		if err := json.Unmarshal([]byte(asked.data), &p); err != nil {
			t.Fatal(err)
		}
		decided := make(chan int)
		go func() {
			status, _ := r.do("POST", "/chats/"+id+"/reject/"+p.Content.ID, nil)
			decided <- status
		}()
		time.Sleep(wait)
		r.Notify("chat/toolCallApprove", object{"chatId": id, "toolCallId": p.Content.ID})
		status := <-decided
		if seen[status]++; status == 204 {
			wait -= 100 * time.Microsecond
		} else {
			wait += 100 * time.Microsecond
		}
		r.Await(mark, "the end", fake.Finished())
		shown := [][]string{nil}
		for _, m := range r.Since(mark) {
			shown[0] = append(shown[0], string(m.Params))
		}
		for _, page := range pages {
			page.await(0, "chat:content-received", id, `"state":"finished"`)
			var list []string
			for _, e := range page.all() {
				list = append(list, e.data)
			}
			shown = append(shown, list)
		}
		for face, list := range shown {
			for _, outcome := range outcomes {
				shows := slices.ContainsFunc(list, func(data string) bool {
					return strings.Contains(data, `"`+id+`"`) && strings.Contains(data, outcome)
				})
				if shows != (outcome == outcomes[status]) {
					t.Errorf("%s: the page was answered %d; %s in face %d: %v", id, status, outcome, face, shows)
				}
			}
		}
	}
	if said := strings.Count(r.log.String(), `a decision" device="test trust"`); said != seen[204] || seen[204]+seen[409] != times {
		t.Errorf("the log names the page %d times; it was answered %v", said, seen)
	}
	t.Logf("the page was answered %v", seen)
}

// page connects like our page, and waits until it follows.
func (r *rig) page(token string) *websocket.Conn {
	r.t.Helper()
	conn, _, err := websocket.Dial(context.Background(), fmt.Sprintf("ws://127.0.0.1:%d/socket", r.port), &websocket.DialOptions{ //nolint:bodyclose // the library closes it
		Subprotocols: []string{"eca", "session." + token}, HTTPClient: r.client(),
	})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = conn.CloseNow() })
	if err := conn.Write(context.Background(), websocket.MessageText, []byte(`{"jsonrpc":"2.0","id":"a","method":"host/attach","params":{}}`)); err != nil {
		r.t.Fatal(err)
	}
	for got := ""; !strings.Contains(got, `"id":"a"`); {
		_, raw, err := conn.Read(context.Background())
		if err != nil {
			r.t.Fatal(err)
		}
		got = string(raw)
	}
	return conn
}

// An answer that allows something from now on needs the right to trust; the others remain.
func TestAnswersThatGrant(t *testing.T) {
	t.Parallel()
	r := newRig(t, asking, nil, nil)
	f := remote.New(remote.Options{StateDir: r.world.State(), Config: r.daemon.Config})
	control, _ := r.pair(remote.Control)
	watcher, _ := r.pair(remote.Watch)
	const params = `{"chatId":"c","options":[{"label":"Once"},{"label":"Always","grants":true},{"label":"Never"}]}`
	shown, ok := f.Question(control, []byte(params))
	if !ok || strings.Contains(string(shown), "Always") || !strings.Contains(string(shown), "Never") {
		t.Errorf("%v %s", ok, shown)
	}
	if shown, ok := f.Question(r.token, []byte(params)); !ok || string(shown) != params {
		t.Errorf("with all rights: %v %s", ok, shown)
	}
	for _, c := range []struct {
		token, answer string
		want          bool
	}{
		{control, `{"answer":"Once"}`, true},
		{control, `{"answer":"Always"}`, false},
		{control, `{"answer":"Once","an_swer":"\u0041lways"}`, false},
		{control, `{"answer":"Always`, false},
		{control, ``, true},
		{r.token, `{"answer":"Always"}`, true},
		{watcher, `{"answer":"Once"}`, false},
		{"unknown", `{"answer":"Once"}`, false},
	} {
		if got := f.MayAnswer(c.token, []byte(params), []byte(c.answer)); got != c.want {
			t.Errorf("%s: %v", c.answer, got)
		}
	}
}

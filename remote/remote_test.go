package remote_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/internal/testkit/daemontest"
	"github.com/seed-dec29ce4/eca/remote"
)

// One prompt in the page is shown in the page and in the editor, is in the list and in the loaded
// chat; one in the editor is shown in the page; a deletion is shown in both.
func TestPageAndEditorShowTheSameChat(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: Hello page.}]\n  - steps: [{text: Hello editor.}]\n", nil, nil)
	page := r.events(r.token, "")
	if _, first := page.await(0, "session:connected", `"protocolVersion":"1.0"`, `"mock/m"`, `"rights":"trust"`); first != page.all()[0] {
		t.Errorf("the first event is %v", page.all()[0])
	}
	status, result := r.do("POST", "/chats/p-1/prompt", object{"message": "hi"})
	if status != 200 || !strings.Contains(result, `"chatId":"p-1"`) {
		t.Fatal(status, result)
	}
	opened, _ := page.await(0, "chat:opened", `"p-1"`, `"title":"New chat"`)
	said, _ := page.await(opened, "chat:content-received", `"role":"user"`, "hi")
	page.await(said, "chat:content-received", "Hello page.")
	page.await(said, "chat:status-changed", `"idle"`)
	r.Await(0, "the new chat", fake.Contains("chat/opened", "p-1"))
	r.Await(0, "the answer", fake.Content("text", "Hello page."))
	_, loaded := r.do("GET", "/chats/p-1", nil)
	var c struct {
		Status   string
		Messages []struct {
			Role      string
			ContentID string
			Content   []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(loaded), &c); err != nil || len(c.Messages) != 2 || c.Messages[0].ContentID == "" || c.Messages[1].Content[0].Text != "Hello page." || c.Status != "idle" {
		t.Errorf("%v: %s", err, loaded)
	}
	from := len(page.all())
	r.Call("chat/prompt", object{"chatId": "p-1", "message": "me too"})
	page.await(from, "chat:content-received", "Hello editor.")
	if _, list := r.do("GET", "/chats", nil); !strings.Contains(list, `"id":"p-1"`) {
		t.Error(list)
	}
	if status, _ := r.do("POST", "/chats/p-1/update", object{"title": "Named", "trust": true}); status != 204 {
		t.Error(status)
	}
	page.await(from, "chat:content-received", `"metadata"`, "Named")
	r.Await(0, "the new setting", fake.Contains("config/updated", `"chatId":"p-1"`, `"selectTrust":true`))
	if status, _ := r.do("DELETE", "/chats/p-1", nil); status != 204 {
		t.Error(status)
	}
	page.await(from, "chat:deleted", "p-1")
	r.Await(0, "the deletion", fake.Contains("chat/deleted", "p-1"))
}

// A device's choice of agent, model and variant is in the chat when it is answered, and shown to all.
func TestSelections(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns:\n  - steps: [{text: Hello.}]\n", nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "hi"}); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:content-received", `"state":"finished"`)
	session, ok := r.daemon.Engine().Lookup("c")
	if !ok {
		t.Fatal("the engine does not know the chat")
	}
	for i := range 50 {
		agent := []string{"plan", "code"}[i%2]
		if status, result := r.do("POST", "/chats/c/agent", object{"agent": agent}); status != 204 || session.Meta().Agent != agent {
			t.Fatalf("%d: %d %s: the agent is %s", i, status, result, session.Meta().Agent)
		}
	}
	from := len(page.all())
	mark := r.Mark()
	if status, result := r.do("POST", "/chats/c/model", object{"model": "mock/m", "variant": "high"}); status != 204 || session.Meta().Model != "mock/m" || session.Meta().Variant != "high" {
		t.Errorf("%d %s: %+v", status, result, session.Meta())
	}
	page.await(from, "config:updated", `"chatId":"c"`, `"selectVariant":"high"`)
	r.Await(mark, "the choice", fake.Contains("config/updated", `"chatId":"c"`, `"selectVariant":"high"`))
	if status, result := r.do("POST", "/chats/c/agent", object{"agent": "plan"}); status != 204 {
		t.Error(status, result)
	}
	page.await(from, "config:updated", `"chatId":"c"`, `"selectAgent":"plan"`)
	r.Await(mark, "the agent", fake.Contains("config/updated", `"chatId":"c"`, `"selectAgent":"plan"`))
}

// pulses is a model that answers with n pieces of text, one each pause.
func pulses(n int, pause string) string {
	return fmt.Sprintf("turns:\n  - steps: [{text: '0123456789 ', repeat: %d, delay: %s}]\n", n, pause)
}

func pulseText(n int) string { return strings.Repeat("0123456789 ", n) }

// eventsAfter returns the events of the chat c after a position.
func eventsAfter(t *testing.T, list []event, position string) (out []event) {
	t.Helper()
	parse := func(id string) (seq, offset int) {
		if _, err := fmt.Sscanf(id, "c:%d.%d", &seq, &offset); err != nil && id != "" {
			t.Fatalf("%q: %v", id, err)
		}
		return seq, offset
	}
	from, _ := parse(position)
	for _, e := range list {
		if seq, offset := parse(e.id); seq > from || seq == from && offset > 0 {
			out = append(out, e)
		}
	}
	return out
}

// A client that comes back with the id of its last event gets exactly what it missed, wherever it
// was cut off. Positions that a chat does not have are refused.
func TestResume(t *testing.T) {
	t.Parallel()
	const n = 400
	r := newRig(t, pulses(n, "5ms"), nil, nil)
	first := r.events(r.token, "")
	first.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	_, said := first.await(0, "chat:content-received", `"role":"user"`)
	var whole []event
	last, cuts := said.id, 0
	for done := false; !done; cuts++ {
		page := r.events(r.token, last)
		page.await(0, "session:connected", `"resumed":true`, `"resumedChats":["c"]`)
		want := 10 * (cuts % 7)
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			list := page.all()
			done = slices.ContainsFunc(list, func(e event) bool { return strings.Contains(e.data, `"state":"finished"`) })
			if done || len(text(list)) > want {
				break
			}
		}
		page.close()
		list := page.all()
		whole = append(whole, list...)
		last = list[len(list)-1].id
	}
	if got := text(whole); got != pulseText(n) {
		t.Errorf("after %d cuts: %d bytes of %d", cuts, len(got), n*len("0123456789 "))
	}
	t.Logf("%d cuts", cuts)
	created := last[strings.LastIndex(last, "."):]
	for forged, valid := range map[string]bool{
		"c:999999.0" + created: false, "c:5.0" + created + ",c": true, "nobody:1.0" + created: false, "::::,%%%": false,
		strings.Repeat("c:1.0"+created+",", 1000): true, "c:5.0": false, "c:5.0.": false, "c:5.0.zz": false, "c:5.0" + created + ".1": false,
	} {
		page := r.events(r.token, forged)
		_, e := page.await(0, "session:connected")
		if strings.Contains(e.data, `"resumed":true`) != valid {
			t.Errorf("%.30s: %.300s", forged, e.data)
		}
		page.close()
	}
}

// The id of an event of a chat that was deleted is not one of a later chat with the same name,
// whether the stream saw the deletion or not.
func TestResumeInAnotherChatOfTheSameName(t *testing.T) {
	t.Parallel()
	r := newRig(t, "turns: []\ndefault: {steps: [{text: 'The answer.'}]}\n", nil, nil)
	early, late := r.events(r.token, ""), r.events(r.token, "")
	early.await(0, "session:connected")
	late.await(0, "session:connected")
	prompt := func() {
		t.Helper()
		mark := r.Mark()
		r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
		r.Await(mark, "the end", fake.Finished())
	}
	prompt()
	_, before := early.await(0, "chat:content-received", "finished")
	early.close()
	r.Call("chat/delete", object{"chatId": "c"})
	prompt()
	prompt() // so that the new chat has the position
	deleted, _ := late.await(0, "chat:deleted", `"c"`)
	_, after := late.await(deleted, "chat:content-received", "finished")
	if old, _, _ := strings.Cut(before.id, ","); strings.Contains(after.id, old[strings.LastIndex(old, "."):]) {
		t.Errorf("%s and %s", before.id, after.id)
	}
	for id, valid := range map[string]bool{before.id: false, after.id: true} {
		page := r.events(r.token, id)
		_, e := page.await(0, "session:connected")
		if strings.Contains(e.data, `"resumed":true`) != valid {
			t.Errorf("%s: %.300s", id, e.data)
		}
		page.close()
	}
}

// The loaded messages and the events after them together have each word of the chat once, because
// the load ends where the stream continues.
func TestLoadDuringStream(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	const n = 3000
	r := newRig(t, pulses(n, "2ms"), nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	if status, result := r.do("POST", "/chats/c/prompt", object{"message": "go"}); status != 200 {
		t.Fatal(status, result)
	}
	page.await(0, "chat:content-received", "0123")
	type loaded struct {
		text     string
		position string
	}
	var loads []loaded
	for range 6 {
		_, result := r.do("GET", "/chats/c", nil)
		var c struct {
			Position string
			Messages []struct {
				Role    string
				Content json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(result), &c); err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, m := range c.Messages {
			var parts []struct{ Text string }
			if m.Role == "assistant" && json.Unmarshal(m.Content, &parts) == nil {
				b.WriteString(parts[0].Text)
			}
		}
		loads = append(loads, loaded{b.String(), c.Position})
	}
	// A page that comes later loads first and is then shown the rest.
	other, _ := r.pair(remote.Watch)
	late := r.events(other, "")
	late.await(0, "session:connected")
	_, result, _ := r.send(r.request(other, "GET", "/api/v1/chats/c", nil))
	page.await(0, "chat:content-received", `"state":"finished"`)
	late.await(0, "chat:status-changed", `"idle"`) // also if it loads after the end
	for i, l := range loads {
		if got := l.text + text(eventsAfter(t, page.all(), l.position)); got != pulseText(n) {
			t.Errorf("load %d: %d bytes and %d, not %d", i, len(l.text), len(got)-len(l.text), len(pulseText(n)))
		}
	}
	var c struct {
		Messages []struct {
			Role    string
			Content []struct{ Text string }
		}
	}
	if err := json.Unmarshal([]byte(result), &c); err != nil {
		t.Fatal(err)
	}
	if got := c.Messages[len(c.Messages)-1].Content[0].Text + text(late.all()); got != pulseText(n) {
		t.Errorf("a late page has %d bytes, not %d", len(got), len(pulseText(n)))
	}
}

const asking = `turns:
  - steps:
      - calls: [{id: call_1, tool: eca__ask_user, arguments: {question: Which?, options: [{label: A}, {label: B}]}}]
      - {text: 'Done.'}
`

// A question is shown in the editor and in all pages, also in one that connects later, and not in
// that of a device that may only watch. The first answer counts, and the others are taken back.
func TestQuestionInAll(t *testing.T) {
	t.Parallel()
	r := newRig(t, asking, nil, object{"askQuestion": true})
	cancelled := make(chan struct{})
	r.Answer("chat/askQuestion", func(ctx context.Context, _ json.RawMessage) (any, error) {
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	watcher, _ := r.pair(remote.Watch)
	second, _ := r.pair(remote.Control)
	one, spectator := r.events(r.token, ""), r.events(watcher, "")
	one.await(0, "session:connected")
	r.Call("chat/prompt", object{"chatId": "c", "message": "go"})
	_, q := one.await(0, "chat:ask-question", "Which?")
	two := r.events(second, "")
	two.await(0, "chat:ask-question", "Which?")
	var question struct{ RequestID string }
	if err := json.Unmarshal([]byte(q.data), &question); err != nil {
		t.Fatal(err)
	}
	answer := func(token, id string, cancelled bool) int {
		status, _, _ := r.send(r.request(token, "POST", "/api/v1/answer", object{"requestId": id, "answer": "B", "cancelled": cancelled}))
		return status
	}
	if got := answer(watcher, question.RequestID, false); got != 403 {
		t.Errorf("a watcher's answer: %d", got)
	}
	if got := answer(second, "other", false); got != 404 {
		t.Errorf("an unknown question: %d", got)
	}
	statuses := make(chan int, 2)
	for _, token := range []string{r.token, second} {
		go func() { statuses <- answer(token, question.RequestID, false) }()
	}
	if got := []int{<-statuses, <-statuses}; got[0]+got[1] != 204+409 {
		t.Errorf("two answers: %v", got)
	}
	one.await(0, "chat:content-received", "Done.")
	<-cancelled
	if got := answer(second, question.RequestID, true); got != 204 {
		t.Errorf("closing a settled question: %d", got)
	}
	closed := 0
	for _, page := range []*events{one, two} {
		for _, e := range page.all() {
			if e.name == "chat:ask-question" && strings.Contains(e.data, `"cancelled":true`) {
				closed++
			}
		}
	}
	if closed != 1 {
		t.Errorf("%d pages received the end of the question, want 1", closed)
	}
	for _, e := range spectator.all() {
		if e.name == "chat:ask-question" {
			t.Error("the watcher was asked:", e.data)
		}
	}
	if requests := r.world.Requests(); !strings.Contains(requests[len(requests)-1], `B`) {
		t.Error(requests[len(requests)-1])
	}
}

// The first decision about a call counts, wherever it comes from; the others are refused. After a
// load, a waiting call is shown again.
func TestDecisionOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, `turns:
  - steps:
      - calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: x}}]
      - {text: 'Done.'}
`, nil, nil)
	page := r.events(r.token, "")
	page.await(0, "session:connected")
	r.do("POST", "/chats/c/prompt", object{"message": "go"})
	page.await(0, "chat:content-received", "toolCallRun", `"manualApproval":true`)
	from := len(page.all())
	if _, loaded := r.do("GET", "/chats/c", nil); !strings.Contains(loaded, `"pendingToolCalls":[{`) || !strings.Contains(loaded, `"role":"tool_call"`) {
		t.Error(loaded)
	}
	page.await(from, "chat:content-received", "toolCallRun", `"manualApproval":true`)
	if _, list := r.do("GET", "/chats", nil); !strings.Contains(list, `"pendingApprovalCount":1`) {
		t.Error(list)
	}
	watcher, _ := r.pair(remote.Watch)
	control, _ := r.pair(remote.Control)
	for token, body := range map[string]string{watcher: "{}", control: `{"save":"session"}`} {
		if status, _, _ := r.send(r.request(token, "POST", "/api/v1/chats/c/approve/call_1", body)); status != 403 {
			t.Errorf("%s: %d", body, status)
		}
	}
	if status, _ := r.do("POST", "/chats/c/approve/other", nil); status != 404 {
		t.Errorf("an unknown call: %d", status)
	}
	statuses := make(chan int, 20)
	for i := range cap(statuses) {
		go func() {
			status, _ := r.do("POST", fmt.Sprintf("/chats/c/%s/call_1", []string{"approve", "reject"}[i%2]), nil)
			statuses <- status
		}()
	}
	first := 0
	for range cap(statuses) {
		switch status := <-statuses; status {
		case 204:
			first++
		case 409:
		default:
			t.Errorf("a decision: %d", status)
		}
	}
	if first != 1 {
		t.Errorf("%d decisions counted", first)
	}
	if said := r.log.String(); strings.Count(said, "a decision") != 1 || !strings.Contains(said, `device="test trust" chat=c call=call_1`) {
		t.Errorf("the log does not name the device: %s", said)
	}
}

// remote in the file of a workspace that is not trusted has no effect.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	w := daemontest.New(t, "turns: []\n", nil)
	port := testkit.FreePort(t)
	if err := os.Mkdir(filepath.Join(w.Root, ".eca"), 0o755); err != nil {
		t.Fatal(err)
	}
	w.Write(".eca/config.json", fmt.Sprintf(`{"remote": {"enabled": true, "bindHost": "0.0.0.0", "port": %d, "password": "known-to-others"}, "welcomeMessage": "read"}`, port))
	r := &rig{t: t, world: w, port: port, devices: remote.OpenDevices(w.State(), time.Now)}
	r.open(nil)
	defer r.end()
	r.Call("chat/prompt", object{"chatId": "c", "message": "/remote"})
	r.Await(0, "that it does not run", fake.Content("text", "does not run"))
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
		_ = conn.Close()
		t.Error("the remote server listens although the workspace is not trusted")
	}
}

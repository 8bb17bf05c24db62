package server_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// listChats returns the answer of chat/list by id, and the ids in order.
func listChats(t *testing.T, r *rig, params map[string]any) (chats map[string]map[string]any, order []string) {
	t.Helper()
	var res struct{ Chats []map[string]any }
	if err := json.Unmarshal(r.Call("chat/list", params), &res); err != nil || res.Chats == nil {
		t.Fatalf("chat/list: %v", err)
	}
	chats = map[string]map[string]any{}
	for _, c := range res.Chats {
		chats[c["id"].(string)] = c
		order = append(order, c["id"].(string))
	}
	return chats, order
}

// Covers: chat/list
func TestList(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: hi}\nturns: []\n"})
	if _, order := listChats(t, r, nil); len(order) > 0 {
		t.Errorf("chats in a new store: %v", order)
	}
	for i, id := range []string{"a", "b", "c", "a"} {
		r.Call("chat/prompt", map[string]any{"chatId": id, "message": "x"})
		r.Await(0, "the end", fake.Times(i+1, "chat/contentReceived", `"finished"`))
	}
	chats, order := listChats(t, r, map[string]any{})
	if strings.Join(order, "") != "acb" {
		t.Errorf("by update: %v", order)
	}
	a := chats["a"]
	if a["messageCount"] != 4.0 || a["model"] != "mock/m" || a["status"] != "idle" || a["createdAt"].(float64) > a["updatedAt"].(float64) || a["createdAt"].(float64) < 1e12 {
		t.Errorf("a: %v", a)
	}
	if _, ok := a["title"]; ok {
		t.Errorf("chat a has a title, although none was set: %v", a)
	}
	if _, order := listChats(t, r, map[string]any{"sortBy": "createdAt"}); strings.Join(order, "") != "cba" {
		t.Errorf("by creation: %v", order)
	}
	if _, order := listChats(t, r, map[string]any{"limit": "2", "sortBy": "updatedAt"}); strings.Join(order, "") != "ac" {
		t.Errorf("two: %v", order)
	}
	// Another workspace has its own chats.
	other := newRig(t, options{state: r.state})
	if _, order := listChats(t, other, nil); len(order) > 0 {
		t.Errorf("chats of another workspace: %v", order)
	}
	same := newRig(t, options{state: r.state, root: r.root})
	if _, order := listChats(t, same, nil); len(order) != 3 {
		t.Errorf("after a restart: %v", order)
	}
}

// Edits of unknown chats answer {} and have no effect (eca-protocol.md 12).
func TestEditsOfUnknownChats(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	for _, method := range []string{"chat/clear", "chat/rollback", "chat/addFlag", "chat/removeFlag", "chat/fork", "chat/update"} {
		for _, params := range []map[string]any{
			{"chatId": "nope", "contentId": "x", "messages": true, "title": "T", "trust": true, "text": "f"}, {"chatId": "nope"}, {},
		} {
			if got := string(r.Call(method, params)); got != "{}" {
				t.Errorf("%s %v: %s", method, params, got)
			}
		}
	}
	for _, method := range []string{"chat/promptSteer", "chat/promptSteerRemove", "chat/promptStop"} {
		r.Notify(method, map[string]any{"chatId": "nope", "message": "x"})
	}
	if _, order := listChats(t, r, nil); len(order) > 0 || len(r.Since(mark)) > 0 {
		t.Errorf("edits of an unknown chat created chats %v or sent %v", order, r.Since(mark))
	}
}

// Covers: chat/cleared
func TestRollback(t *testing.T) {
	t.Parallel()
	r, chat, ids := newRigWithTurns(t, 3)
	before := lastingView(t, chat, r.Since(0))
	mark := r.Mark()
	if got := string(r.Call("chat/rollback", map[string]any{"chatId": chat, "contentId": ids[1]})); got != "{}" {
		t.Errorf("chat/rollback: %s", got)
	}
	heard := r.Since(mark)
	if len(heard) == 0 || heard[0].Method != "chat/cleared" {
		t.Fatalf("heard %v", heard)
	}
	got := lastingView(t, chat, heard)
	if want := before[:len(before)/3]; strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("left:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	// Removed messages are not sent to the model again.
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": "another way"})
	r.Await(mark, "the end", fake.Finished())
	r.mu.Lock()
	last := string(r.requests[len(r.requests)-1].body)
	r.mu.Unlock()
	if !strings.Contains(last, "prompt 1") || strings.Contains(last, "prompt 2") || strings.Contains(last, "prompt 3") || !strings.Contains(last, "another way") {
		t.Errorf("the model got %s", last)
	}
	chats, _ := listChats(t, r, nil)
	if n := chats[chat]["messageCount"]; n != 12.0 {
		t.Errorf("%v messages", n)
	}
	mark = r.Mark()
	for _, id := range []any{"unknown", "", nil} {
		r.Call("chat/rollback", map[string]any{"chatId": chat, "contentId": id})
		r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": id, "text": "x"})
		if heard := r.Since(mark); len(heard) > 0 {
			t.Errorf("edits at the unknown message %v sent %v", id, heard)
		}
	}
}

const changes = `
cassette: 1
turns:
  - user: one
    steps:
      - calls:
          - {id: c1, tool: eca__write_file, arguments: {path: "${workspace}/new.txt", content: "new\n"}}
          - {id: c2, tool: eca__edit_file, arguments: {path: "${workspace}/a.txt", original_content: "old", new_content: "changed"}}
          - {id: c3, tool: eca__move_file, arguments: {source: "${workspace}/b.txt", destination: "${workspace}/sub/c.txt"}}
      - {text: done}
  - user: two
    steps:
      - calls: [{id: c4, tool: eca__edit_file, arguments: {path: "${workspace}/a.txt", original_content: "changed", new_content: "changed twice"}}]
      - {text: done}
`

// A rollback restores files, even after a restart. It skips files that another program has changed
// since, and notifies the user.
//
// Covers: chat/rollback
func TestRollbackFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: changes})
	file := func(name string) string {
		data, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return "(none)"
		}
		return string(data)
	}
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(r.root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "old\n")
	write("b.txt", "b\n")
	for i, text := range []string{"one", "two"} {
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text, "trust": true})
		r.Await(0, "the end", fake.Times(i+1, "chat/contentReceived", `"finished"`))
	}
	if file("a.txt") != "changed twice\n" || file("new.txt") != "new\n" || file("sub/c.txt") != "b\n" {
		t.Fatal("the tools did not work")
	}
	var second struct{ Content struct{ ContentID string } }
	for _, m := range r.Since(0) {
		if strings.Contains(string(m.Params), `"text":"two\n"`) {
			_ = json.Unmarshal(m.Params, &second)
		}
	}
	// Only the files, from the second message on.
	r.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": second.Content.ContentID, "include": []string{"tools"}})
	if file("a.txt") != "changed\n" || file("new.txt") != "new\n" {
		t.Errorf("a: %q, new: %q", file("a.txt"), file("new.txt"))
	}
	again := newRig(t, options{model: changes, state: r.state, root: r.root})
	write("new.txt", "by hand\n")
	mark := again.Mark()
	var first struct {
		Contents []struct{ Content struct{ ContentID string } }
	}
	if err := json.Unmarshal(again.Call("chat/history", map[string]any{"chatId": "c"}), &first); err != nil {
		t.Fatal(err)
	}
	again.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": first.Contents[0].Content.ContentID})
	if file("a.txt") != "old\n" || file("b.txt") != "b\n" || file("sub/c.txt") != "(none)" || file("new.txt") != "by hand\n" {
		t.Errorf("a %q, b %q, c %q, new %q", file("a.txt"), file("b.txt"), file("sub/c.txt"), file("new.txt"))
	}
	again.Await(mark, "the reason", fake.Content("text", "Not restored", "new.txt was changed since", `"system"`))
	if chats, _ := listChats(t, again, nil); chats["c"]["messageCount"] != 0.0 {
		t.Errorf("left: %v", chats["c"])
	}
}

// Covers: chat/addFlag, chat/removeFlag
func TestFlags(t *testing.T) {
	t.Parallel()
	r, chat, ids := newRigWithTurns(t, 2)
	mark := r.Mark()
	r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": ids[0], "text": "start"})
	r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": "call-2", "text": "after the tool"})
	heard := r.Since(mark)
	got := lastingView(t, chat, heard)
	if len(got) != 16 || !strings.Contains(got[1], `"flag"`) || !strings.Contains(got[1], "start") || !strings.Contains(got[14], "after the tool") || !strings.Contains(got[13], `"toolCalled"`) {
		t.Fatalf("the flags are not in their places:\n%s", strings.Join(got, "\n"))
	}
	var flag struct{ ContentID string }
	if err := json.Unmarshal([]byte(got[1]), &flag); err != nil {
		t.Fatal(err)
	}
	mark = r.Mark()
	r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": "unknown", "text": "nowhere"})
	r.Call("chat/removeFlag", map[string]any{"chatId": chat, "contentId": "unknown"})
	r.Call("chat/removeFlag", map[string]any{"chatId": chat, "contentId": ids[0]}) // no flag
	r.Call("chat/removeFlag", map[string]any{"chatId": chat, "contentId": flag.ContentID})
	if heard := r.Since(mark); len(heard) > 0 {
		t.Errorf("heard %v", heard)
	}
	mark = r.Mark()
	r.Call("chat/open", map[string]any{"chatId": chat})
	if got := lastingView(t, chat, r.Since(mark)); len(got) != 15 || strings.Contains(strings.Join(got, ""), "start") {
		t.Errorf("after the removal: %d contents", len(got))
	}
	// A rollback keeps the flags before its message, and removes those after it.
	r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": ids[0], "text": "kept"})
	mark = r.Mark()
	r.Call("chat/rollback", map[string]any{"chatId": chat, "contentId": ids[1]})
	if got := strings.Join(lastingView(t, chat, r.Since(mark)), "\n"); !strings.Contains(got, "kept") || strings.Contains(got, "after the tool") {
		t.Errorf("after the rollback:\n%s", got)
	}
	// The model never sees a flag.
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": "more"})
	r.Await(mark, "the end", fake.Finished())
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		if strings.Contains(string(q.body), "kept") {
			t.Errorf("the model saw a flag: %s", q.body)
		}
	}
}

// Covers: chat/fork, chat/opened
func TestFork(t *testing.T) {
	t.Parallel()
	r, chat, ids := newRigWithTurns(t, 2)
	r.Call("chat/update", map[string]any{"chatId": chat, "title": "Some title"})
	r.Call("chat/addFlag", map[string]any{"chatId": chat, "contentId": ids[0], "text": "flag"})
	before := lastingView(t, chat, r.Since(0))
	fork := func(contentID string) (id, title string, shown []string) {
		t.Helper()
		mark := r.Mark()
		if got := string(r.Call("chat/fork", map[string]any{"chatId": chat, "contentId": contentID})); got != "{}" {
			t.Errorf("chat/fork: %s", got)
		}
		heard := r.Since(mark)
		var opened struct{ ChatID, Title string }
		if len(heard) == 0 || heard[0].Method != "chat/opened" || json.Unmarshal(heard[0].Params, &opened) != nil {
			t.Fatalf("heard %v", heard)
		}
		if last := string(heard[len(heard)-1].Params); !strings.Contains(last, "Chat forked to: "+opened.Title) || !strings.Contains(last, `"chatId":"`+chat+`"`) {
			t.Errorf("the last is %s", last)
		}
		return opened.ChatID, opened.Title, lastingView(t, opened.ChatID, heard)
	}
	id, title, shown := fork(ids[1])
	// Up to and including the second message; the flag is after the first.
	if want := before[:9]; title != "Some title (2)" || strings.Join(shown, "\n") != strings.Join(want, "\n") {
		t.Errorf("fork %q shows\n%s\nwant\n%s", title, strings.Join(shown, "\n"), strings.Join(want, "\n"))
	}
	if _, title, shown := fork("call-2"); title != "Some title (3)" || len(shown) != 14 {
		t.Errorf("fork after a tool call: %q, %d contents", title, len(shown))
	}
	// Both chats continue independently.
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": id, "message": "in the fork"})
	r.Await(mark, "the end", fake.Finished())
	chats, order := listChats(t, r, nil)
	if len(order) != 3 || chats[id]["title"] != title || chats[chat]["messageCount"] != 13.0 {
		t.Errorf("chats: %v", chats)
	}
	mark = r.Mark()
	r.Call("chat/fork", map[string]any{"chatId": chat, "contentId": "unknown"})
	if heard := r.Since(mark); len(heard) > 0 {
		t.Errorf("a fork at an unknown message sent %v", heard)
	}
}

// Covers: chat/clear, chat/update
func TestClearAndUpdate(t *testing.T) {
	t.Parallel()
	r, chat, _ := newRigWithTurns(t, 1)
	mark := r.Mark()
	r.Call("chat/update", map[string]any{"chatId": chat, "title": "  A title\nof two lines that is much longer than what clients have room for "})
	r.Await(mark, "the title", fake.Content("metadata", `"title":"A title of two lines that is much longer"`))
	r.Call("chat/update", map[string]any{"chatId": chat, "trust": true})
	mark = r.Mark()
	r.Call("chat/clear", map[string]any{"chatId": chat, "messages": true})
	heard := r.Since(mark)
	if len(heard) != 1 || heard[0].String() != `chat/cleared {"chatId":"c-1","messages":true}` {
		t.Errorf("clear: %v", heard)
	}
	chats, _ := listChats(t, r, nil)
	if c := chats[chat]; c["messageCount"] != 0.0 || c["title"] != "A title of two lines that is much longer" {
		t.Errorf("cleared: %v", c)
	}
	var opened struct{ Selection map[string]any }
	if err := json.Unmarshal(r.Call("chat/open", map[string]any{"chatId": chat}), &opened); err != nil || opened.Selection["trust"] != true || opened.Selection["model"] != "mock/m" || opened.Selection["agent"] != "code" {
		t.Errorf("selection %v, %v", opened.Selection, err)
	}
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": "anew"})
	r.Await(mark, "the end", fake.Finished())
	r.mu.Lock()
	defer r.mu.Unlock()
	if last := string(r.requests[len(r.requests)-2].body); strings.Contains(last, "prompt 1") {
		t.Errorf("the model got %s", last)
	}
}

// A change of a chat is answered at once, even while the model pauses within its answer.
func TestUpdateWhileModelPauses(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	r := newRig(t, options{api: "openai-chat", wrap: func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"Half of it"}}]}`+"\n\n")
			_ = http.NewResponseController(w).Flush()
			select {
			case <-goOn:
			case <-req.Context().Done():
			}
			_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
		})
	}})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "the half", fake.Content("text", "Half of it"))
	r.Call("chat/update", map[string]any{"chatId": "c", "trust": true})
	close(goOn)
	r.Await(0, "the end", fake.Finished())
}

// A steer is sent to the model at the next boundary, and shown. If it was not sent by the end of
// the turn, it is dropped.
//
// Covers: chat/promptSteer, chat/promptSteerRemove
func TestSteer(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: `
cassette: 1
default:
  steps:
    - calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/a", content: "x"}}]
    - {text: "END"}
turns:
  - {user: left, steps: [{text: "END"}]}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "the question", fake.Content("toolCallRun"))
	steer := func(text string) { r.Notify("chat/promptSteer", map[string]any{"chatId": "c", "message": text}) }
	steer("dropped")
	r.Notify("chat/promptSteerRemove", map[string]any{"chatId": "c"})
	steer("left")
	steer(" then right ")
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	r.Await(0, "the end", fake.Finished())
	got := lastingView(t, "c", r.Since(0))
	if len(got) != 4 || !strings.Contains(got[2], `"text":"left\nthen right\n"`) || !strings.Contains(got[2], `"contentId":"`) {
		t.Errorf("shown: %s", strings.Join(got, "\n"))
	}
	r.mu.Lock()
	last := string(r.requests[1].body)
	r.mu.Unlock()
	if !strings.Contains(last, `left\nthen right`) || strings.Contains(last, "dropped") {
		t.Errorf("the model got %s", last)
	}
	steer("too late")
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "again", "trust": true})
	r.Await(mark, "the end", fake.Finished())
	if got := fmt.Sprint(r.Since(mark)); strings.Contains(got, "too late") {
		t.Errorf("a steer outlived its turn: %s", got)
	}
	checkReplay(t, r, "c", r.Since(0))
}

// A client may still wait for a turn, for example of a daemon that died, and can then only stop or steer
// it. If no turn runs, the client gets the status idle, unless it already has it.
func TestStopOfNothing(t *testing.T) {
	t.Parallel()
	first := newRig(t, options{model: "cassette: 1\ndefault: {steps: [{text: done}]}\nturns: []\n"})
	first.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	first.Await(0, "the end", fake.Finished())
	silent := func(r *rig, method string) {
		t.Helper()
		mark := r.Mark()
		r.Notify(method, map[string]any{"chatId": "c", "message": "on"})
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "more"})
		r.Await(mark, "the end", fake.Finished())
		heard := r.Since(mark)
		first := slices.IndexFunc(heard, func(m fake.Message) bool { return m.Method == "chat/statusChanged" })
		if !strings.Contains(string(heard[first].Params), `"running"`) {
			t.Errorf("%s sent the status %s again, although the client knows that the chat is idle", method, heard[first].Params)
		}
	}
	for _, method := range []string{"chat/promptStop", "chat/promptSteer"} {
		later := newRig(t, options{model: anyAnswer, state: first.state, root: first.root})
		later.Await(0, "the start", fake.Ready())
		mark := later.Mark()
		later.Notify(method, map[string]any{"chatId": "c", "message": "on"})
		later.Await(mark, "the status", fake.Contains("chat/statusChanged", `"c"`, `"idle"`))
		if heard := later.Since(mark); len(heard) != 1 {
			t.Errorf("%s: %v", method, heard)
		}
		silent(later, method)
	}
	silent(first, "chat/promptStop")
}

// Selections of model and agent (eca-protocol.md 4) are scoped to known chats, and otherwise to
// the session.
//
// Covers: chat/selectedAgentChanged, chat/selectedBehaviorChanged, chat/selectedModelChanged
func TestSelection(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: talk, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{
		"v": map[string]any{"variants": map[string]any{"high": map[string]any{"top_p": 1}, "low": map[string]any{"top_p": 0}}},
	}}}}})
	r.Await(0, "the start", fake.Ready())
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "x"})
	r.Await(0, "the end", fake.Finished())
	for _, c := range []struct {
		method string
		params map[string]any
		want   []string
	}{
		{"chat/selectedModelChanged", map[string]any{"chatId": "c", "model": "mock/v", "variant": "low"}, []string{`{"chatId":"c","chat":{"variants":["high","low"],"selectVariant":"low"}}`}},
		{"chat/selectedModelChanged", map[string]any{"chatId": "new", "model": "mock/v", "variant": nil}, []string{`{"chat":{"models":[`, `"variants":["high","low"],"selectModel":"mock/m"`, `"welcomeMessage":`}},
		{"chat/selectedModelChanged", map[string]any{"model": "mock/m"}, []string{`{"chat":{"models":[`, `"variants":[],"selectModel":"mock/m"`}},
		{"chat/selectedAgentChanged", map[string]any{"chatId": "c", "agent": "plan"}, []string{`"chatId":"c"`, `"selectModel":"mock/v"`, `"selectVariant":"low"`}},
		{"chat/selectedBehaviorChanged", map[string]any{"behavior": "plan"}, []string{`"selectAgent":"plan","selectBehavior":"plan"`, `"defaultAgent":"plan","defaultBehavior":"plan"`}},
		{"chat/selectedAgentChanged", map[string]any{"agent": "unknown"}, []string{`{"chat":{"models":[`, `"selectAgent":"code"`}},
	} {
		mark := r.Mark()
		r.Notify(c.method, c.params)
		r.Await(mark, fmt.Sprint(c.method, c.params), fake.Contains("config/updated", c.want...))
		if strings.Contains(c.method, "Model") {
			continue
		}
		r.Await(mark, "the tools", fake.Contains("tool/serverUpdated", `"name":"ECA"`, `"name":"write_file"`))
	}
	var opened struct{ Selection map[string]any }
	if err := json.Unmarshal(r.Call("chat/open", map[string]any{"chatId": "c"}), &opened); err != nil || fmt.Sprint(opened.Selection) != "map[agent:plan model:mock/v trust:false variant:low variants:[high low]]" {
		t.Errorf("selection %v, %v", opened.Selection, err)
	}
	if _, order := listChats(t, r, nil); len(order) != 1 {
		t.Errorf("choosing a model or an agent created a chat: %v", order)
	}
}

// Chats of the reference server are listed after the start, and can be opened.
func TestImportedChats(t *testing.T) {
	t.Parallel()
	root, state := tempDir(t), tempDir(t)
	sum := sha256.Sum256([]byte(root))
	folder := filepath.Join(state, "cache", "ws_"+base64.URLEncoding.EncodeToString(sum[:])[:8], "chats")
	if err := os.CopyFS(folder, os.DirFS("../chat/importer/testdata/two-tools")); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{root: root, state: state})
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "the news", fake.Contains("$/showMessage", "Imported 1 chat of this workspace from the reference server."))
	_, order := listChats(t, r, nil)
	if len(order) != 1 {
		t.Fatalf("chats: %v", order)
	}
	mark := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": order[0]})
	if got := lastingView(t, order[0], r.Since(mark)); len(got) < 4 {
		t.Errorf("the chat shows %v", got)
	}
}

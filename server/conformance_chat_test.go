package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/server/protocol"
)

// indexOf returns the position of the first message with all pieces, or -1.
func indexOf(heard []fake.Message, pieces ...string) int {
	return slices.IndexFunc(heard, func(m fake.Message) bool { return hasAll(m.String(), pieces) })
}

func count(heard []fake.Message, pieces ...string) (n int) {
	for _, m := range heard {
		if hasAll(m.String(), pieces) {
			n++
		}
	}
	return n
}

func conformChatIDs(t *testing.T) {
	w := newConformWire(t, hello, `{}`)
	answer := w.call(2, "chat/prompt", `{"message":"hi"}`)
	w.await(0, `"finished"`)
	id := chatInMessage.FindStringSubmatch(answer)
	first, _ := w.await(0, `"chat/contentReceived"`)
	if id == nil || len(w.messagesSince(0, "chat/opened")) > 0 || !strings.Contains(first, id[0]) {
		t.Errorf("without an id: %s, first %s", answer, first)
	}
	mark := w.mark()
	for i, message := range []string{"hi", "again"} {
		if got := w.call(3+i, "chat/prompt", `{"chatId":"mine","message":"`+message+`"}`); !strings.Contains(got, `"chatId":"mine"`) {
			t.Errorf("with an id: %s", got)
		}
		_, at := w.await(mark, message, `"user"`)
		w.await(at, `"finished"`)
	}
	opened := w.messagesSince(mark, "chat/opened")
	if about := w.messagesSince(mark, `"mine"`); len(opened) != 1 || about[0] != opened[0] || !strings.HasSuffix(opened[0], `"params":{"chatId":"mine"}}`) {
		t.Errorf("chat/opened is %q, and the first message about the chat is %s", opened, about[0])
	}
}

func conformEcho(t *testing.T) {
	r := newRig(t, options{model: hello})
	for i, c := range []struct{ said, echo string }{{"hi", "hi\n"}, {" \n two\nlines \t", "two\nlines\n"}, {"/nothing known", "/nothing known\n"}} {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": fmt.Sprint(i), "message": c.said})
		r.Await(mark, "the end", fake.Finished())
		var users []string
		for _, m := range r.Since(mark) {
			var p struct {
				Role    string
				Content struct{ Type, Text, ContentID string }
			}
			_ = json.Unmarshal(m.Params, &p)
			if p.Role == "user" {
				users = append(users, p.Content.Text)
				if p.Content.Type != "text" || !uuids.MatchString(p.Content.ContentID) {
					t.Errorf("the echo is %s", m)
				}
			}
		}
		if len(users) != 1 || users[0] != c.echo {
			t.Errorf("%q is echoed as %q", c.said, users)
		}
	}
}

const endings = `
cassette: 1
turns:
  - {user: success, steps: [{text: fine}]}
  - {user: error, steps: [{error: {status: 401, message: "bad key"}}]}
  - {user: cut, steps: [{text: "half", cut: true}]}
  - {user: stop, steps: [{text: "on and", hang: true}]}
  - {user: reject, steps: [{calls: [{id: call_r, tool: eca__write_file, arguments: {path: "${workspace}/r", content: "x"}}]}, {text: never}]}
  - {user: second, steps: [{text: fine}]}
  - {user: supersede, steps: [{calls: [{id: call_s, tool: eca__write_file, arguments: {path: "${workspace}/s", content: "x"}}]}, {text: never}]}
`

// turnsOf ends turns in every possible way, each in its own chat, and returns the messages of each
// until a later turn of another chat has ended.
func turnsOf(t *testing.T) map[string][]fake.Message {
	t.Helper()
	r := newRig(t, options{model: endings})
	out := map[string][]fake.Message{}
	for _, name := range []string{"success", "error", "cut", "stop", "reject", "supersede", "unknown model", "command"} {
		mark, id := r.Mark(), strings.ReplaceAll(name, " ", "-")
		params := map[string]any{"chatId": id, "message": name}
		switch name {
		case "unknown model":
			params["model"] = "nowhere/m"
		case "command":
			params["message"] = "/doctor"
		}
		r.Call("chat/prompt", params)
		switch name {
		case "stop":
			r.Await(mark, "text", fake.Content("text", "on"))
			r.Notify("chat/promptStop", params)
		case "reject":
			r.Await(mark, "the question", fake.Content("toolCallRun"))
			r.Notify("chat/toolCallReject", map[string]any{"chatId": id, "toolCallId": "call_r"})
		case "supersede":
			r.Await(mark, "the question", fake.Content("toolCallRun"))
			r.Call("chat/prompt", map[string]any{"chatId": id, "message": "second"})
		}
		r.Await(mark, "the end of "+name, fake.Contains("chat/contentReceived", `"chatId":"`+id+`"`, `"finished"`))
		r.Call("chat/prompt", map[string]any{"chatId": "other-" + id, "message": "success"})
		r.Await(mark, "another end", fake.Contains("chat/contentReceived", `"chatId":"other-`+id+`"`, `"finished"`))
		out[name] = slices.DeleteFunc(r.Since(mark), func(m fake.Message) bool { return !strings.Contains(m.String(), `"chatId":"`+id+`"`) })
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.requests {
		if strings.Contains(string(q.body), "/doctor") {
			t.Error("a command reached the model")
		}
	}
	return out
}

func conformFinished(t *testing.T) {
	for name, heard := range turnsOf(t) {
		if n := count(heard, `"state":"finished"`); n != 1 {
			t.Errorf("%s: %d ends in %v", name, n, heard)
		}
		if last := heard[len(heard)-1].String(); !strings.Contains(last, `"state":"finished","text":""`) {
			t.Errorf("%s: the last is %s", name, last)
		}
	}
}

func conformIdle(t *testing.T) {
	for name, heard := range turnsOf(t) {
		idle := indexOf(heard, "chat/statusChanged", `"idle"`)
		if end := indexOf(heard, `"state":"finished"`); idle < 0 || idle > end || count(heard, `"status":"idle"`) != 1 {
			t.Errorf("%s: idle at %d, finished at %d of %v", name, idle, end, heard)
		}
		if stopping := indexOf(heard, `"stopping"`); (stopping >= 0) != (name == "stop") || stopping > idle {
			t.Errorf("%s: stopping at %d of %v", name, stopping, heard)
		}
	}
}

// stages returns the stages of tool calls in JSON texts, in order.
func stages(texts []string) (out []string) {
	for _, s := range texts {
		for _, stage := range []string{"toolCallPrepare", "toolCallRunning", "toolCallRun", "toolCalled", "toolCallRejected"} {
			if strings.Contains(s, `"type":"`+stage+`"`) && (len(out) == 0 || out[len(out)-1] != stage) {
				out = append(out, stage)
			}
		}
	}
	return out
}

func conformPrepare(t *testing.T) {
	r, chat, _ := newRigWithTurns(t, 1)
	const want = "toolCallPrepare toolCallRun toolCallRunning toolCalled"
	said := func(heard []fake.Message) (out []string) {
		for _, m := range heard {
			out = append(out, string(m.Params))
		}
		return out
	}
	shown := map[string][]string{"live": said(r.Since(0))}
	mark := r.Mark()
	r.Call("chat/open", map[string]any{"chatId": chat})
	shown["open"] = said(r.Since(mark))
	mark = r.Mark()
	r.Call("chat/open", map[string]any{"chatId": chat, "limit": 2})
	shown["a window that begins in the call"] = said(r.Since(mark))
	var history struct{ Contents []json.RawMessage }
	if err := json.Unmarshal(r.Call("chat/history", map[string]any{"chatId": chat}), &history); err != nil {
		t.Fatal(err)
	}
	for _, c := range history.Contents {
		shown["history"] = append(shown["history"], string(c))
	}
	for name, texts := range shown {
		if got := strings.Join(stages(texts), " "); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func conformRepeated(t *testing.T) {
	root := tempDir(t)
	write(t, root, map[string]string{"a.txt": "old\n"})
	r := newRig(t, options{root: root, model: `
cassette: 1
default:
  steps:
    - calls: [{id: call_1, tool: eca__edit_file, arguments: {path: "${workspace}/a.txt", original_content: old, new_content: new}}]
    - {text: Done.}
turns: []
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(0, "the question", fake.Content("toolCallRun"))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "call_1"})
	r.Await(0, "the end", fake.Finished())
	seen := map[string]string{}
	for _, m := range r.Since(0) {
		var p struct {
			Content struct {
				Type, Summary string
				Details       json.RawMessage
			}
		}
		if _ = json.Unmarshal(m.Params, &p); strings.HasPrefix(p.Content.Type, "toolCall") && p.Content.Type != "toolCallPrepare" {
			seen[p.Content.Type] = p.Content.Summary + " " + string(p.Content.Details)
		}
	}
	run := seen["toolCallRun"]
	if len(seen) != 3 || !strings.Contains(run, `"diff":"@@`) || seen["toolCallRunning"] != run || seen["toolCalled"] != run {
		t.Errorf("seen %q", seen)
	}
}

// A client approves each call immediately, and also calls that are not announced yet, are decided, or
// belong to an unknown chat. Each call runs once.
func conformApprove(t *testing.T) {
	const calls = 30
	tape := "cassette: 1\nturns:\n  - steps:\n"
	for i := range calls {
		tape += fmt.Sprintf("      - calls: [{id: call_%d, tool: eca__write_file, arguments: {path: \"${workspace}/%d\", content: x}}]\n", i, i)
	}
	w := newConformWire(t, tape+"      - {text: END}\n", `{}`)
	approve := func(chat, call, save string) {
		w.send(`{"jsonrpc":"2.0","method":"chat/toolCallApprove","params":{"chatId":"` + chat + `","toolCallId":"` + call + `"` + save + `}}`)
	}
	w.send(`{"jsonrpc":"2.0","id":2,"method":"chat/prompt","params":{"chatId":"c","message":"go"}}`)
	at := 0
	for i := range calls {
		approve("c", fmt.Sprintf("call_%d", i+1), `,"save":"session"`) // not announced yet
		var body string
		body, at = w.await(at, `"toolCallRun"`)
		if !hasAll(body, []string{fmt.Sprintf(`"call_%d"`, i), `"manualApproval":true`}) {
			t.Fatalf("call %d: %s", i, body)
		}
		call := fmt.Sprintf("call_%d", i)
		approve("nobody", call, "")
		approve("c", call, "")
		approve("c", call, `,"save":"session"`) // decided already
		w.send(`{"jsonrpc":"2.0","method":"chat/toolCallReject","params":{"chatId":"c","toolCallId":"` + call + `"}}`)
	}
	w.await(at, `"finished"`, `"reason":"done"`)
	mark := w.mark()
	approve("c", "call_0", "")
	w.call(3, "chat/list", `{}`)
	if late := w.messagesSince(mark, `"method":"chat/`); len(late) > 0 || len(w.messagesSince(0, `"toolCalled"`, `"error":false`)) != calls {
		t.Errorf("after the end: %q", late)
	}
}

func conformStop(t *testing.T) {
	for _, c := range []struct{ name, step, until string }{
		{"waiting for the model", `{hang: true}`, `Waiting model`},
		{"streaming", `{text: "one two", hang: true}`, `"assistant"`},
		{"arguments", `{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "x"}}], hang: true}`, `toolCallPrepare`},
		{"waiting for approval", `{calls: [{id: call_1, tool: eca__write_file, arguments: {path: "${workspace}/x", content: x}}]}`, `Waiting for tool call approval`},
		{"a running tool", `{calls: [{id: call_1, tool: eca__shell_command, arguments: {command: "sleep 300"}}]}`, `Calling tool`},
		{"a question", `{calls: [{id: call_1, tool: eca__ask_user, arguments: {question: "Which?"}}]}`, `chat/askQuestion`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, options{
				model:  "cassette: 1\nturns:\n  - {user: go, steps: [" + c.step + ", {text: never}]}\n  - {user: again, steps: [{text: back}]}\n",
				config: map[string]any{"toolCall": map[string]any{"approval": map[string]any{"allow": map[string]any{"eca__shell_command": map[string]any{}}}}},
				init:   map[string]any{"capabilities": json.RawMessage(everything)},
			})
			r.Answer("chat/askQuestion", neverAnswer)
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
			r.Await(0, c.name, func(heard []fake.Message) fake.Verdict {
				if indexOf(heard, c.until) >= 0 {
					return fake.Met
				}
				return fake.Unmet
			})
			mark := r.Mark()
			r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
			r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
			r.Await(mark, "the end", fake.Finished())
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "again"})
			r.Await(mark, "the next turn", fake.Contains("chat/contentReceived", `"finished"`, `"done"`))
			heard := r.Since(mark)
			said, stopping, idle, end := indexOf(heard, `"text":"\nPrompt stopped\n"`), indexOf(heard, `"stopping"`), indexOf(heard, `"idle"`), indexOf(heard, `"finished"`)
			if said < 0 || said > stopping || stopping > idle || idle > end || count(heard, `"finished"`) != 2 {
				t.Errorf("text at %d, stopping %d, idle %d, finished %d of %v", said, stopping, idle, end, heard)
			}
			calls := indexOf(r.Since(0), `"toolCallPrepare"`) >= 0
			if rejected := indexOf(heard, `"toolCallRejected"`); calls != (rejected >= 0) || rejected > stopping {
				t.Errorf("rejected at %d of %v", rejected, heard)
			}
		})
	}
	t.Run("a subagent", func(t *testing.T) {
		r := newSubagentRig(t, `{text: "on and", hang: true}`)
		r.Await(0, "the child", fake.Contains("chat/contentReceived", `"parentChatId":"c"`, "on"))
		r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
		r.Await(0, "the end", fake.Contains("chat/contentReceived", `"chatId":"c"`, `"finished"`))
	})
}

// newSubagentRig is a rig in which the chat c runs a subagent with the given answer.
func newSubagentRig(t *testing.T, answer string) *rig {
	t.Helper()
	r := newRig(t, options{model: `
cassette: 1
turns:
  - user: '^delegate'
    steps:
      - calls: [{id: call_1, tool: eca__spawn_agent, arguments: {agent: explorer, task: "look around", activity: looking}}]
      - {text: Done.}
  - {user: 'look around', steps: [` + answer + `]}
`})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "delegate", "trust": true})
	return r
}

// The rules check that parentChatId is on all content of a child, and on no other content.
func conformSubagents(t *testing.T) {
	r := newSubagentRig(t, `{text: "nothing there"}`)
	r.Await(0, "the end", fake.Contains("chat/contentReceived", `"chatId":"c"`, `"finished"`))
	heard := r.Since(0)
	run, child := indexOf(heard, `"toolCallRun"`, `"subagentChatId":"subagent-`), indexOf(heard, `"parentChatId":"c"`)
	if run < 0 || run > child || indexOf(heard, `"role":"user"`, `"parentChatId":"c"`) != child {
		t.Errorf("run at %d, child at %d of %v", run, child, heard)
	}
}

func conformUnknownChats(t *testing.T) {
	r := newRig(t, options{model: hello, init: searchParams()})
	r.Call("chat/prompt", map[string]any{"chatId": "known", "message": "hi"})
	r.Await(0, "the end", fake.Finished())
	mark := r.Mark()
	params := map[string]any{"chatId": "nobody", "toolCallId": "x", "contentId": "x", "text": "t", "title": "t", "trust": true, "messages": true, "limit": 1, "query": "/", "save": "session"}
	for _, m := range protocol.Methods() {
		switch {
		case m.Direction == protocol.ToClient || !strings.HasPrefix(m.Name, "chat/") || strings.HasPrefix(m.Name, "chat/selected"):
		case m.Name == "chat/prompt" || m.Name == "chat/delete": // the first makes the chat, the second deletes it
		case m.Request:
			r.Call(m.Name, params)
		default:
			r.Notify(m.Name, params)
		}
	}
	r.Call("chat/open", map[string]any{"chatId": "known"})
	if heard := r.Since(mark); indexOf(heard, "nobody") >= 0 {
		t.Errorf("heard %v", heard)
	}
	if _, order := listChats(t, r, nil); !slices.Equal(order, []string{"known"}) {
		t.Errorf("chats: %v", order)
	}
}

func conformOpen(t *testing.T) {
	w := newConformWire(t, talk, `{}`)
	w.call(2, "chat/prompt", `{"chatId":"c","message":"hi"}`)
	w.await(0, `"finished"`)
	w.awaitStart()
	mark := w.mark()
	if got := w.call(3, "chat/open", `{"chatId":"nope"}`); !strings.HasSuffix(got, `"result":{"found":false}}`) || len(w.messagesSince(mark)) != 1 {
		t.Errorf("an unknown chat: %q", w.messagesSince(mark))
	}
	mark = w.mark()
	w.call(4, "chat/open", `{"chatId":"c"}`)
	w.call(5, "chat/list", `{}`)
	all := w.messagesSince(mark)
	if n := len(all); n < 8 || !strings.Contains(all[0], "chat/cleared") || !strings.Contains(all[1], "chat/opened") || !strings.Contains(all[n-2], `"id":4,"result":{"found":true`) {
		t.Errorf("opened: %q", all)
	}
	if len(w.messagesSince(mark, "metadata")) > 0 || len(w.messagesSince(mark, "progress")) > 0 || len(w.messagesSince(mark, "statusChanged")) > 0 {
		t.Errorf("too much: %q", all)
	}
}

func conformRollback(t *testing.T) {
	root := tempDir(t)
	write(t, root, map[string]string{"a.txt": "old\n", "b.txt": "b\n"})
	r := newRig(t, options{model: changes, root: root})
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "one", "trust": true})
	r.Await(0, "the end", fake.Finished())
	if readFile(t, filepath.Join(root, "a.txt")) != "changed\n" {
		t.Fatal("the tool did not work")
	}
	var echo struct{ Content struct{ ContentID string } }
	heard := r.Since(0)
	if err := json.Unmarshal(heard[indexOf(heard, `"role":"user"`)].Params, &echo); err != nil {
		t.Fatal(err)
	}
	r.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": echo.Content.ContentID, "include": []string{"tools"}})
	_, err := os.Stat(filepath.Join(root, "new.txt"))
	if a, b := readFile(t, filepath.Join(root, "a.txt")), readFile(t, filepath.Join(root, "b.txt")); a != "old\n" || b != "b\n" || !os.IsNotExist(err) {
		t.Errorf("a %q, b %q, new %v", a, b, err)
	}
}

// The rules check that there are no nulls.
func conformUsage(t *testing.T) {
	r := newRig(t, options{model: hello, config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{
		"bare": map[string]any{}, "half": map[string]any{"limit": map[string]any{"context": 1000}},
	}}}}})
	for model, limited := range map[string]bool{"mock/m": true, "mock/bare": false, "mock/half": false} {
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"message": "hi", "model": model})
		r.Await(mark, "the end", fake.Finished())
		usage := r.Since(mark)[indexOf(r.Since(mark), `"type":"usage"`)].String()
		if strings.Contains(usage, `"limit":`) != limited || strings.Contains(usage, `"sessionCost"`) != (model == "mock/m") {
			t.Errorf("%s: %s", model, usage)
		}
	}
}

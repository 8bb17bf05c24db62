package server_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/workspace"
)

// fieldsOf returns, for each method that clients call, the keys of its params.
func fieldsOf(t *testing.T) map[string][]string {
	t.Helper()
	face := reflect.TypeFor[protocol.Server]()
	byName := map[string]reflect.Type{}
	for i := range face.NumMethod() {
		m := face.Method(i)
		params := m.Type.In(1)
		if f, ok := params.FieldByName("Params"); ok {
			params = f.Type
		}
		byName[strings.ToLower(m.Name)] = params
	}
	out := map[string][]string{}
	for _, m := range protocol.Methods() {
		if m.Direction != protocol.ToServer {
			continue
		}
		params, ok := byName[strings.ToLower(strings.ReplaceAll(m.Name, "/", ""))]
		if !ok {
			t.Fatalf("no params of %s", m.Name)
		}
		out[m.Name] = []string{}
		for _, f := range reflect.VisibleFields(params) {
			if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "" {
				out[m.Name] = append(out[m.Name], key)
			}
		}
	}
	return out
}

// oddValues are of every type and size.
func oddValues() []string {
	return []string{
		`null`, `true`, `7`, `-1`, `1e999`, `1.5`, `"x"`, `""`, `"a b"`, `"/"`, `[]`, `{}`, `[null]`, `[7,"x",{}]`, `{"x":null}`, `{"type":{}}`,
		`"` + strings.Repeat("x", 64<<10) + `"`, strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60),
	}
}

// oddParams are malformed parameters of a method: not an object, empty, each field wrong in each
// way, and all fields wrong.
func oddParams(fields []string) (out []string) {
	for _, value := range oddValues() {
		out = append(out, value)
		all := []string{}
		for _, f := range fields {
			if f == "processId" && value[0] != '"' {
				continue // else the daemon would watch that process
			}
			out = append(out, fmt.Sprintf(`{%q:%s}`, f, value))
			all = append(all, fmt.Sprintf(`%q:%s`, f, value))
		}
		out = append(out, "{"+strings.Join(all, ",")+"}")
	}
	return out
}

// Requests with malformed params get an answer. They create no chat that the client is not shown, cause
// no messages about chats that the client does not know (the rules check this), and the daemon keeps
// working.
func TestBadParams(t *testing.T) {
	t.Parallel()
	for method, fields := range fieldsOf(t) {
		if method == "exit" || method == "shutdown" {
			continue // they ignore params and end the daemon
		}
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, options{model: hello})
			w := newWire(t, h.daemon, "")
			w.handshake(h.root, `{}`)
			isRequest := slices.ContainsFunc(protocol.Methods(), func(m protocol.Method) bool { return m.Name == method && m.Request })
			chats := map[string]bool{} // the chats that the client was shown
			for i, params := range oddParams(fields) {
				id, mark := 100+2*i, w.mark()
				if !isRequest {
					w.send(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`)
				} else {
					answer := w.call(id, method, params)
					if m := chatInMessage.FindStringSubmatch(answer); method == "chat/prompt" && m != nil && len(w.messagesSince(mark, `"role":"user"`)) > 0 {
						chats[m[1]] = true // it was shown, even if it could not be answered
						w.await(mark, `"finished"`)
					}
				}
				w.call(id+1, "chat/unknown", `{}`) // the daemon still answers
			}
			mark := w.mark()
			w.call(2, "chat/prompt", `{"chatId":"good","message":"hi"}`)
			w.await(mark, `"chatId":"good"`, `"finished"`, `"done"`)
			for _, id := range listChatIDs(t, w) {
				if !chats[id] && id != "good" {
					t.Errorf("a malformed request created the chat %q, which the client was not shown", id)
				}
			}
		})
	}
}

// listChatIDs returns the ids of all chats.
func listChatIDs(t *testing.T, w *wire) (ids []string) {
	t.Helper()
	var res struct {
		Result struct{ Chats []struct{ ID string } }
	}
	if err := json.Unmarshal([]byte(w.call(3, "chat/list", `{}`)), &res); err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Result.Chats {
		ids = append(ids, c.ID)
	}
	return ids
}

// Invalid messages and repeated requests: each gets its answer, and later messages are handled.
func TestBadMessages(t *testing.T) {
	t.Parallel()
	w := newConformWire(t, hello, `{}`)
	for i, c := range []struct{ body, want string }{
		{`{`, `"id":null,"error":{"code":-32700`},
		{`42`, `"id":null,"error":{"code":-32600`},
		{`{}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"1.0","id":50,"method":"chat/list"}`, `"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":{},"method":"chat/list"}`, `"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":51,"method":7}`, `"error":{"code":-32600`},
		{`[]`, `"error":{"code":-32600`},
		{`[{"jsonrpc":"2.0","id":52,"method":"chat/list"}]`, `"id":52,"result":{"chats":`},
		{`{"jsonrpc":"2.0","id":1000000000,"result":{}}`, ""},
		{`{"jsonrpc":"2.0","id":99,"error":null}`, ""},
		{`{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":{}}}`, ""},
	} {
		mark := w.mark()
		w.send(c.body)
		if c.want != "" {
			w.await(mark, c.want)
		}
		w.call(100+i, "chat/list", `{}`)
	}
}

// Prompts in each state of a turn get the same answer once the last turn has ended.
func TestPromptsWhileRunning(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps:\n    - {text: one two three, delay: 1ms}\nturns: []\n"})
	const prompts = 20
	for i := range prompts {
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "prompt " + strconv.Itoa(i)})
	}
	r.Await(0, "the last answer", func(heard []fake.Message) fake.Verdict {
		if last := indexOf(heard, `"user"`, fmt.Sprintf(`"prompt %d\n"`, prompts-1)); last >= 0 && indexOf(heard[last:], `"finished"`) >= 0 {
			return fake.Met
		}
		return fake.Unmet
	})
	heard := r.Since(0)
	if n := count(heard, `"role":"user"`); n != prompts {
		t.Errorf("%d echoes", n)
	}
	checkReplay(t, r, "c", heard)
}

// Changes of a chat by another daemon (turns, rollbacks, clears) are seen before the next turn.
func TestTwoDaemonsTakeTurns(t *testing.T) {
	t.Parallel()
	tape := "cassette: 1\ndefault:\n  steps: [{text: 'an answer'}]\nturns: []\n"
	a := newRig(t, options{model: tape})
	b := newRig(t, options{model: tape, state: a.state, root: a.root})
	prompt := func(r *rig, text, want string) {
		t.Helper()
		mark := r.Mark()
		for range 6000 { // the other daemon releases its lock only after the end was shown
			if mark = r.Mark(); strings.Contains(string(r.Call("chat/prompt", map[string]any{"chatId": "c", "message": text})), "prompting") {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		r.Await(mark, "the end of "+text, func(heard []fake.Message) fake.Verdict { // after the other daemon's changes
			if at := indexOf(heard, `"user"`, `"`+text+`\n"`); at >= 0 && indexOf(heard[at:], `"finished"`) >= 0 {
				return fake.Met
			}
			return fake.Unmet
		})
		r.mu.Lock()
		defer r.mu.Unlock()
		var body struct {
			Input []struct {
				Role    string
				Content []struct{ Text string }
			}
		}
		if err := json.Unmarshal(r.requests[len(r.requests)-1].body, &body); err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, item := range body.Input {
			if item.Role == "user" {
				said = append(said, item.Content[0].Text)
			}
		}
		if got := strings.Join(said, "|"); got != want {
			t.Errorf("the model got %s, want %s", got, want)
		}
	}
	prompt(a, "one", "one")
	prompt(b, "two", "one|two")
	prompt(a, "three", "one|two|three")
	var history struct {
		Contents []struct {
			Role    string
			Content struct{ Text, ContentID string }
		}
	}
	if err := json.Unmarshal(b.Call("chat/history", map[string]any{"chatId": "c"}), &history); err != nil {
		t.Fatal(err)
	}
	for _, c := range history.Contents {
		if c.Role == "user" && c.Content.Text == "two\n" {
			b.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": c.Content.ContentID})
		}
	}
	prompt(a, "four", "one|four")
	b.Call("chat/clear", map[string]any{"chatId": "c", "messages": true})
	prompt(a, "five", "five")
	prompt(b, "six", "five|six")
	a.Call("chat/delete", map[string]any{"chatId": "c"})
	prompt(b, "seven", "seven")
}

// eca warns once about a workspace folder that does not exist, because every call there fails.
func TestMissingWorkspaceFolderIsNamed(t *testing.T) {
	r := newRig(t, options{})
	missing := filepath.Join(t.TempDir(), "gone")
	for range 2 {
		r.Notify("workspace/didChangeWorkspaceFolders", map[string]any{"event": map[string]any{"added": []map[string]string{{"name": "gone", "uri": workspace.ToURI(missing)}}, "removed": []any{}}})
	}
	r.Await(0, "the warning", fake.Contains("$/showMessage", "gone, which the editor names as a workspace folder"))
	r.Call("chat/list", map[string]any{})
	count := 0
	for _, m := range r.Since(0) {
		if strings.Contains(m.String(), "which the editor names") {
			count++
		}
	}
	if count != 1 {
		t.Errorf("%d warnings name the folder, want 1", count)
	}
}

package acp_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Sessions are listed, loaded with their history, resumed without it, closed and deleted.
func TestSessions(t *testing.T) {
	r := newRig(t, writes)
	c := r.connect()
	id := c.start(r, nil)
	c.answer = chooseOption("allow_once")
	c.call("session/prompt", prompt(id, "Write."))
	list := func(params object) []any { return c.call("session/list", params)["sessions"].([]any) }
	for _, params := range []object{{"cwd": r.Root}, {}, {"cursor": nil, "cwd": nil}} {
		got := list(params)
		if len(got) != 1 || got[0].(object)["sessionId"] != id || got[0].(object)["cwd"] != r.Root || got[0].(object)["title"] == "" {
			t.Errorf("%v: %v", params, got)
		}
	}
	if got := list(object{"cwd": t.TempDir()}); len(got) != 0 {
		t.Errorf("elsewhere: %v", got)
	}
	c.call("session/close", object{"sessionId": id})
	if code, _ := c.fails("session/prompt", prompt(id, "Still there?")); code != -32002 {
		t.Errorf("a closed session: %d", code)
	}
	where := object{"sessionId": id, "cwd": r.Root, "mcpServers": []any{}}
	from := len(c.notifications)
	c.call("session/load", where)
	if got, want := story(c.updates(from)), "user_message agent_thought agent_message call(pending) call_update() call_update(in_progress) call_update(completed) agent_message"; got != want {
		t.Errorf("told again: %s\nwant %s", got, want)
	}
	asked := len(c.requests)
	from = len(c.notifications)
	c.call("session/resume", where)
	if got := story(c.updates(from)); got != "" || len(c.requests) != asked {
		t.Errorf("resumed: %s, asked %d times", got, len(c.requests)-asked)
	}
	c.call("session/prompt", prompt(id, "Again."))
	for range 2 {
		c.call("session/delete", object{"sessionId": id})
	}
	if got := list(object{"cwd": r.Root}); len(got) != 0 {
		t.Errorf("deleted: %v", got)
	}
	if code, _ := c.fails("session/load", where); code != -32002 {
		t.Errorf("a deleted session: %d", code)
	}
}

// The next process finds a session of an earlier one.
func TestRestart(t *testing.T) {
	r := newRig(t, writes)
	first := r.connect()
	id := first.start(r, nil)
	first.answer = chooseOption("allow_once")
	first.call("session/set_mode", object{"sessionId": id, "modeId": "plan"})
	first.call("session/set_mode", object{"sessionId": id, "modeId": "code"})
	first.call("session/prompt", prompt(id, "Write."))
	first.leave()
	second := r.connect()
	second.call("initialize", object{"protocolVersion": 1})
	second.call("session/load", object{"sessionId": id, "cwd": r.Root, "mcpServers": []any{}})
	if got := story(second.updates(0)); !strings.HasPrefix(got, "user_message") {
		t.Errorf("told again: %s", got)
	}
}

// value returns the current value of an option in a result.
func value(t *testing.T, result object, id string) any {
	t.Helper()
	for _, o := range result["configOptions"].([]any) {
		if o.(object)["id"] == id {
			return o.(object)["currentValue"]
		}
	}
	return nil
}

// Modes and options are two views of the same state and agree.
func TestOptions(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	c.call("initialize", object{"protocolVersion": 1, "clientCapabilities": object{"session": object{"configOptions": object{"boolean": object{}}}}})
	made := c.call("session/new", object{"cwd": r.Root, "mcpServers": []any{}})
	id := made["sessionId"].(string)
	if value(t, made, "mode") != "code" || value(t, made, "model") != "mock/m" || value(t, made, "trust") != false || value(t, made, "variant") != "-" {
		t.Errorf("%v", made)
	}
	if modes := made["modes"].(object); modes["currentModeId"] != "code" || !strings.Contains(fmt.Sprint(modes), "id:plan") {
		t.Errorf("%v", modes)
	}
	c.call("session/set_mode", object{"sessionId": id, "modeId": "plan"})
	if got := story(c.updates(0)); !strings.Contains(got, "current_mode_update config_option_update") {
		t.Errorf("told: %s", got)
	}
	set := func(option string, to any) object {
		return c.call("session/set_config_option", object{"sessionId": id, "configId": option, "value": to})
	}
	for _, step := range []struct {
		option string
		to     any
	}{{"mode", "code"}, {"variant", "high"}, {"variant", "-"}, {"trust", true}, {"model", "mock/n"}} {
		if got := value(t, set(step.option, step.to), step.option); got != step.to {
			t.Errorf("%s is %v, not %v", step.option, got, step.to)
		}
	}
	if got := value(t, set("mode", "plan"), "variant"); got != nil {
		t.Errorf("a model without variants has %v", got)
	}
	again := c.call("session/resume", object{"sessionId": id, "cwd": r.Root})
	if value(t, again, "mode") != "plan" || value(t, again, "model") != "mock/n" || value(t, again, "trust") != true {
		t.Errorf("resumed: %v", again)
	}
	for _, bad := range []object{
		{"configId": "mode", "value": "nobody"},
		{"configId": "model", "value": "mock/none"},
		{"configId": "model", "value": 3},
		{"configId": "variant", "value": "enormous"},
		{"configId": "trust", "value": "yes"},
		{"configId": "colour", "value": "red"},
		{"configId": "mode"},
	} {
		bad["sessionId"] = id
		if code, why := c.fails("session/set_config_option", bad); code != -32602 || why == "" {
			t.Errorf("%v: %d %s", bad, code, why)
		}
	}
	if code, _ := c.fails("session/set_mode", object{"sessionId": id, "modeId": "nobody"}); code != -32602 {
		t.Error(code)
	}
}

// Bad input is answered with the cause, and the agent keeps running.
func TestBadInput(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	if code, _ := c.fails("session/new", object{"cwd": r.Root, "mcpServers": []any{}}); code != -32600 {
		t.Errorf("before initialize: %d", code)
	}
	if code, _ := c.fails("initialize", object{}); code != -32602 {
		t.Errorf("without a version: %d", code)
	}
	if got := c.call("initialize", object{"protocolVersion": 7, "clientCapabilities": []any{1}, "clientInfo": "x"})["protocolVersion"]; got != 1.0 {
		t.Errorf("version %v", got)
	}
	for line, code := range map[string]float64{
		"no json":                                                      -32700,
		`[{"jsonrpc":"2.0","id":1}]`:                                   -32600,
		`{"id":90,"method":"initialize"}`:                              -32600,
		`{"jsonrpc":"2.0","id":90}`:                                    -32600,
		`{"jsonrpc":"2.0","id":{},"method":"x"}`:                       -32600,
		`{"jsonrpc":"2.0","id":90,"method":3}`:                         -32600,
		`{"jsonrpc":"2.0","id":90,"method":"_mine/do"}`:                -32601,
		`{"jsonrpc":"2.0","id":90,"method":"logout"}`:                  -32601,
		`{"jsonrpc":"2.0","id":90,"method":"session/new","params":[]}`: -32602,
		`{"jsonrpc":"2.0","id":90,"method":"session/new","params":{"cwd":"here","mcpServers":[]}}`:                           -32602,
		`{"jsonrpc":"2.0","id":90,"method":"session/prompt","params":{"sessionId":"none","prompt":[]}}`:                      -32002,
		`{"jsonrpc":"2.0","id":90,"method":"session/prompt","params":{}}`:                                                    -32602,
		`{"jsonrpc":"2.0","id":90,"method":"session/list","params":{"cursor":"x"}}`:                                          -32602,
		`{"jsonrpc":"2.0","id":90,"method":"session/load","params":{"sessionId":"none","cwd":"/none","mcpServers":[]}}`:      -32002,
		`{"jsonrpc":"2.0","id":90,"method":"session/load","params":{"sessionId":"../../etc","cwd":"/none","mcpServers":[]}}`: -32002,
		`{"jsonrpc":"2.0","id":90,"method":"authenticate","params":{"methodId":"magic"}}`:                                    -32602,
		`{"jsonrpc":"2.0","id":90,"method":"session/set_mode","params":{"sessionId":"none","modeId":"code"}}`:                -32002,
	} {
		c.line(line)
		m := c.message()
		if failure, _ := m["error"].(object); failure["code"] != code || failure["message"] == "" {
			t.Errorf("%s: %v", line, m)
		}
	}
	c.line(`{"jsonrpc":"2.0","method":"_mine/happened"}`)
	c.line(`{"jsonrpc":"2.0","id":"unasked","result":{}}`)
	c.line(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"none"}}`)
	made := c.call("session/new", object{"cwd": r.Root, "mcpServers": []any{
		"nonsense", object{"name": "x"}, object{"name": "odd", "type": "carrier pigeon", "url": "x"},
	}})
	id := made["sessionId"].(string)
	for _, bad := range []any{nil, []any{}, []any{object{"type": "audio", "data": "", "mimeType": "audio/wav"}}} {
		if code, why := c.fails("session/prompt", object{"sessionId": id, "prompt": bad}); code != -32602 {
			t.Errorf("%v: %d %s", bad, code, why)
		}
	}
	if got := c.call("session/prompt", prompt(id, "Hello?"))["stopReason"]; got != "end_turn" {
		t.Error(got)
	}
}

// A failed turn is an error of its prompt, with the reason.
func TestFailure(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{error: {status: 400, message: no such luck}}]}\n")
	c := r.connect()
	id := c.start(r, nil)
	m := c.end(c.begin("session/prompt", prompt(id, "Hello?")))
	raw, err := json.Marshal(m["error"])
	if err != nil || !strings.Contains(string(raw), "no such luck") || !strings.Contains(string(raw), "E2A.AGENT_ERROR") {
		t.Errorf("%s", raw)
	}
	if told := textOf(c); told != "" {
		t.Errorf("it is told twice: %q", told)
	}
}

// Slash commands are prompts; their changes of the session's options are sent.
func TestSlashCommand(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	id := c.start(r, nil)
	c.call("session/prompt", prompt(id, "/model mock/n"))
	if told := textOf(c); !strings.Contains(told, "mock/n") {
		t.Errorf("told %q", told)
	}
	if got := value(t, c.call("session/resume", object{"sessionId": id, "cwd": r.Root}), "model"); got != "mock/n" {
		t.Errorf("the model is %v", got)
	}
	updates := c.updates(0)
	if last := updates[len(updates)-1]; !strings.Contains(story(updates), "config_option_update") {
		t.Errorf("the change is not told; the last update is %v", last)
	}
}

// The output of a command is a message also for a client that shows notices, and stays in the history.
func TestCommandOutputIsAMessage(t *testing.T) {
	r := newRig(t, "turns: []\n")
	c := r.connect()
	id := c.start(r, object{"session": object{"notices": object{}}})
	c.call("session/prompt", prompt(id, "/help"))
	if told := textOf(c); !strings.Contains(told, "`/compact") {
		t.Errorf("told %q; %s", told, story(c.updates(0)))
	}
	shown := len(c.notifications)
	c.call("session/load", object{"sessionId": id, "cwd": r.Root, "mcpServers": []any{}})
	if got := story(c.updates(shown)); !strings.Contains(got, "user_message agent_message") {
		t.Errorf("history: %s", got)
	}
}

// Sessions start only in existing folders, and nothing starts before initialize.
func TestFoldersThatDoNotExist(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	file := r.Write("file.txt", "x")
	c := r.connect()
	for _, method := range []string{
		"authenticate", "session/new", "session/load", "session/resume", "session/list", "session/delete", "session/close", "session/prompt",
		"session/set_mode", "session/set_config_option", "no/such",
	} {
		if code, why := c.fails(method, object{"sessionId": "x", "cwd": r.Root, "mcpServers": []any{}, "prompt": []any{}}); code != -32600 || !strings.Contains(why, "initialize") {
			t.Errorf("%s before initialize: %d %s", method, code, why)
		}
	}
	id := c.start(r, nil)
	c.call("session/close", object{"sessionId": id})
	for cwd, says := range map[string]string{r.Root + "/none": "does not exist", file: "is not a folder", file + "/below": "cwd", "sub": "absolute"} {
		for _, method := range []string{"session/new", "session/load", "session/resume", "session/list"} {
			code, why := c.fails(method, object{"cwd": cwd, "mcpServers": []any{}, "sessionId": id})
			if code == -32002 && method != "session/new" && method != "session/list" { // there is no such session in that folder
				continue
			}
			if code != -32602 || !strings.Contains(why, says) || !strings.Contains(why, "cwd") {
				t.Errorf("%s in %s: %d %s", method, cwd, code, why)
			}
		}
	}
}

// A missing additional folder is refused and named, too.
func TestAdditionalDirectoriesMustExist(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	there := t.TempDir()
	file := filepath.Join(there, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := c.start(r, nil)
	c.call("session/close", object{"sessionId": id})
	for folder, says := range map[string]string{filepath.Join(there, "none"): "does not exist", file: "is not a folder", "sub": "absolute"} {
		for _, method := range []string{"session/new", "session/load", "session/resume"} {
			code, why := c.fails(method, object{"cwd": r.Root, "mcpServers": []any{}, "sessionId": id, "additionalDirectories": []any{there, folder}})
			if code != -32602 || !strings.Contains(why, says) || !strings.Contains(why, "additionalDirectories") {
				t.Errorf("%s with %s: %d %s", method, folder, code, why)
			}
		}
	}
	c.call("session/new", object{"cwd": r.Root, "mcpServers": []any{}, "additionalDirectories": []any{there}})
}

// Errors use the protocol's names of members and JSON's names of types, not Go's.
func TestErrorsNameTheProtocol(t *testing.T) {
	r := newRig(t, "turns: []\ndefault: {steps: [{text: Hello.}]}\n")
	c := r.connect()
	if _, why := c.fails("initialize", object{"protocolVersion": "one"}); why != "protocolVersion must be a number, such as 1" {
		t.Error(why)
	}
	id := c.start(r, nil)
	for _, v := range []struct {
		method string
		params any
		want   string
	}{
		{"session/new", object{"cwd": 5, "mcpServers": []any{}}, "params: cwd must be a string, not a number"},
		{"session/new", object{"cwd": r.Root, "mcpServers": "none"}, "params: mcpServers must be an array, not a string"},
		{"session/load", object{"cwd": object{}, "sessionId": id}, "params: cwd must be a string, not an object"},
		{"session/resume", object{"cwd": r.Root, "sessionId": []any{1}}, "params: sessionId must be a string, not an array"},
		{"session/prompt", object{"sessionId": id, "prompt": "hi"}, "params: prompt must be an array, not a string"},
		{"session/prompt", object{"sessionId": true, "prompt": []any{}}, "params: sessionId must be a string, not a boolean"},
		{"session/set_mode", object{"sessionId": id, "modeId": 3}, "params: modeId must be a string, not a number"},
		{"session/set_config_option", object{"sessionId": id, "configId": 3, "value": "x"}, "params: configId must be a string, not a number"},
		{"authenticate", object{"methodId": 3}, "params: methodId must be a string, not a number"},
		{"session/close", "x", "params: the value must be an object, not a string"},
	} {
		c.next++
		c.sent[c.next] = v.method
		c.send(object{"id": c.next, "method": v.method, "params": v.params})
		failure, _ := c.end(c.next)["error"].(object)
		if failure["message"] != v.want || failure["code"] != -32602.0 {
			t.Errorf("%s %v: %v, want %q", v.method, v.params, failure, v.want)
		}
	}
	for line, want := range map[string]string{
		`{"jsonrpc":"2.0","id":90,"method":3}`:          "method must be a string, not a number",
		`{"jsonrpc":2,"id":90,"method":"initialize"}`:   "jsonrpc must be a string, not a number",
		`{"jsonrpc":"2.0","id":90,"error":"cancelled"}`: "error must be an object, not a string",
	} {
		c.line(line)
		if failure, _ := c.message()["error"].(object); failure["message"] != want {
			t.Errorf("%s: %v, want %q", line, failure, want)
		}
	}
}

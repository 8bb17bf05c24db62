package acp_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// handshakes are the first messages of clients, as they write them: an empty Lua table may be a
// list or an object. ROOT is the workspace.
var handshakes = map[string]struct{ initialize, session string }{
	"Zed": {
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true,"auth":{"terminal":true},"session":{"configOptions":{"boolean":{}}},"_meta":{"terminal_output":true,"terminal-auth":true}},"clientInfo":{"name":"zed","title":"Zed","version":"1.18.0"}}`,
		`{"cwd":"ROOT","mcpServers":[]}`,
	},
	"JetBrains": {
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true},"clientInfo":{"name":"JetBrains IDE","version":"2026.2"}}`,
		`{"cwd":"ROOT","mcpServers":[{"type":"http","name":"ide","url":"http://127.0.0.1:1/mcp","headers":[{"name":"IJ_MCP","value":"x"}]}]}`,
	},
	"CodeCompanion": {
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}},"clientInfo":{"name":"CodeCompanion.nvim","version":"1.0.0"}}`,
		`{"cwd":"ROOT","mcpServers":{}}`,
	},
	"avante": {
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}}}`,
		`{"cwd":"ROOT","mcpServers":[{"name":"none","command":"no-such-program","args":{},"env":{}}]}`,
	},
	"agent-shell": {
		`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true}},"clientInfo":{"name":"agent-shell","title":"Emacs Agent Shell","version":"0.30.1"}}`,
		`{"cwd":"ROOT","mcpServers":[]}`,
	},
	"older": {`{"protocolVersion":1,"clientCapabilities":[],"_meta":null}`, `{"cwd":"ROOT","mcpServers":[],"additionalDirectories":null}`},
}

// Each client edits a file in its own way: a handshake, a mode, a prompt that reads unsaved text,
// permission with a diff, the list of its sessions, and the session again in another process.
func TestClients(t *testing.T) {
	for name, says := range handshakes {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, edits)
			path, buffer := r.Write("a.txt", "saved\nunsaved on disk\n"), "one\nunsaved text\n"
			c := r.connect()
			parse := func(text string) (out object) {
				quoted, _ := json.Marshal(r.Root)
				if err := json.Unmarshal([]byte(strings.ReplaceAll(text, `"ROOT"`, string(quoted))), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
			hello := c.call("initialize", parse(says.initialize))
			if hello["protocolVersion"] != 1.0 || hello["agentCapabilities"].(object)["loadSession"] != true {
				t.Errorf("%v", hello)
			}
			// A client that is offered ways to log in uses the first one.
			if methods := hello["authMethods"].([]any); (len(methods) > 0) != (name == "Zed") {
				t.Errorf("%v", methods)
			} else if len(methods) > 0 {
				c.call("authenticate", object{"methodId": methods[0].(object)["id"]})
			}
			made := c.call("session/new", parse(says.session))
			id := made["sessionId"].(string)
			if made["modes"].(object)["currentModeId"] != "code" || value(t, made, "mode") != "code" || value(t, made, "model") != "mock/m" {
				t.Errorf("%v", made)
			}
			c.call("session/set_mode", object{"sessionId": id, "modeId": "plan"})
			c.call("session/set_config_option", object{"sessionId": id, "configId": "mode", "value": "code"})
			wrote := false
			c.answer = func(method string, params object) object {
				switch method {
				case "session/request_permission":
					if diff, _ := params["toolCall"].(object)["content"].([]any)[0].(object); diff["type"] != "diff" || diff["path"] != path {
						t.Errorf("%v", params)
					}
					return chooseOption("allow_once")(method, params)
				case "fs/read_text_file":
					return object{"content": buffer}
				}
				buffer, wrote = params["content"].(string), true
				return object{}
			}
			if got := c.call("session/prompt", object{"sessionId": id, "prompt": []any{
				object{"type": "text", "text": "Edit."}, object{"type": "resource_link", "uri": "file://" + path, "name": "a.txt"},
			}})["stopReason"]; got != "end_turn" {
				t.Error(got)
			}
			if disk, err := os.ReadFile(path); err != nil || wrote == strings.Contains(string(disk), "edited") {
				t.Errorf("in the editor %v, on the disk %q, %v", wrote, disk, err)
			}
			if list := c.call("session/list", object{"cwd": r.Root})["sessions"].([]any); len(list) != 1 || list[0].(object)["sessionId"] != id {
				t.Errorf("%v", list)
			}
			c.leave()
			again := r.connect()
			again.call("initialize", parse(says.initialize))
			load := parse(says.session)
			load["sessionId"] = id
			again.call("session/load", load)
			if got := story(again.updates(0)); !strings.Contains(got, "user_message") || !strings.Contains(got, "call(pending)") {
				t.Errorf("told again: %s", got)
			}
		})
	}
}

// Empty values in the notation of Lua clients and others count as missing, and null is a valid
// answer to a write.
func TestOddAnswers(t *testing.T) {
	r := newRig(t, edits)
	r.Write("a.txt", "unsaved")
	c := r.connect()
	id := c.start(r, object{"fs": object{"readTextFile": false, "writeTextFile": true}})
	c.next = 77
	c.sent[77] = "session/list"
	c.line(`{"jsonrpc":"2.0","id":77,"method":"session/list","params":[]}`)
	if m := c.end(77); m["result"] == nil {
		t.Errorf("%v", m)
	}
	if code, _ := c.fails("session/new", object{"cwd": r.Root, "mcpServers": "none"}); code != -32602 {
		t.Error(code)
	}
	if code, _ := c.fails("session/new", object{"cwd": r.Root, "mcpServers": object{"name": "x"}}); code != -32602 {
		t.Error(code)
	}
	n := c.begin("session/prompt", prompt(id, "Edit."))
	written := false
	for {
		m := c.message()
		if m["id"] == float64(n) && m["method"] == nil {
			break
		}
		switch m["method"] {
		case "session/request_permission":
			c.send(object{"id": m["id"], "result": chooseOption("allow_once")("", nil)})
		case "fs/write_text_file":
			written = true
			c.send(object{"id": m["id"], "result": nil})
		}
	}
	if text, err := os.ReadFile(r.Root + "/a.txt"); !written || string(text) != "unsaved" {
		t.Errorf("written %v, on the disk %q, %v", written, text, err)
	}
}

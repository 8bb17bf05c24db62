package acp_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const edits = `
turns: []
default:
  steps:
    - calls: [{id: c1, tool: eca__read_file, arguments: {path: "${workspace}/a.txt"}}]
    - text: 'Read: ${result:(?s)(.*)}'
      calls: [{id: c2, tool: eca__edit_file, arguments: {path: "${workspace}/a.txt", original_content: "unsaved", new_content: "edited"}}]
    - text: 'Then: ${result:(?s)(.*)}'
`

// Files that are open in the client are read and written there. If the client fails, the file on
// disk is used; a client without the ability is not asked.
func TestClientFiles(t *testing.T) {
	for _, how := range []string{"offered", "failing", "nothing"} {
		r := newRig(t, edits)
		path, buffer, methods := r.Write("a.txt", "saved\nunsaved on disk\n"), "one\nunsaved text\n", map[string]int{}
		c := r.connect()
		capabilities := object{"fs": object{"readTextFile": true, "writeTextFile": true}}
		if how == "nothing" {
			capabilities = nil
		}
		id := c.start(r, capabilities)
		c.answer = func(method string, params object) object {
			methods[method]++
			if method == "session/request_permission" {
				return chooseOption("allow_once")(method, params)
			}
			if params["path"] != path || params["sessionId"] != id {
				t.Errorf("%s of %v", method, params)
			}
			switch {
			case how == "failing":
				return object{"content": 3}
			case method == "fs/read_text_file":
				return object{"content": buffer}
			}
			buffer = params["content"].(string)
			return object{}
		}
		c.call("session/prompt", prompt(id, "Edit."))
		disk, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]struct{ disk, buffer string }{
			"offered": {"saved\nunsaved on disk\n", "one\nedited text\n"},
			"failing": {"saved\nunsaved on disk\n", "one\nunsaved text\n"}, // any answer without an error means that it was written
			"nothing": {"saved\nedited on disk\n", "one\nunsaved text\n"},
		}[how]
		if string(disk) != want.disk || buffer != want.buffer {
			t.Errorf("%s: disk %q, buffer %q", how, disk, buffer)
		}
		asked := methods["fs/read_text_file"] > 0 && methods["fs/write_text_file"] > 0
		if asked != (how != "nothing") {
			t.Errorf("%s: asked %v", how, methods)
		}
	}
}

// A file that the client refuses to write is written on disk; files outside the workspace never
// go to the client.
func TestClientRefusesFiles(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "b.txt")
	if err := os.WriteFile(outside, []byte("elsewhere"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, `
turns: []
default:
  steps:
    - calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: "new"}}]
    - calls: [{id: c2, tool: eca__read_file, arguments: {path: "`+filepath.ToSlash(outside)+`"}}]
    - text: 'Then: ${result:(?s)(.*)}'
`)
	c := r.connect()
	id := c.start(r, object{"fs": object{"readTextFile": true, "writeTextFile": true}})
	n := c.begin("session/prompt", prompt(id, "Write."))
	for {
		m := c.message()
		if m["id"] == float64(n) && m["method"] == nil {
			break
		}
		switch m["method"] {
		case "session/request_permission":
			c.send(object{"id": m["id"], "result": chooseOption("allow_once")("", nil)})
		case "fs/write_text_file", "fs/read_text_file":
			if p := m["params"].(object)["path"].(string); !strings.HasPrefix(p, r.Root) {
				t.Errorf("%v of %s", m["method"], p)
			}
			c.send(object{"id": m["id"], "error": object{"code": -32603, "message": "no"}})
		}
	}
	if text, err := os.ReadFile(filepath.Join(r.Root, "a.txt")); string(text) != "new" {
		t.Errorf("%q, %v", text, err)
	}
	told := ""
	for _, u := range c.updates(0) {
		if content, ok := u["content"].(object); ok {
			told += content["text"].(string)
		}
	}
	if !strings.Contains(told, "elsewhere") {
		t.Errorf("told: %s", told)
	}
}

// A client that hangs while it saves a file of one session does not delay the edits of another.
func TestSavingClientHoldsUpNobody(t *testing.T) {
	r := newRig(t, `
turns:
  - user: first
    steps:
      - calls: [{id: c1, tool: eca__write_file, arguments: {path: "${workspace}/a.txt", content: "a"}}]
      - text: 'First.'
  - user: second
    steps:
      - calls: [{id: c2, tool: eca__write_file, arguments: {path: "${workspace}/b.txt", content: "b"}}]
      - text: 'Second.'
`)
	c := r.connect()
	hangs := c.start(r, object{"fs": object{"writeTextFile": true}})
	other := c.call("session/new", object{"cwd": r.Root, "mcpServers": []any{}})["sessionId"].(string)
	c.answer = func(method string, params object) object {
		switch {
		case method == "session/request_permission":
			return chooseOption("allow_once")(method, params)
		case params["sessionId"] == hangs:
			return nil
		}
		r.Write(filepath.Base(params["path"].(string)), params["content"].(string))
		return object{}
	}
	first := c.begin("session/prompt", prompt(hangs, "first"))
	saving := c.readUntil(func(m object) bool { return m["method"] == "fs/write_text_file" })
	c.call("session/prompt", prompt(other, "second"))
	if text, err := os.ReadFile(filepath.Join(r.Root, "b.txt")); string(text) != "b" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(r.Root, "a.txt")); err == nil {
		t.Error("a.txt was written although the client has not answered")
	}
	c.send(object{"id": saving["id"], "result": object{}})
	c.end(first)
}

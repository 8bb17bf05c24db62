package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// readLines runs read-chat and decodes its output.
func readLines(t *testing.T, p place, args ...string) (lines []map[string]any, stderr string) {
	t.Helper()
	out, stderr, code := runProgram(t, p, "", append([]string{"read-chat"}, args...)...)
	if code != 0 {
		t.Fatalf("%q: exit %d: %s", args, code, stderr)
	}
	for line := range strings.Lines(out) {
		var m map[string]any
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatalf("%q: %v in %s", args, err, line)
		}
		lines = append(lines, m)
	}
	return lines, stderr
}

// values returns one value of each line.
func values(lines []map[string]any, key string) string {
	var out []string
	for _, l := range lines {
		out = append(out, fmt.Sprint(l[key]))
	}
	return strings.Join(out, " ")
}

func TestReadChat(t *testing.T) {
	p := newProvider(t, `
cassette: 1
default:
  steps:
    - text: "Let me see. "
      calls: [{id: c1, tool: eca__directory_tree, arguments: {path: "${workspace}"}}]
    - {text: "<All> done."}
turns: []
`)
	here := newPlace(t, p.env()...)
	state := filepath.Join(filepath.Dir(here.root), "state", "eca")
	if _, errOut, code := runProgram(t, here, "", "read-chat", "--workspace", here.root); code != 1 || !strings.Contains(errOut, "no chats") {
		t.Errorf("before the first chat: exit %d, %s", code, errOut)
	}
	if _, err := os.Stat(state); err == nil {
		t.Error("reading made a store")
	}
	for _, prompt := range []string{"one", "two"} {
		if _, errOut, code := runProgram(t, here, "", "exec", prompt); code != 0 {
			t.Fatalf("exit %d: %s", code, errOut)
		}
	}
	chats, _ := readLines(t, here, "--workspace", here.root)
	if len(chats) != 2 || chats[0]["updated-at"].(float64) < chats[1]["updated-at"].(float64) {
		t.Fatalf("%v", chats)
	}
	for key, want := range map[string]string{"status": "idle idle", "user-prompt-count": "1 1", "title": "<nil> <nil>"} {
		if got := values(chats, key); got != want {
			t.Errorf("%s: %s", key, got)
		}
	}
	id := chats[1]["id"].(string)
	for _, path := range []string{state, filepath.Join(state, "chats.db")} {
		messages, _ := readLines(t, here, "--db-cache-path", path, "--chat-id", id)
		if got := values(messages, "role"); got != "user assistant tool_call tool_call_output assistant" {
			t.Errorf("%s: %s", path, got)
		}
		for i, want := range []string{`[{"text":"one","type":"text"}]`, `[{"text":"Let me see. ","type":"text"}]`, `"full-name":"eca__directory_tree"`, `"total-time-ms"`, `<All> done.`} {
			raw, _ := json.Marshal(messages[i]["content"])
			if text := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(raw)); !strings.Contains(text, want) || messages[i]["created-at"] == nil {
				t.Errorf("message %d: %v", i, messages[i])
			}
		}
		if messages[0]["content-id"] == "" {
			t.Errorf("no content-id: %v", messages[0])
		}
	}
	// A flag comes after its message, wherever it is in the log.
	first, _ := readLines(t, here, "--workspace", here.root, "--chat-id", id, "--role", "user")
	proc := here.serve(t)
	proc.Open(here.root, nil)
	proc.Call("chat/open", map[string]any{"chatId": id})
	proc.Call("chat/addFlag", map[string]any{"chatId": id, "contentId": first[0]["content-id"], "text": "pin"})
	proc.Call("chat/addFlag", map[string]any{"chatId": id, "contentId": "c1", "text": "pin"})
	shutDown(t, proc)
	flagged, _ := readLines(t, here, "--workspace", here.root, "--chat-id", id)
	if got := values(flagged, "role"); got != "user flag assistant tool_call tool_call_output flag assistant" {
		t.Errorf("with flags: %s", got)
	}
	only, _ := readLines(t, here, "--workspace", here.root, "--chat-id", id, "--role", "tool_call_output", "--since", "1h")
	if len(only) != 1 || only[0]["content"].(map[string]any)["output"].(map[string]any)["error"] != false {
		t.Errorf("%v", only)
	}
	for _, args := range [][]string{{"--until", "1h"}, {"--since", "2999-01-01"}, {"--until", "2000-01-01T00:00:00Z", "--chat-id", id}} {
		if lines, errOut := readLines(t, here, append([]string{"--workspace", here.root}, args...)...); len(lines) > 0 || errOut != "" {
			t.Errorf("%q: %v %s", args, lines, errOut)
		}
	}
	for _, args := range [][]string{{"--workspace", filepath.Dir(here.root)}, {"--workspace", here.root, "--workspace", "/"}, {"--workspace", here.root, "--chat-id", "nope"}, {"--workspace", "/", "--chat-id", id}} {
		if out, errOut, code := runProgram(t, here, "", append([]string{"read-chat"}, args...)...); code != 1 || out != "" || errOut == "" {
			t.Errorf("%q: exit %d, %s%s", args, code, out, errOut)
		}
	}
}

func TestReadChatOfTheReference(t *testing.T) {
	here, folder := newPlace(t), t.TempDir()
	chats := filepath.Join(folder, "chats")
	if err := os.CopyFS(chats, os.DirFS("../../chat/importer/testdata/several-chats")); err != nil {
		t.Fatal(err)
	}
	const id = "50d4095d-19ba-452f-b373-d939fcad5271"
	for _, path := range []string{folder, chats, filepath.Join(chats, "index.transit.json")} {
		list, errOut := readLines(t, here, "--db-cache-path", path)
		if got := values(list, "id"); got != id+" my-own-id-1 nope" || errOut != "" {
			t.Errorf("%s: %s %s", path, got, errOut)
		}
		if got := fmt.Sprint(list[0]); got != "map[created-at:1.795167584422e+12 id:"+id+" model:openai/gpt-5.2 status:idle title:Some Cool Title (2) updated-at:1.795167590815e+12 user-prompt-count:1]" {
			t.Error(got)
		}
		messages, _ := readLines(t, here, "--db-cache-path", path, "--chat-id", id)
		if got := values(messages, "role"); got != "user assistant user user assistant" {
			t.Error(got)
		}
	}
	// --since includes the bound, --until does not.
	at := func(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339Nano) }
	list, _ := readLines(t, here, "--db-cache-path", folder, "--since", at(1795167582721), "--until", at(1795167590815))
	if got := values(list, "id"); got != "my-own-id-1" {
		t.Error(got)
	}
	messages, _ := readLines(t, here, "--db-cache-path", folder, "--chat-id", id, "--since", at(1795167581481), "--until", at(1795167591046), "--role", "user")
	if got := values(messages, "created-at"); got != "1.795167581481e+12 1.795167591033e+12" {
		t.Error(got)
	}
	if messages, _ := readLines(t, here, "--db-cache-path", folder, "--chat-id", "nope"); len(messages) > 0 {
		t.Errorf("%v", messages)
	}
	if _, errOut, code := runProgram(t, here, "", "read-chat", "--db-cache-path", folder, "--chat-id", "missing-1"); code != 1 || !strings.Contains(errOut, "missing-1") {
		t.Errorf("exit %d: %s", code, errOut)
	}
}

// Older versions kept all chats in one file, and messages without times.
func TestReadChatOfOldFiles(t *testing.T) {
	here, folder := newPlace(t), t.TempDir()
	file := filepath.Join(folder, "db.transit.json")
	const content = `["^ ","~:version",%d,"~:chats",["^ ","old",["^ ","~:title",null,"~:messages",[["^ ","~:role","user","~:content","hi"],["^ ","^4","user","^5","dated","~:created-at",1795167580072]]]]]`
	for _, version := range []int{6, 5} {
		if err := os.WriteFile(file, fmt.Appendf(nil, content, version), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{folder, file} {
			list, errOut := readLines(t, here, "--db-cache-path", path)
			if values(list, "id") != "old" || strings.Contains(errOut, "Warning") != (version != 6) {
				t.Errorf("%v %s", list, errOut)
			}
			messages, errOut := readLines(t, here, "--db-cache-path", path, "--chat-id", "old", "--since", "2020-01-01")
			if values(messages, "content") != "dated" || !strings.Contains(errOut, "1 message(s)") {
				t.Errorf("%v %s", messages, errOut)
			}
			if messages, _ := readLines(t, here, "--db-cache-path", path, "--chat-id", "old"); values(messages, "content") != "hi dated" {
				t.Errorf("%v", messages)
			}
		}
	}
	if err := os.WriteFile(file, []byte(`["^ ","~:version",6,`), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := runProgram(t, here, "", "read-chat", "--db-cache-path", file); code != 1 || out != "" || !strings.Contains(errOut, file) {
		t.Errorf("a cut file: exit %d, %s%s", code, out, errOut)
	}
}

func TestReadChatUsage(t *testing.T) {
	here := newPlace(t)
	for _, c := range []struct{ args, says string }{
		{"", "source"},
		{"--db-cache-path x --workspace y", "not both"},
		{"--db-cache-path /nowhere", "/nowhere"},
		{"--db-cache-path . extra", "extra"},
		{"--db-cache-path . --wrong", "--wrong"},
		{"--db-cache-path . --role user", "--chat-id"},
		{"--db-cache-path . --since yesterday", "yesterday"},
		{"--db-cache-path . --until 99999999999999999999d", "--until"},
		{"--db-cache-path . --until 999999999999d", "--until"},
		{"--db-cache-path . --since 2025-02-30", "2025-02-30"},
		{"--db-cache-path .", "no chats"},
	} {
		out, errOut, code := runProgram(t, here, "", append([]string{"read-chat"}, strings.Fields(c.args)...)...)
		if code != 1 || out != "" || !strings.Contains(errOut, c.says) {
			t.Errorf("%s: exit %d, stdout %q, stderr %q", c.args, code, out, errOut)
		}
	}
	if out, _, code := runProgram(t, here, "", "read-chat", "-h"); code != 0 || !strings.Contains(out, "--db-cache-path") {
		t.Errorf("-h: exit %d, %s", code, out)
	}
}

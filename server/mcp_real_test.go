package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// callTurn is one turn of a cassette in which a tool is called.
func callTurn(id, tool string, args any) string {
	raw, _ := json.Marshal(args)
	return fmt.Sprintf("  - steps:\n      - calls: [{id: %s, tool: %s, arguments: %s}]\n      - {text: \"Done %s.\"}\n", id, tool, raw, id)
}

// realRig is a daemon with real servers, whose calls are allowed, and a scripted model.
func realRig(t *testing.T, root string, servers map[string]any, turns ...string) *rig {
	t.Helper()
	r := newRig(t, options{
		root:  root,
		model: "cassette: 1\nturns:\n" + strings.Join(turns, ""),
		config: map[string]any{
			"mcpServers": servers, "toolCall": map[string]any{"approval": map[string]any{"byDefault": "allow"}},
		},
	})
	r.Await(0, "the start", fake.Ready())
	for name := range servers {
		r.Await(0, name, fake.Contains("tool/serverUpdated", `"name":"`+name+`","status":"running"`))
	}
	return r
}

// prompt plays the next turn to its end, and waits for the result of its call.
func (r *rig) prompt(t *testing.T, id string, result ...string) {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go on"})
	r.Await(mark, "the result of "+id, fake.Contains("chat/contentReceived", append([]string{`"toolCalled"`, `"id":"` + id + `"`, `"error":null`}, result...)...))
	r.Await(mark, "the end", fake.Finished())
}

// processesWithMark lists processes whose environment has a mark.
func processesWithMark(mark string) []string {
	var out []string
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		if raw, err := os.ReadFile(file); err == nil && bytes.Contains(raw, []byte(mark)) && !strings.Contains(file, fmt.Sprintf("/%d/", os.Getpid())) {
			out = append(out, file)
		}
	}
	return out
}

// The results of the reference server "everything" reach the editor and the model, over each
// transport.
func TestRealServerEverything(t *testing.T) {
	t.Parallel()
	node, modules := testkit.NodeTools(t, os.Getenv)
	for _, way := range []string{"stdio", "streamableHttp", "sse"} {
		t.Run(way, func(t *testing.T) {
			mark := "ECA_TEST_MARK=" + t.TempDir()
			entry := map[string]any{"command": node, "args": []any{testkit.NodeServer(modules, "everything"), "stdio"}, "env": map[string]any{"ECA_TEST_MARK": strings.TrimPrefix(mark, "ECA_TEST_MARK=")}}
			if way != "stdio" {
				entry = map[string]any{"url": testkit.Everything(t, node, modules, way)}
			}
			r := realRig(
				t, "", map[string]any{"every": entry},
				callTurn("sum", "every__get-sum", map[string]any{"a": 20, "b": 22}),
				callTurn("image", "every__get-tiny-image", map[string]any{}),
				callTurn("data", "every__get-structured-content", map[string]any{"location": "Chicago"}),
				callTurn("links", "every__get-resource-links", map[string]any{"count": 2}),
				callTurn("text", "every__get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}),
				callTurn("blob", "every__get-resource-reference", map[string]any{"resourceType": "Blob", "resourceId": 2}),
				callTurn("long", "every__trigger-long-running-operation", map[string]any{"duration": 3600, "steps": 1}),
				callTurn("last", "every__echo", map[string]any{"message": "as before"}),
			)
			r.Await(0, "its tools", fake.Contains("tool/serverUpdated", `"name":"every"`, `"name":"get-tiny-image"`, `"name":"trigger-long-running-operation"`, `"instructions":"# Everything Server`))
			r.prompt(t, "sum", "The sum of 20 and 22 is 42.")
			begin := r.Mark()
			r.prompt(t, "image", "The image above is the MCP logo.")
			r.Await(begin, "the image", fake.Contains("chat/contentReceived", `"type":"image"`, `"mediaType":"image/png"`))
			r.prompt(t, "data", `"details":{"type":"jsonOutputs","jsons":["{\n  \"temperature\": 36`)
			r.prompt(t, "links", "[resource demo://resource/dynamic/")
			r.prompt(t, "text", "[resource demo://resource/dynamic/text/1]\\n")
			r.prompt(t, "blob", "[resource demo://resource/dynamic/blob/2", "not text]")

			begin = r.Mark()
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go on"})
			r.Await(begin, "the long call", fake.Contains("chat/contentReceived", `"toolCallRunning"`, `"id":"long"`))
			r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
			r.Await(begin, "the end", fake.Finished())
			r.prompt(t, "last", "as before")

			if runtime.GOOS != "linux" {
				return
			}
			if way == "stdio" && len(processesWithMark(mark)) == 0 {
				t.Error("the server's process was not found while it ran")
			}
			r.Call("shutdown", nil)
			r.Notify("exit", nil)
			r.Close()
			r.daemon.Close()
			if left := processesWithMark(mark); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// The reference servers for files and for a memory, together.
func TestRealFilesAndMemory(t *testing.T) {
	t.Parallel()
	node, modules := testkit.NodeTools(t, os.Getenv)
	dir := tempDir(t)
	if err := os.WriteFile(filepath.Join(dir, "a.png"), []byte("\x89PNG"), 0o600); err != nil {
		t.Fatal(err)
	}
	memory := filepath.Join(dir, "memory.jsonl")
	entity := map[string]any{"name": "eca", "entityType": "daemon", "observations": []any{"speaks MCP"}}
	r := realRig(
		t, dir, map[string]any{
			"files":  map[string]any{"command": node, "args": []any{testkit.NodeServer(modules, "filesystem"), dir}},
			"memory": map[string]any{"command": node, "args": []any{testkit.NodeServer(modules, "memory")}, "env": map[string]any{"MEMORY_FILE_PATH": memory}},
		},
		callTurn("write", "files__write_file", map[string]any{"path": filepath.Join(dir, "note.txt"), "content": "käse"}),
		callTurn("read", "files__read_text_file", map[string]any{"path": filepath.Join(dir, "note.txt")}),
		callTurn("list", "files__list_directory", map[string]any{"path": dir}),
		callTurn("media", "files__read_media_file", map[string]any{"path": filepath.Join(dir, "a.png")}),
		callTurn("learn", "memory__create_entities", map[string]any{"entities": []any{entity}}),
		callTurn("recall", "memory__read_graph", map[string]any{}),
	)
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go on"})
	r.Await(mark, "a question, since the server calls its tool destructive", fake.Contains("chat/contentReceived", `"toolCallRun"`, `"id":"write"`, `"manualApproval":true`))
	r.Notify("chat/toolCallApprove", map[string]any{"chatId": "c", "toolCallId": "write"})
	r.Await(mark, "the result of write", fake.Contains("chat/contentReceived", `"toolCalled"`, `"id":"write"`, `"error":null`, "Successfully wrote"))
	r.Await(mark, "the end", fake.Finished())
	if got := readFile(t, filepath.Join(dir, "note.txt")); got != "käse" {
		t.Errorf("the file: %q", got)
	}
	r.prompt(t, "read", "käse")
	r.prompt(t, "list", "note.txt")
	r.prompt(t, "media", "[image image/png, 4 bytes]")
	r.prompt(t, "learn", "speaks MCP")
	r.prompt(t, "recall", "speaks MCP")
	if got := readFile(t, memory); !strings.Contains(got, "speaks MCP") {
		t.Errorf("the memory: %s", got)
	}
}

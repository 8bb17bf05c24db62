package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// Servers made with the official SDKs are used as a user does: tools, requests during a call,
// progress, a stopped call, tools that are added later, tasks, resources and prompts.
func TestServersOfTheSDKs(t *testing.T) {
	t.Parallel()
	typescript, err := filepath.Abs("testdata/sdk/typescript.cjs")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(filepath.Dir(typescript), "python.py")
	t.Run("TypeScript", func(t *testing.T) {
		node, modules := testkit.NodeTools(t, os.Getenv, "@modelcontextprotocol/sdk")
		useSDKServer(t, func(port ...string) []string { return append([]string{node, typescript, modules}, port...) }, " on port ", true)
	})
	t.Run("Python", func(t *testing.T) {
		interpreter := os.Getenv("ECA_MCP_PYTHON")
		if interpreter == "" {
			t.Skip("NOT TESTED: ECA_MCP_PYTHON must name a Python that has what .ci/python/mcp.txt lists (pip install -r)")
		}
		useSDKServer(t, func(port ...string) []string { return append([]string{interpreter, python}, port...) }, "127.0.0.1:", false)
	})
}

// useSDKServer uses a server over stdio and over HTTP.
func useSDKServer(t *testing.T, argv func(port ...string) []string, ready string, hasTasks bool) {
	t.Helper()
	for _, transport := range []string{"stdio", "http"} {
		t.Run(transport, func(t *testing.T) {
			entry := map[string]any{"command": argv()[0], "args": argv()[1:]}
			if transport == "http" {
				entry = map[string]any{"url": testkit.OnPort(t, ready, func(port string) []string { return argv(port) }) + "/mcp"}
			}
			playSDKServer(t, transport, entry, hasTasks)
		})
	}
}

func playSDKServer(t *testing.T, transport string, entry map[string]any, hasTasks bool) {
	t.Helper()
	names := []string{"add", "form", "page", "think", "wait", "cancelled", "grow", "grown"}
	if hasTasks {
		names = append(names, "task")
	}
	turns := ""
	for _, name := range names {
		arguments, more := "{}", ""
		switch name {
		case "add":
			arguments = "{a: 20, b: 22}"
		case "grow": // adds a tool, which the same turn uses if the answer and the notification share a stream
			if transport == "http" {
				break
			}
			more = "      - calls: [{id: grown, tool: sdk__grown, arguments: {}}]\n"
		}
		turns += fmt.Sprintf("  - user: ^use %s$\n    steps:\n      - calls: [{id: %s, tool: sdk__%s, arguments: %s}]\n%s      - {text: Done.}\n", name, name, name, arguments, more)
	}
	turns += "  - {user: Think of a number, steps: [{text: Seven.}]}\n  - {user: Greet Ann, steps: [{text: Hello.}]}\n  - {user: ^read, steps: [{text: Done.}]}\n"
	r := newRig(t, options{
		model: "cassette: 1\nturns:\n" + turns, init: map[string]any{"capabilities": json.RawMessage(everything)},
		config: map[string]any{"mcpServers": map[string]any{"sdk": entry}, "toolCall": map[string]any{"approval": map[string]any{"byDefault": "allow"}}},
	})
	r.Answer("chat/askQuestion", func(_ context.Context, params json.RawMessage) (any, error) {
		for part, answer := range map[string]string{"colour": "blue", "pay.example": "Open it myself", "Think of a number": "Allow for this call"} {
			if strings.Contains(string(params), part) {
				return map[string]any{"answer": answer}, nil
			}
		}
		return map[string]any{"answer": nil, "cancelled": true}, nil
	})
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "the server", fake.Contains("tool/serverUpdated", `"name":"sdk","status":"running"`, `"name":"wait"`))

	use := func(name, result string) {
		t.Helper()
		mark := r.Mark()
		r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "use " + name})
		r.Await(mark, "the result of "+name, fake.Contains("chat/contentReceived", `"toolCalled"`, `"id":"`+name+`"`))
		r.Await(mark, "its text", fake.Contains("chat/contentReceived", `"toolCalled"`, `"id":"`+name+`"`, `"error":null`, result))
		r.Await(mark, "the end", fake.Finished())
	}
	use("add", "42")
	use("form", "accept blue")
	use("page", "page: accept")
	use("think", "thought: Seven.")

	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "use wait"})
	r.Await(mark, "its progress", fake.Contains("chat/contentReceived", "Calling tool: ", "on my way"))
	r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
	r.Await(mark, "the end", fake.Finished())
	use("cancelled", "the call was cancelled")

	mark = r.Mark()
	use("grow", "more")
	r.Await(mark, "the tool that came later", fake.Contains("tool/serverUpdated", `"name":"sdk","status":"running"`, `"name":"grown"`))
	if transport == "http" {
		use("grown", "I am new")
	} else {
		r.Await(mark, "its call", fake.Contains("chat/contentReceived", `"toolCalled"`, `"id":"grown"`, "I am new"))
	}
	if hasTasks {
		use("task", "the task is done")
	}
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/sdk:greet Ann"})
	r.Await(mark, "the answer to the prompt", fake.Content("text", "Hello."))
	r.Await(mark, "the end", fake.Finished())
	mark = r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "read", "contexts": []any{map[string]any{"type": "mcpResource", "server": "sdk", "uri": "note://one", "name": "note", "description": "", "mimeType": "text/plain"}}})
	r.Await(mark, "the end", fake.Finished())
	if bodies := r.bodies(); !strings.Contains(bodies[len(bodies)-1], "the note says plum") {
		t.Errorf("the model was sent %s", bodies[len(bodies)-1])
	}
}

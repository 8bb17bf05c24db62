package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// everything announces all requests that an editor can support.
const everything = `{"codeAssistant": {"chat": true, "editor": {"diagnostics": true, "definition": {}, "references": true}, "chatCapabilities": {"askQuestion": true}}}`

// newAskingRig is a rig whose model makes the given calls in one response, and then says Done. $WS
// in a call is the workspace, which has a file a.go.
func newAskingRig(t *testing.T, capabilities string, config map[string]any, calls ...string) *rig {
	t.Helper()
	root := tempDir(t)
	if err := os.WriteFile(filepath.Join(root, "a.go"), []byte("package a\nvar x = \"😀\" + name(name)\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tape := "cassette: 1\ndefault:\n  steps:\n    - calls:\n"
	for i, call := range calls {
		tool, args, _ := strings.Cut(strings.ReplaceAll(call, "$WS", root), " ")
		tape += fmt.Sprintf("        - {id: call_%d, tool: eca__%s, arguments: %s}\n", i+1, tool, args)
	}
	r := newRig(t, options{
		model: tape + "    - {text: Done.}\nturns: []\n", root: root, config: config,
		init: map[string]any{"capabilities": json.RawMessage(capabilities)},
	})
	r.Await(0, "the start", fake.Ready())
	return r
}

// ask runs a turn to its end and returns the result of the last call.
func (r *rig) ask(t *testing.T) (output string, failed bool) {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
	r.Await(mark, "the end", fake.Finished())
	var c struct {
		Content struct {
			Type    string
			Error   bool
			Outputs []struct{ Text string }
		}
	}
	for _, m := range r.Since(mark) {
		if strings.Contains(string(m.Params), `"type":"toolCalled"`) {
			if err := json.Unmarshal(m.Params, &c); err != nil || len(c.Content.Outputs) != 1 {
				t.Fatalf("%s: %v", m.Params, err)
			}
		}
	}
	if c.Content.Type == "" {
		t.Fatalf("no call ended: %v", r.Since(mark))
	}
	return strings.ReplaceAll(c.Content.Outputs[0].Text, r.root, "$WS"), c.Content.Error
}

// requestParams returns the parameters of the daemon's requests of a method.
func (r *rig) requestParams(method string) (params []string) {
	for _, m := range r.Since(0) {
		if m.Method == method {
			params = append(params, strings.ReplaceAll(string(m.Params), r.root, "$WS"))
		}
	}
	return params
}

// result answers with a piece of JSON; it replaces $WS by the workspace.
func (r *rig) result(text string) fake.Answer {
	return func(context.Context, json.RawMessage) (any, error) {
		return json.RawMessage(strings.ReplaceAll(text, "$WS", r.root)), nil
	}
}

// neverAnswer acts as a client that does not answer.
func neverAnswer(ctx context.Context, _ json.RawMessage) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// Covers: editor/getDiagnostics, editor/getDefinition, editor/getReferences
func TestEditorTools(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, call, method, answer, params, output string }{
		{
			"diagnostics of a file", `editor_diagnostics {path: $WS/a.go}`, "editor/getDiagnostics",
			`{"diagnostics":[
				{"uri":"file://$WS/a.go","severity":"information","source":null,"range":{"start":{"line":0,"character":0},"end":{"line":0,"character":4}},"code":null,"message":"one\n  two"},
				{"uri":"file://$WS/a.go","severity":"Warning","source":"lint","range":{"start":{"line":1,"character":4}},"code":7,"message":"w"},
				7,
				{"uri":"file://$WS/a%20b.go","severity":1,"source":"go","range":"here","code":{"value":"E1","target":"x"},"message":"e"},
				{"uri":"file://$WS/a.go","message":"odd"}]}`,
			`{"uri":"file://$WS/a.go"}`,
			"$WS/a b.go: error: e [go E1]\n$WS/a.go:2:5: warning: w [lint 7]\n$WS/a.go:1:1: info: one two\n$WS/a.go: unknown: odd",
		},
		{"all diagnostics, none", `editor_diagnostics {}`, "editor/getDiagnostics", `{"diagnostics":null}`, `{}`, "The editor reports no diagnostics."},
		{
			"diagnostics of a folder", `editor_diagnostics {path: $WS}`, "editor/getDiagnostics",
			`{"diagnostics":[{"uri":"file://$WS/a.go","severity":"hint","message":"in"},{"uri":"file:///elsewhere","severity":"error","message":"out"}]}`,
			`{}`, "$WS/a.go: hint: in",
		},
		{
			"definition", `editor_definition {path: $WS/a.go, line: 2, symbol: name}`, "editor/getDefinition",
			`{"status":"success","locations":[{"uri":"file://$WS/b.go","range":{"start":{"line":3,"character":6}}},{"uri":"file://$WS/a.go","range":{"start":{"line":2,"character":5}}},{"uri":"file://$WS/c.go"},null]}`,
			`{"uri":"file://$WS/a.go","position":{"line":2,"character":16}}`, "$WS/b.go:3:6\n$WS/a.go:2:5: var x = \"😀\" + name(name)",
		},
		{
			"references", `editor_references {path: $WS/a.go, line: 2, symbol: name, character: 22, include_declaration: true}`, "editor/getReferences",
			`{"locations":[{"uri":"file://$WS/b.go","range":{"start":{"line":"3","character":6}}}]}`,
			`{"uri":"file://$WS/a.go","position":{"line":2,"character":21},"includeDeclaration":true}`, "$WS/b.go:3:6",
		},
		{
			"nothing found", `editor_references {path: $WS/a.go, line: 2, symbol: x}`, "editor/getReferences", `{"status":"success","locations":{}}`,
			`{"uri":"file://$WS/a.go","position":{"line":2,"character":5},"includeDeclaration":false}`, `The editor found nothing for "x" at $WS/a.go:2:5.`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newAskingRig(t, everything, nil, c.call)
			r.Answer(c.method, r.result(c.answer))
			if output, failed := r.ask(t); failed || output != c.output {
				t.Errorf("failed %v:\n%s\nwant\n%s", failed, output, c.output)
			}
			if params := r.requestParams(c.method); len(params) != 1 || params[0] != c.params {
				t.Errorf("asked %v, want %s", params, c.params)
			}
		})
	}
}

// If a client gives no usable answer, the model gets the reason, and the turn continues.
func TestEditorHasNoAnswer(t *testing.T) {
	t.Parallel()
	refuse := func(code int, text string) fake.Answer {
		return func(context.Context, json.RawMessage) (any, error) { return nil, jsonrpc.Errorf(code, "%s", text) }
	}
	result := func(text string) fake.Answer {
		return func(context.Context, json.RawMessage) (any, error) { return json.RawMessage(text), nil }
	}
	for name, c := range map[string]struct {
		answer fake.Answer // nil: the client does not know the request
		want   string
		limit  float64 // lspTimeoutSeconds; 0: none, so that a slow machine does not reach it
	}{
		"unknown method": {answer: nil, want: "the client does not know editor/get"},
		"error":          {answer: refuse(-32603, "no project"), want: "the client failed: no project"},
		"error result":   {answer: result(`{"status":"error","message":"void-variable x"}`), want: "void-variable x"},
		"bare error":     {answer: result(`{"status":"error"}`), want: "the client failed"},
		"no server":      {answer: result(`{"status":"no-server"}`), want: "no language server"},
		"null":           {answer: result(`null`), want: "gave no answer"},
		"text":           {answer: result(`"unknown method"`), want: "cannot read"},
		"list":           {answer: result(`[1]`), want: "cannot read"},
		"never":          {answer: neverAnswer, want: "did not answer within 100ms", limit: 0.1},
	} {
		for _, call := range []string{`editor_diagnostics {}`, `editor_references {path: $WS/a.go, line: 1, symbol: a}`} {
			t.Run(name+" to "+call[:12], func(t *testing.T) {
				t.Parallel()
				r := newAskingRig(t, everything, map[string]any{"lspTimeoutSeconds": c.limit}, call)
				ended := make(chan struct{})
				if c.answer != nil {
					for _, method := range []string{"editor/getDiagnostics", "editor/getReferences"} {
						r.Answer(method, func(ctx context.Context, p json.RawMessage) (any, error) {
							defer close(ended)
							return c.answer(ctx, p)
						})
					}
				}
				output, failed := r.ask(t)
				begin, end := "not available: ", ""
				if strings.HasPrefix(call, "editor_references") { // the reference's text
					begin, end = "Editor failed to find references: ", ". Use eca__grep as fallback."
				}
				if said := strings.TrimSpace(output); !failed || !strings.HasPrefix(said, begin) || !strings.HasSuffix(said, end) || !strings.Contains(said, c.want) {
					t.Errorf("failed %v: %s, want %s", failed, output, c.want)
				}
				// A request without an answer ends too, because eca cancels it. If its time limit had
				// passed before it was sent, the client never got it.
				if len(r.requestParams("editor/getDiagnostics"))+len(r.requestParams("editor/getReferences")) > 0 && c.answer != nil {
					<-ended
				}
			})
		}
	}
}

// A client whose language server is starting is asked again. (tools/editor tests that this ends;
// the clock is simulated there.)
func TestEditorIsStarting(t *testing.T) {
	needs.Long(t)
	r := newAskingRig(t, everything, map[string]any{"lspTimeoutSeconds": 0}, `editor_diagnostics {}`)
	var asked atomic.Int32
	r.Answer("editor/getDiagnostics", func(context.Context, json.RawMessage) (any, error) {
		if asked.Add(1) == 1 {
			return json.RawMessage(`{"status":"starting"}`), nil
		}
		return json.RawMessage(`{"status":"success","diagnostics":[]}`), nil
	})
	if output, failed := r.ask(t); failed || output != "The editor reports no diagnostics." || asked.Load() != 2 {
		t.Errorf("failed %v after asking %d times: %s", failed, asked.Load(), output)
	}
}

// Covers: chat/askQuestion
func TestAnswersToQuestions(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer, want string
		failed       bool
	}{
		"answered":     {`{"answer":"blue","cancelled":false}`, "The user answered: blue", false},
		"a number":     {`{"answer":3}`, "The user answered: 3", false},
		"cancelled":    {`{"answer":null,"cancelled":true}`, "The user closed the question", false},
		"half":         {`{"answer":"bl","cancelled":true}`, "The user closed the question", false},
		"nothing":      {`{}`, "The user closed the question", false},
		"-32800":       {"", "The user closed the question", false},
		"-32601":       {"", "the client does not know chat/askQuestion", true},
		"garbage":      {`[1]`, "cannot read", true},
		"error result": {`{"status":"error","message":"Unknown method"}`, "Unknown method", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAskingRig(t, everything, nil, `ask_user {question: "Which?", allowFreeform: false}`)
			switch {
			case c.answer != "":
				r.Answer("chat/askQuestion", r.result(c.answer))
			case name == "-32800":
				r.Answer("chat/askQuestion", func(context.Context, json.RawMessage) (any, error) { return nil, context.Canceled })
			}
			if output, failed := r.ask(t); failed != c.failed || !strings.Contains(output, c.want) {
				t.Errorf("failed %v: %s, want %s", failed, output, c.want)
			}
			// A question without options can only be answered with free text.
			if params := r.requestParams("chat/askQuestion"); len(params) != 1 || !strings.Contains(params[0], `"options":[],"toolCallId":"call_1","allowFreeform":true`) {
				t.Errorf("asked %v", params)
			}
		})
	}
}

// A client only gets requests that it announced. For the others, there are no tools.
func TestCapabilities(t *testing.T) {
	t.Parallel()
	all := []string{"ask_user", "editor_definition", "editor_diagnostics", "editor_references"}
	for announced, want := range map[string][]string{
		`{}`: nil, `null`: nil, `"all"`: nil, `{"chat":{}}`: nil,
		`{"codeAssistant":{"chat":true}}`:                               nil,
		`{"codeAssistant":{"chat":true,"editor":{"diagnostics":true}}}`: {"editor_diagnostics"}, // a seed client
		`{"code-assistant":{"chat-capabilities":{"ask-question":{}}}}`:  {"ask_user"},
		`{"chat":{},"editor":{"references":1,"definition":false}}`:      {"editor_references"},
		`{"codeAssistant":{"editor":true,"chatCapabilities":[]}}`:       nil,
		everything: all,
		`{"codeAssistant":{"editor":{"diagnostics":null,"definition":0,"references":""},"rewrite":1}}`: nil,
	} {
		t.Run(announced, func(t *testing.T) {
			t.Parallel()
			r := newAskingRig(t, announced, nil, `editor_diagnostics {}`)
			r.Answer("editor/getDiagnostics", r.result(`{"diagnostics":[]}`))
			output, failed := r.ask(t)
			if allowed := slices.Contains(want, "editor_diagnostics"); failed == allowed {
				t.Errorf("failed %v: %s", failed, output)
			} else if asked := r.requestParams("editor/getDiagnostics"); allowed != (len(asked) > 0) {
				t.Errorf("asked %v", asked)
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			var body struct{ Tools []struct{ Name string } }
			if err := json.Unmarshal(r.requests[0].body, &body); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tool := range body.Tools {
				if name := strings.TrimPrefix(tool.Name, "eca__"); name == "ask_user" || strings.HasPrefix(name, "editor_") {
					got = append(got, name)
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("the model is offered %v, want %v", got, want)
			}
		})
	}
}

func TestEditorNavDisabled(t *testing.T) {
	t.Parallel()
	r := newAskingRig(t, everything, map[string]any{"toolCall": map[string]any{"editorNav": map[string]any{"enabled": false}}}, `editor_definition {}`)
	if output, failed := r.ask(t); !failed || !strings.Contains(output, "not found") {
		t.Errorf("failed %v: %s", failed, output)
	}
}

// The end of a turn cancels its open requests: the client gets $/cancelRequest with their id.
//
// Covers: $/cancelRequest
func TestStopTakesRequestsBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, call, progress string }{
		{"chat/askQuestion", `ask_user {question: "Which?"}`, "Waiting answer"},
		{"editor/getDefinition", `editor_definition {path: $WS/a.go, line: 1, symbol: a}`, "Calling tool"},
	} {
		t.Run(c.method, func(t *testing.T) {
			r := newAskingRig(t, everything, nil, c.call)
			asked, cancelled := make(chan struct{}, 1), make(chan struct{}, 1)
			r.Answer(c.method, func(ctx context.Context, _ json.RawMessage) (any, error) {
				asked <- struct{}{}
				<-ctx.Done()
				cancelled <- struct{}{}
				return nil, ctx.Err()
			})
			for range 2 {
				mark := r.Mark()
				r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
				<-asked
				r.Await(mark, "progress", fake.Content("progress", c.progress))
				r.Notify("chat/promptStop", map[string]any{"chatId": "c"})
				<-cancelled
				r.Await(mark, "the end", fake.Finished())
				if talk := r.Conversation(); strings.Count(talk, `"method":"$/cancelRequest"`) != strings.Count(talk, `"method":"`+c.method+`"`) {
					t.Errorf("not every request was cancelled:\n%s", talk)
				}
				at, order := 0, []string{c.method, `"status":"stopping"`, `"status":"idle"`, `"state":"finished"`}
				for _, m := range r.Since(mark) {
					if at < len(order) && strings.Contains(m.String(), order[at]) {
						at++
					}
					if strings.Contains(m.String(), `"type":"toolCalled"`) {
						t.Errorf("the call that was stopped has a result: %s", m)
					}
				}
				if at < len(order) {
					t.Errorf("no %s in its place in\n%v", order[at], r.Since(mark))
				}
			}
			// A new prompt replaces the turn and its question.
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go"})
			<-asked
			r.Answer(c.method, r.result(`{"answer":"x"}`))
			mark := r.Mark()
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "other"})
			<-cancelled
			r.Await(mark, "the answer", fake.Content("text", "Done."))
		})
	}
}

// Clients show one question of a chat at a time.
func TestTwoQuestions(t *testing.T) {
	t.Parallel()
	r := newAskingRig(t, everything, nil, `ask_user {question: "One?"}`, `ask_user {question: "Two?"}`)
	var open, most atomic.Int32
	r.Answer("chat/askQuestion", func(context.Context, json.RawMessage) (any, error) {
		most.Store(max(most.Load(), open.Add(1)))
		defer open.Add(-1)
		r.Await(0, "both calls", fake.Times(2, "chat/contentReceived", `"toolCallRunning"`))
		_, _ = r.TryCall("unknown", nil) // in this time, another question would arrive
		return map[string]any{"answer": "yes"}, nil
	})
	if output, failed := r.ask(t); failed || !strings.Contains(output, "yes") {
		t.Error(output)
	}
	if got := r.requestParams("chat/askQuestion"); len(got) != 2 || most.Load() != 1 {
		t.Errorf("%d at once of %v", most.Load(), got)
	}
}

// A client disconnects with an open request: the daemon ends, and another one can continue the
// chat.
func TestClientVanishes(t *testing.T) {
	t.Parallel()
	state, root := tempDir(t), tempDir(t)
	for _, c := range []struct{ method, call string }{
		{"chat/askQuestion", `ask_user {question: "Which?"}`}, {"editor/getDiagnostics", `editor_diagnostics {}`},
	} {
		t.Run(c.method, func(t *testing.T) { // the end of the subtest closes the pipes and waits for the daemon
			tape := "cassette: 1\ndefault:\n  steps:\n    - calls:\n        - {id: call_1, tool: eca__" + strings.Replace(c.call, " ", ", arguments: ", 1) + "}\nturns: []\n"
			r := newRig(t, options{model: tape, state: state, root: root, init: map[string]any{"capabilities": json.RawMessage(everything)}})
			asked := make(chan struct{})
			r.Answer(c.method, func(ctx context.Context, _ json.RawMessage) (any, error) {
				close(asked)
				<-ctx.Done()
				return nil, ctx.Err()
			})
			r.Call("chat/prompt", map[string]any{"chatId": c.method, "message": "go"})
			<-asked
		})
		r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps: [{text: Done.}]\nturns: []\n", state: state, root: root})
		r.Call("chat/prompt", map[string]any{"chatId": c.method, "message": "again"})
		r.Await(0, "the answer", fake.Content("text", "Done."))
		r.mu.Lock()
		body := string(r.requests[0].body)
		r.mu.Unlock()
		if strings.Count(body, `"function_call_output"`) != 1 {
			t.Errorf("the call has no result: %s", body)
		}
	}
}

package server_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// Users and tools of the reference server rely on the behaviour that the tests in this file check.

// refuseImages answers with 400 and a text if a request has images.
func refuseImages(text string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, _ := io.ReadAll(req.Body)
			if strings.Contains(string(body), onePixel) {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":{"type":"invalid_request_error","message":` + quoted(text) + `}}`))
				return
			}
			req.Body = io.NopCloser(strings.NewReader(string(body)))
			next.ServeHTTP(w, req)
		})
	}
}

func quoted(s string) string {
	raw, _ := json.Marshal(s)
	return string(raw)
}

// A picture that the provider refuses, with any message, does not block the chat: the user is
// notified, and this answer and the next come without the picture.
func TestRefusedImageDoesNotBlock(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"below the minimum": "messages.2.content.1.image: Image has 1 total pixels (1x1), which is below the minimum of 512 pixels.",
		"too small":         "The image is too small. Each side must be at least 8 pixels.",
		"too large":         "image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes",
		"cannot be decoded": "Failed to decode image data",
		"invalid base64":    "Invalid base64 data in source.data",
		"unsupported type":  "source.media_type: Input should be 'image/jpeg' or 'image/gif'",
		"other words":       "Unsupported picture",
		"nobody knows why":  "Request contains an invalid argument.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps: [{text: \"Seen nothing.\"}]\nturns: []\n", wrap: refuseImages(text)})
			r.Await(0, "the start", fake.Ready())
			r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "look", "contexts": []any{map[string]any{"type": "image", "mediaType": "image/png", "base64": onePixel}}})
			r.Await(0, "the end", fake.Finished())
			client := allHeard(t, r.Since(0))
			for _, want := range []string{"rejected an image", "Seen nothing.", `"reason":"done"`} {
				if !strings.Contains(client, want) {
					t.Errorf("the client did not hear %q:\n%s", want, client)
				}
			}
			if body := lastRequest(r); !strings.Contains(body, "[image removed: rejected by the LLM provider]") {
				t.Errorf("the model was sent %s", body)
			}
			if got := ask(t, r, "c", "and now"); strings.Contains(got, "400") {
				t.Errorf("the next prompt: %s", got)
			}
		})
	}
}

// If a request is refused for another reason than its picture, it fails, and the picture is sent
// again with the next one.
func TestImageStaysAfterOtherRefusal(t *testing.T) {
	t.Parallel()
	var bad atomic.Bool
	bad.Store(true)
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps: [{text: \"A dot.\"}]\nturns: []\n", wrap: func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if bad.Load() {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":{"message":"no such parameter: effort"}}`))
				return
			}
			next.ServeHTTP(w, req)
		})
	}})
	r.Await(0, "the start", fake.Ready())
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "look", "contexts": []any{map[string]any{"type": "image", "mediaType": "image/png", "base64": onePixel}}})
	r.Await(0, "the end", fake.Content("progress", `"reason":"failed"`))
	bad.Store(false)
	ask(t, r, "c", "again")
	if body := lastRequest(r); !strings.Contains(body, onePixel) {
		t.Errorf("the image was left out: %s", body)
	}
}

// chunks streams documents like a server of Chat Completions.
func chunks(w http.ResponseWriter, docs ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, d := range docs {
		fmt.Fprintf(w, "data: %s\n\n", d)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// With a custom URL, Google gets Chat Completions requests: reasoning is between tags, and the
// signature of a call is sent back with it.
func TestGoogleBehindCompatibleURL(t *testing.T) {
	t.Parallel()
	var second string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		switch {
		case req.URL.Path != "/proxy/chat/completions":
			w.WriteHeader(http.StatusNotFound)
		case strings.Contains(string(body), `"role":"tool"`):
			second = string(body)
			chunks(w, `{"choices":[{"delta":{"content":"Two files."}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`)
		default:
			chunks(w, `{"choices":[{"delta":{"content":"<thought>I look"}}]}`, `{"choices":[{"delta":{"content":"</thought>Looking."}}]}`,
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"g1","function":{"name":"eca__directory_tree","arguments":"{\"path\":\"/\",\"max_depth\":1}"},"extra_content":{"google":{"thought_signature":"sig-77"}}}]}}]}`,
				`{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`)
		}
	}))
	defer srv.Close()
	r := newRig(t, options{config: map[string]any{
		"providers": map[string]any{"google": map[string]any{"url": srv.URL + "/proxy", "key": "k", "fetchModels": false}},
		"toolCall":  map[string]any{"approval": map[string]any{"byDefault": "allow"}},
	}})
	r.Await(0, "the start", fake.Ready())
	r.Call("chat/prompt", map[string]any{"chatId": "c", "model": "google/gemini-2.5-pro", "message": "hi", "trust": true})
	r.Await(0, "the reasoning", fake.Content("reasonText", "I look"))
	r.Await(0, "the end", fake.Finished())
	if !strings.Contains(allHeard(t, r.Since(0)), "Two files.") || !strings.Contains(second, `"extra_content":{"google":{"thought_signature":"sig-77"}}`) {
		t.Errorf("the second request: %s", second)
	}
}

// A proxy for Ollama works, although its list of models has only the key "model", its stream consists
// of events, and nothing marks the end of the answer.
func TestOllamaProxyWithDeviations(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch req.URL.Path {
		case "/api/tags":
			_, _ = w.Write([]byte(`{"models":[{"model":"tiny:1b"}]}`))
		case "/api/show":
			_, _ = w.Write([]byte(`{"capabilities":["tools"]}`))
		case "/api/chat":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"message\":{\"content\":\"Hi \"}}\n\ndata: {\"message\":{\"content\":\"there\"}}\n\n")
		}
	}))
	defer srv.Close()
	r := newRig(t, options{init: map[string]any{"initializationOptions": map[string]any{"env": "test"}}, env: map[string]string{"OLLAMA_API_URL": srv.URL}})
	r.Await(0, "the start", fake.Ready())
	for _, m := range r.Since(0) {
		if m.Method == "config/updated" {
			if !strings.Contains(m.String(), "ollama/tiny:1b") {
				t.Errorf("the first list of models: %s", m)
			}
			break
		}
	}
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "model": "ollama/tiny:1b", "message": "hi"})
	r.Await(mark, "the end", fake.Content("progress", `"reason":"done"`))
	heard := allHeard(t, r.Since(mark))
	if !strings.Contains(heard, "Hi there") || !strings.Contains(heard, "did not mark the answer as complete") {
		t.Errorf("heard %s", heard)
	}
}

// A local server without a key only has the models that it listed. Copilot has its default model as
// soon as it can be reached.
func TestModelsThatAreOffered(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	r := newRig(t, options{config: map[string]any{"providers": map[string]any{
		"anthropic": map[string]any{"url": srv.URL}, "github-copilot": map[string]any{"url": srv.URL, "key": "k"},
	}}})
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "Copilot's model", fake.Contains("config/updated", "github-copilot/gpt-5.5"))
	if heard := allHeard(t, r.Since(0)); strings.Contains(heard, "anthropic/claude") {
		t.Errorf("models of a local server that listed none: %s", heard)
	}
}

// Requests are served after initialize, even before initialized.
func TestServedBeforeInitialized(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{closed: true})
	if _, err := r.TryCall("chat/queryCommands", map[string]any{"query": "doc"}); err == nil {
		t.Error("a request before initialize was answered without an error")
	}
	r.Call("initialize", map[string]any{"workspaceFolders": []any{map[string]any{"uri": "file://" + r.root, "name": "ws"}}})
	for _, method := range []string{"chat/queryCommands", "chat/queryFiles", "chat/queryContext"} {
		got := string(r.Call(method, map[string]any{"query": ""}))
		if !strings.Contains(got, `"chatId":null`) {
			t.Errorf("%s without a chat: %.200s", method, got)
		}
		if got := string(r.Call(method, map[string]any{"query": "", "chatId": "c-9"})); !strings.Contains(got, `"chatId":"c-9"`) {
			t.Errorf("%s of a chat: %.200s", method, got)
		}
	}
}

// Test suites get exactly the commands of the reference server, in its order.
func TestCommandsOfReference(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{init: map[string]any{"initializationOptions": map[string]any{"env": "test"}}})
	r.Await(0, "the start", fake.Ready())
	for query, want := range map[string]string{
		"":   "init login/provider-id model/full-model skills skill-create/name/prompt costs context compact/additional-input fork resume/chat-id export/filepath import/filepath remote config doctor debug-chat/filepath repo-map-show rules prompt-show/optional-prompt sync-system-prompt subagents plugins plugin-install/plugin plugin-uninstall/plugin hooks eca-info",
		"co": "login/provider-id skill-create/name/prompt costs context compact/additional-input remote config subagents plugins",
	} {
		var res struct {
			Commands []struct {
				Name      string
				Arguments []struct{ Name string }
			}
		}
		if err := json.Unmarshal(r.Call("chat/queryCommands", map[string]any{"query": query}), &res); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, c := range res.Commands {
			for _, a := range c.Arguments {
				c.Name += "/" + a.Name
			}
			got = append(got, c.Name)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%q:\ngot  %s\nwant %s", query, g, want)
		}
	}
	if got := ask(t, r, "c", "/prompt-show"); !strings.Contains(got, "# Instructions (System prompt)") || !strings.Contains(got, "Tool schemas are sent separately") {
		t.Errorf("/prompt-show: %s", got)
	}
	ask(t, r, "c", "/eca-info")
	if body := lastRequest(r); !strings.Contains(body, "Workspace folders: "+r.root) {
		t.Errorf("/eca-info: %s", body)
	}
}

// A server that the client names in its options gets its name in camel case, also in rules about
// its tools. A server of a file keeps its name.
func TestMCPNamesOfClient(t *testing.T) {
	t.Parallel()
	server := newMCPServer(t)
	r := newRig(t, options{
		model:  "cassette: 1\nturns:\n  - steps:\n      - calls: [{id: c1, tool: myFiles__look, arguments: {}}]\n      - {text: \"Done.\"}\n",
		config: map[string]any{"mcpServers": map[string]any{"of-a-file": map[string]any{"url": server.URL}}},
		init: map[string]any{"initializationOptions": map[string]any{
			"mcpServers":    map[string]any{"my-files": map[string]any{"url": server.URL}},
			"disabledTools": []any{"my-files__hidden"},
			"toolCall":      map[string]any{"approval": map[string]any{"deny": map[string]any{"my-files__look": map[string]any{}}}},
		}},
	})
	r.Await(0, "the client's", fake.Contains("tool/serverUpdated", `"name":"myFiles","status":"running"`))
	r.Await(0, "the file's", fake.Contains("tool/serverUpdated", `"name":"of-a-file","status":"running"`))
	r.Await(0, "the start", fake.Ready())
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "hi"})
	r.Await(mark, "the end", fake.Finished())
	if got := r.offered(); strings.Contains(got, "myFiles__hidden") || strings.Contains(got, "myFiles__look") || !strings.Contains(got, "myFiles__long") || !strings.Contains(got, "of-a-file__look") {
		t.Errorf("offered: %s", got)
	}
	if body := lastRequest(r); !strings.Contains(body, `mcp-server-instruction name=\"myFiles\"`) {
		t.Errorf("the instructions: %s", body)
	}
}

// With env "test", a model compacts by calling a tool; there is no second request.
func TestCompactByTool(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{
		model:  "cassette: 1\nturns:\n  - {user: '^one$', steps: [{text: \"First.\"}]}\n  - user: 'SHORTER'\n    steps:\n      - calls: [{id: s1, tool: eca__compact_chat, arguments: {summary: \"They counted.\"}}]\n  - {user: 'two$', steps: [{text: \"Second.\"}]}\n",
		config: map[string]any{"prompts": map[string]any{"compact": "SHORTER"}},
		init:   map[string]any{"initializationOptions": map[string]any{"env": "test"}},
	})
	r.Await(0, "the start", fake.Ready())
	ask(t, r, "c", "one")
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/compact"})
	r.Await(mark, "the call", fake.Content("toolCalled", `"name":"compact_chat"`, `"error":false`, "Compacted successfully!"))
	r.Await(mark, "the end", fake.Finished())
	r.Await(mark, "the notice", fake.Content("text", `"Compacted chat"`))
	ask(t, r, "c", "two")
	if body := lastRequest(r); !strings.Contains(body, "They counted.") || strings.Contains(body, "First.") {
		t.Errorf("the model was sent %s", body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) != 3 {
		t.Errorf("%d requests, want 3", len(r.requests))
	}
}

// A hook's message when it stops a turn is shown as a single message.
func TestHookStopsTurnInOneMessage(t *testing.T) {
	t.Parallel()
	h := runHooks(t, treeModel, map[string]any{"gate": sh("preRequest", say(`{"continue":false,"stopReason":"Not today"}`))}, nil)
	h.check(t, hookOutcome{client: []string{`"text":"Turn stopped by hook 'gate': Not today"`}})
}

// A completion fails at once if the provider cannot be reached.
func TestCompletionWithoutProvider(t *testing.T) {
	t.Parallel()
	r := newInlineRig(t, options{config: map[string]any{"providers": map[string]any{"mock2": map[string]any{
		"api": "openai-chat", "url": noServer, "key": "k", "fetchModels": false, "models": map[string]any{"c": map[string]any{}},
		"retry": map[string]any{"baseDelayMs": 3_600_000, "maxRetries": 10},
	}}, "completion": map[string]any{"model": "mock2/c"}}})
	_, err := r.TryCall("completion/inline", completionParams(nil))
	if err == nil || strings.Contains(err.Error(), "gave no completion within") {
		t.Fatalf("the completion did not fail, or failed only at its own time limit: %v", err)
	}
	r.AwaitResponse("the warning", `"type":"warning"`)
}

// The worktrees of a repository share their chats.
func TestChatsOfWorktrees(t *testing.T) {
	t.Parallel()
	git := needs.Git(t)
	dir, state := tempDir(t), tempDir(t)
	repo, linked := filepath.Join(dir, "repo"), filepath.Join(dir, "linked")
	for _, args := range [][]string{
		{"init", "-q", repo},
		{"-C", repo, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x"},
		{"-C", repo, "worktree", "add", "-q", linked},
	} {
		if out, err := exec.Command(git, args...).CombinedOutput(); err != nil {
			t.Fatalf("git %q: %v: %s", args, err, out)
		}
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o700); err != nil {
		t.Fatal(err)
	}
	open := func(root string) *rig {
		r := newRig(t, options{root: root, state: state, model: "cassette: 1\ndefault:\n  steps: [{text: \"Yes.\"}]\nturns: []\n"})
		r.Await(0, "the start", fake.Ready())
		return r
	}
	ask(t, open(repo), "in-repo", "one")
	r := open(linked)
	ask(t, r, "in-linked", "two")
	for root, want := range map[string]int{repo: 2, linked: 2, other: 0} {
		r := open(root)
		list := string(r.Call("chat/list", map[string]any{}))
		if got := strings.Count(list, `"id":"in-`); got != want {
			t.Errorf("%s: %d chats, want %d: %s", filepath.Base(root), got, want, list)
		}
	}
	if got := ask(t, r, "fresh", "/resume in-repo"); !strings.Contains(got, "Resumed") {
		t.Errorf("/resume in a worktree: %s", got)
	}
}

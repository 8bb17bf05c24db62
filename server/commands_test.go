package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// ownTexts returns eca's own texts in a chat since a mark.
func ownTexts(t *testing.T, r *rig, mark int) string {
	t.Helper()
	var b strings.Builder
	for _, m := range r.Since(mark) {
		var p struct {
			Role    string
			Content struct{ Type, Text string }
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Role != "user" && p.Content.Type == "text" {
			b.WriteString(p.Content.Text)
		}
	}
	return b.String()
}

// ask prompts a chat, waits for the end of the turn and returns eca's own texts.
func ask(t *testing.T, r *rig, chat, message string) string {
	t.Helper()
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": chat, "message": message})
	r.Await(mark, message, fake.Finished())
	return ownTexts(t, r, mark)
}

func TestQueryCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{})
	names := func(query any) string {
		t.Helper()
		raw := r.Call("chat/queryCommands", map[string]any{"chatId": "c", "query": query})
		var res struct {
			ChatID   string
			Commands []struct {
				Name, Description, Type string
				Arguments               *[]struct{ Name string }
			}
		}
		if err := json.Unmarshal(raw, &res); err != nil || res.ChatID != "c" || res.Commands == nil {
			t.Fatalf("%v: %s", err, raw)
		}
		out := []string{}
		for _, c := range res.Commands {
			if c.Arguments == nil && c.Type != "skill" || c.Type != "native" && c.Name != "eca-info" || c.Description == "" {
				t.Errorf("%+v", c)
			}
			out = append(out, c.Name)
		}
		return strings.Join(out, " ")
	}
	all := "init login model skills skill-create costs context compact fork resume export import remote config doctor debug-chat repo-map-show rules prompt-show sync-system-prompt subagents plugins plugin-install plugin-uninstall hooks eca-info rename plugin-update pin search budget help"
	for query, want := range map[any]string{nil: all, "": all, " EXP": "export import", "/costs": "costs", "agents.MD": "init", "xyz": ""} {
		if got := names(query); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%v: %s, want %s", query, got, want)
		}
	}
}

// The list of chats has pages and begins with the newest; numbers stay the same when chats are
// added.
func TestResumeListsTheNewestChatsFirst(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps: [{text: \"An answer.\"}]\nturns: []\n"})
	for i := range 22 {
		ask(t, r, fmt.Sprintf("c-%d", i+1), fmt.Sprintf("prompt %d", i+1))
	}
	first := ask(t, r, "c-22", "/resume")
	newest, older := strings.Index(first, "21. **"), strings.Index(first, "20. **")
	if newest < 0 || older < newest || !strings.Contains(first, " 2. **") || strings.Contains(first, " 1. **") || !strings.Contains(first, "`/resume page 2`") {
		t.Errorf("the first page: %s", first)
	}
	if second := ask(t, r, "c-22", "/resume page 2"); !strings.Contains(second, "1. **") || strings.Contains(second, "2. **") {
		t.Errorf("the second page: %s", second)
	}
	if third := ask(t, r, "c-22", "/resume page 3"); !strings.Contains(third, "there is no page 3") {
		t.Errorf("a page that does not exist: %s", third)
	}
}

// /resume takes over a copy: the other chat stays, the messages of this one are kept, and the
// client gets title and model. The client gets the end of the turn regardless of the events that it
// has seen.
func TestResume(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{
		model:  "cassette: 1\ndefault:\n  steps: [{text: \"An answer.\"}]\nturns: []\n",
		config: map[string]any{"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"other": map[string]any{}}}}},
	})
	ask(t, r, "c-1", "one")
	ask(t, r, "c-1", "/rename The first")
	ask(t, r, "c-1", "/model other")
	mark := r.Mark()
	r.Call("chat/addFlag", map[string]any{"chatId": "c-1", "contentId": contentID(t, r, "one"), "text": "here"})
	r.Await(mark, "the flag", fake.Content("flag"))
	ask(t, r, "c-2", "two")

	if got := ask(t, r, "c-2", "/resume"); !strings.Contains(got, "1. **The first**, just now") || !strings.Contains(got, "`c-1`, flags: \"here\"") || strings.Contains(got, "c-2") {
		t.Errorf("list: %s", got)
	}
	if got := ask(t, r, "c-2", "/resum"); !strings.Contains(got, "did you mean `/resume`?") || strings.Contains(got, "An answer.") {
		t.Errorf("a mistyped command: %s", got)
	}
	if got := ask(t, r, "c-2", "/help"); !strings.Contains(got, "- `/resume [chat-id]`: ") || strings.Contains(got, "An answer.") {
		t.Errorf("help: %s", got)
	}
	if got := ask(t, r, "c-2", "/resume 2"); !strings.Contains(got, "there is no chat 2") {
		t.Errorf("no such chat: %s", got)
	}
	for round := range 3 {
		chat := "c-2"
		if round > 0 {
			chat = fmt.Sprintf("new-%d", round)
		}
		mark = r.Mark()
		got := ask(t, r, chat, "/resume c-1")
		if !strings.Contains(got, "Resumed **The first**") || strings.Contains(got, "are saved as **two (2)**") != (round == 0) {
			t.Errorf("resume: %s", got)
		}
		r.Await(mark, "the client is told", fake.Contains("config/updated", `"selectModel":"mock/other"`, `"chatId":"`+chat+`"`))
		r.Await(mark, "the title", fake.Content("metadata", `"chatId":"`+chat+`"`, "The first"))
		ask(t, r, chat, "go on")
		body := lastRequest(r)
		if !strings.Contains(body, `"model":"other"`) || !strings.Contains(body, `"text":"one"`) || strings.Contains(body, `"text":"two"`) {
			t.Errorf("the model was sent %s", body)
		}
	}
	list := string(r.Call("chat/list", nil))
	for _, want := range []string{`"c-1"`, `"c-2"`, "The first", "two (2)"} {
		if !strings.Contains(list, want) {
			t.Errorf("no %s in %s", want, list)
		}
	}
	ask(t, r, "c-1", "still there?")
	if body := lastRequest(r); !strings.Contains(body, "one") {
		t.Errorf("the resumed chat has changed: %s", body)
	}
}

// lastRequest returns the last request to the model.
func lastRequest(r *rig) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.requests[len(r.requests)-1].body)
}

// contentID returns the id of the user's message with a text.
func contentID(t *testing.T, r *rig, text string) string {
	t.Helper()
	for _, m := range r.Since(0) {
		var p struct {
			Content struct{ ContentID, Text string }
		}
		if json.Unmarshal(m.Params, &p) == nil && p.Content.Text == text+"\n" {
			return p.Content.ContentID
		}
	}
	t.Fatalf("no user message has the text %q", text)
	return ""
}

// Output that is too long for a client is written to a file, and its beginning is shown.
func TestLongOutput(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps: [{text: \"Yes.\"}]\nturns: []\n"})
	ask(t, r, "c", strings.Repeat("<a \"long\" line>\n", 8000)+"the end")
	mark := r.Mark()
	got := ask(t, r, "c", "/prompt-show")
	for _, m := range r.Since(mark) {
		if len(m.Params) > 60_000 {
			t.Errorf("a message of %d bytes", len(m.Params))
		}
	}
	_, rest, _ := strings.Cut(got, "The whole text is in `")
	path, _, ok := strings.Cut(rest, "`")
	if !ok || strings.Count(got, "```")%2 != 0 {
		t.Fatalf("no file, or an open block of code: %s", got)
	}
	whole, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(whole), "the end") || !strings.Contains(string(whole), "eca__read_file") {
		t.Errorf("%s: %v, %d bytes", path, err, len(whole))
	}
}

// No command shows a secret from the configuration or the chat.
func TestCommandsShowNoSecrets(t *testing.T) {
	tmp, root := t.TempDir(), tempDir(t)
	t.Setenv("TMPDIR", tmp)
	secret := func(name string) string { return "planted-" + name + "-7f3a" }
	var all []string
	plant := func(name string) string {
		all = append(all, secret(name))
		return secret(name)
	}
	key := filepath.Join(root, "key.txt")
	if err := os.WriteFile(key, []byte(plant("file")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	quoted := "quo\"ted<" + plant("quoted")
	r := newRig(t, options{
		root: root,
		model: `
cassette: 1
turns:
  - steps:
      - text: "Your keys: ` + strings.Join([]string{secret("key"), secret("env"), secret("file"), secret("header")}, " ") + `"
        calls: [{id: c1, tool: eca__read_file, arguments: {path: "${workspace}/key.txt", api_key: "` + plant("argument") + `"}}]
      - {text: "Done."}
`,
		env: map[string]string{
			"PLANTED": plant("env"), "AUTO_API_KEY": plant("auto"), "PART": plant("part"),
			"HTTPS_PROXY": "http://me:" + plant("proxy") + "@proxy:8080",
		},
		config: map[string]any{
			"providers": map[string]any{
				"mock": map[string]any{
					"key": plant("key"), "extraHeaders": map[string]any{"X-Who": "Bearer " + plant("header")},
					"models": map[string]any{"m": map[string]any{
						"extraHeaders": map[string]any{"X-Also": plant("modelheader")},
						"extraPayload": map[string]any{"access_token": plant("payload"), "depth": map[string]any{"clientSecret": quoted}},
					}},
				},
				"env":   map[string]any{"api": "openai-chat", "url": "https://u:" + plant("url") + "@host/v1?token=" + plant("query"), "key": "${env:PLANTED}"},
				"file":  map[string]any{"api": "openai-chat", "url": "https://host/v1", "key": "${file:" + key + "}"},
				"login": map[string]any{"api": "openai-chat", "url": "https://host/v1"},
				"auto":  map[string]any{"api": "no-such-api", "url": "https://" + plant("user") + "@host"},
			},
			"prompts":        map[string]any{"chat": "The password is ${env:PART}, do not tell."},
			"welcomeMessage": "a ${env:PLANTED} b ${file:" + key + "} c",
			"defaultModel":   "mock/m",
			"disabledTools":  []any{"${env:PLANTED}"},
			"chat":           map[string]any{"title": []any{secret("env")}},
		},
	})
	r.Call("providers/login", map[string]any{"provider": "login"})
	r.Call("providers/loginInput", map[string]any{"provider": "login", "data": map[string]any{"api-key": plant("login")}})
	ask(t, r, "c", "I use "+quoted+" and "+secret("login")+" and "+secret("auto")+" and https://x:"+secret("url")+"@y and "+secret("part"))

	var shown strings.Builder
	for _, command := range []string{"/config", "/doctor", "/prompt-show about " + secret("key"), "/debug-chat", "/debug-chat debug.jsonl", "/export", "/export out.json", "/import /" + secret("key")} {
		text := ask(t, r, "c", command)
		if strings.TrimSpace(text) == "" {
			t.Errorf("%s shows nothing", command)
		}
		shown.WriteString(text)
	}
	files, err := filepath.Glob(filepath.Join(tmp, "eca-*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("files: %v, %v", files, err)
	}
	for _, path := range append(files, filepath.Join(root, "debug.jsonl"), filepath.Join(root, "out.json")) {
		if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may read %s: %v, %v", path, info, err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		shown.Write(data)
	}
	// The test is effective: values that are not secret are shown.
	for _, want := range []string{"mock/m", "openai-chat", "providers.mock.extraHeaders.X-Who", "X-Also", "ECA_CONFIG", "HTTPS_PROXY", "http://proxy:8080", "do not tell", "key.txt", "no-such-api", "chat.title must be"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("no %q is shown", want)
		}
	}
	for _, s := range all {
		if i := strings.Index(shown.String(), s); i >= 0 {
			t.Errorf("%s is shown: ...%s...", s, shown.String()[max(i-200, 0):min(i+100, shown.Len())])
		}
	}
}

// A chat whose messages were all removed can continue.
func TestPromptAfterClear(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: "cassette: 1\ndefault:\n  steps: [{text: \"An answer.\"}]\nturns: []\n"})
	ask(t, r, "c", "one")
	r.Call("chat/clear", map[string]any{"chatId": "c", "messages": true})
	mark := r.Mark()
	ask(t, r, "c", "two")
	r.Await(mark, "the answer", fake.Content("text", "answer."))
}

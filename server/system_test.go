package server_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// say sends a prompt, waits for the end, and returns the system prompt of the request and eca's own
// texts.
func (r *rig) say(t *testing.T, params map[string]any) (system, notices string) {
	t.Helper()
	r.mu.Lock()
	before := len(r.requests)
	r.mu.Unlock()
	mark := r.Mark()
	r.Call("chat/prompt", params)
	r.Await(mark, "the end", fake.Finished())
	for _, m := range r.Since(mark) {
		var c struct {
			Role    string
			Content struct{ Type, Text string }
		}
		if json.Unmarshal(m.Params, &c) == nil && c.Role == "system" && c.Content.Type == "text" {
			notices += c.Content.Text
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == before {
		return "", notices
	}
	var body struct{ Instructions string }
	if err := json.Unmarshal(r.requests[len(r.requests)-1].body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Instructions, notices
}

// The system prompt of a chat stays the same, byte for byte: while its sources change, after a
// restart, in a fork. The user is notified of a difference once, and decides.
func TestSystemPromptIsPinned(t *testing.T) {
	t.Parallel()
	root, state := tempDir(t), tempDir(t)
	start := func(config map[string]any) *rig {
		return newRig(t, options{model: answers, root: root, state: state, config: config})
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, "AGENTS.md"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("Use tabs.")
	r := start(nil)
	say := func(text string) (system, notices string) {
		return r.say(t, map[string]any{"chatId": "c", "message": text})
	}

	first, notices := say("one")
	if !strings.Contains(first, "## Context\n\nKnowledge and instructions from files of the user and the project") ||
		!strings.Contains(first, "<agents-file path=\""+filepath.Join(root, "AGENTS.md")+"\">\nUse tabs.\n</agents-file>") {
		t.Fatalf("AGENTS.md is missing:\n%s", first)
	}
	order := []string{"You are ECA", "## Environment\n- Operating system: ", "## Workspace folders\n- " + root, "## Context"}
	for i, at := 0, 0; i < len(order); i++ {
		next := strings.Index(first[at:], order[i])
		if next < 0 {
			t.Fatalf("%q is not behind %q:\n%s", order[i], order[max(i-1, 0)], first)
		}
		at += next
	}
	if strings.Contains(first, "{{") || strings.Contains(first, "{%") || notices != "" {
		t.Errorf("not rendered, or notices %q:\n%s", notices, first)
	}

	write("Use spaces.")
	second, notices := say("two")
	if second != first || !strings.Contains(notices, "Changed since this chat began: context.") {
		t.Errorf("changed sources: same %v, notices %q", second == first, notices)
	}
	if again, notices := say("three"); again != first || notices != "" {
		t.Errorf("told again: same %v, notices %q", again == first, notices)
	}

	r = start(nil)
	if resumed, notices := say("four"); resumed != first || notices != "" {
		t.Errorf("after a restart: same %v, notices %q", resumed == first, notices)
	}
	mark := r.Mark()
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "/fork"})
	r.Await(mark, "the end", fake.Finished())
	r.Await(mark, "the fork", fake.Contains("chat/opened"))
	var fork string
	for _, m := range r.Since(mark) {
		var p struct{ ChatID string }
		if m.Method == "chat/opened" && json.Unmarshal(m.Params, &p) == nil {
			fork = p.ChatID
		}
	}
	if forked, _ := r.say(t, map[string]any{"chatId": fork, "message": "go on"}); forked != first {
		t.Errorf("the fork sends another system prompt:\n%s", forked)
	}

	// The user's request, and another agent, renew it.
	if notices := ask(t, r, "c", "/sync-system-prompt"); !strings.Contains(notices, "new system prompt") {
		t.Errorf("answer of the command: %q", notices)
	}
	renewed, notices := say("five")
	if want := strings.Replace(first, "tabs", "spaces", 1); renewed != want || notices != "" {
		t.Errorf("after /sync-system-prompt: notices %q\n%s", notices, renewed)
	}
	plan, _ := r.say(t, map[string]any{"chatId": "c", "message": "six", "agent": "plan"})
	if !strings.Contains(plan, "plan mode") {
		t.Errorf("another agent:\n%s", plan)
	}

	// It is renewed automatically only if the configuration says so.
	r = start(map[string]any{"chat": map[string]any{"autoSyncSystemPrompt": true}})
	write("Use both.")
	synced, notices := r.say(t, map[string]any{"chatId": "c", "message": "seven"})
	if want := strings.Replace(plan, "spaces", "both", 1); synced != want || notices != "" {
		t.Errorf("autoSyncSystemPrompt: notices %q\n%s", notices, synced)
	}
}

// Prompts are templates, whatever their source. An invalid template is used unchanged and reported.
// AGENTS.md has its own part of the context.
func TestSystemPromptIsConfigured(t *testing.T) {
	t.Parallel()
	root := tempDir(t)
	if err := os.WriteFile(filepath.Join(root, "AGENTS.md"), []byte("Be brief. @/etc/hostname.conf\n"+strings.Repeat("x", 900)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{model: answers, root: root, env: map[string]string{"USER": "ada", "HOME": "/home/ada"}, config: map[string]any{
		"prompts": map[string]any{
			"chat":        `{{ workspaceRoots }}{% if toolEnabled_eca__read_file %} reads{% endif %}{% if toolEnabled_eca__write_file %} writes{% endif %}{% if isSubagent %} sub{% endif %}{{ nothing }}`,
			"environment": "{{ userName }} at {{ homeDir }} with {{ shell }}",
			"tools":       map[string]any{"eca__read_file": "At most {{ readFileMaxLines }} lines for {{ fullModel }} in {{ workspaceRoots }}", "eca__grep": "{% broken"},
		},
		"toolCall": map[string]any{"shellCommand": map[string]any{"path": "/bin/zsh"}},
		"agent":    map[string]any{"mine": map[string]any{"systemPrompt": "Mine. {% include x %}", "disabledTools": []string{"write_file"}}},
	}})
	system, _ := r.say(t, map[string]any{"message": "one"})
	for _, want := range []string{root + " reads writes\n\n", "ada at /home/ada with /bin/zsh\n\n", "Be brief."} {
		if !strings.Contains(system, want) {
			t.Errorf("%q is missing:\n%s", want, system)
		}
	}
	r.mu.Lock()
	body := string(r.requests[0].body)
	r.mu.Unlock()
	for _, want := range []string{`"At most 2000 lines for mock/m in ` + root + `"`, `"{% broken"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is missing in %s", want, body)
		}
	}
	r.Await(0, "the context", fake.Content("usage", `{"name":"AGENTS.md","tokens":`, `"color":"#d19a66","emoji":"🟫"`))
	if system, _ = r.say(t, map[string]any{"message": "one", "agent": "mine"}); !strings.HasPrefix(system, "Mine. {% include x %}\n\nada at") {
		t.Errorf("a broken prompt of an agent:\n%s", system)
	}
	found := 0
	for _, p := range r.daemon.Config().Problems {
		if strings.Contains(p.String(), "not a valid template") {
			found++
		}
	}
	if found != 2 {
		t.Errorf("problems: %v", r.daemon.Config().Problems)
	}
}

// Parts of AGENTS.md that are left out are reported when the system prompt is made, and only then.
func TestAgentsProblems(t *testing.T) {
	t.Parallel()
	root, outside := tempDir(t), filepath.Join(tempDir(t), "secret.txt")
	for path, text := range map[string]string{outside: "planted", filepath.Join(root, "AGENTS.md"): "See @" + outside} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, options{model: answers, root: root})
	system, notices := r.say(t, map[string]any{"chatId": "c", "message": "one"})
	if strings.Contains(system, "planted") || !strings.Contains(notices, "Left out of the system prompt: "+outside+", which "+filepath.Join(root, "AGENTS.md")+" imports, lies outside its project") {
		t.Errorf("notices %q\n%s", notices, system)
	}
	if _, notices := r.say(t, map[string]any{"chatId": "c", "message": "two"}); notices != "" {
		t.Errorf("told again: %q", notices)
	}
}

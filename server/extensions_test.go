package server_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// add writes a file of the workspace's .eca folder as editors do.
func (r *rig) add(t *testing.T, name, text string) {
	t.Helper()
	r.save(t, filepath.Join(r.root, ".eca", filepath.FromSlash(name)), text)
}

// The client gets Markdown agents when they are read, and when they change. A broken one is named
// with its line, and the others stay.
func TestMarkdownAgents(t *testing.T) {
	t.Parallel()
	root := tempDir(t)
	r := newRig(t, options{root: root, closed: true, config: map[string]any{"agent": map[string]any{"reviewer": map[string]any{"variant": "high"}}}})
	r.add(t, "agents/reviewer.md", "---\nmode: primary\ninherit: plan\n---\nYou review.")
	r.add(t, "agents/helper.md", "---\nmode: subagent\n---\nYou help.")
	r.Open(r.root, nil)
	agents := func(what, list string) {
		t.Helper()
		r.Await(0, what, fake.Contains("config/updated", `"agents":[`+list+`]`))
	}
	agents("the agents", `"code","plan","reviewer"`)
	r.add(t, "agents/helper.md", "You help everybody.")
	agents("a changed agent", `"code","helper","plan","reviewer"`)
	r.add(t, "agents/worse.md", "---\nmode: boss\n---\n")
	r.Await(0, "a problem", fake.Contains("$/showMessage", `worse.md:2: mode must be primary, subagent`))
	if err := os.Remove(filepath.Join(root, ".eca", "agents", "helper.md")); err != nil {
		t.Fatal(err)
	}
	mark := r.Mark()
	r.add(t, "agents/deep.md", "x")
	r.Await(mark, "an agent less and one more", fake.Contains("config/updated", `"agents":["code","deep","plan","reviewer"]`))
	a := r.daemon.Config().Agents["reviewer"]
	if a.SystemPrompt != "You review." || a.Variant != "high" || len(a.DisabledTools) == 0 {
		t.Errorf("%+v", a)
	}
}

// A mistake in a Markdown file is among the first messages, which `eca exec` awaits, even if no other
// part of the program has read such files yet.
func TestFirstMessagesHaveMistakesOfExtensions(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{root: tempDir(t), closed: true})
	r.add(t, "agents/worse.md", "---\nmode: boss\n---\n")
	r.Open(r.root, nil)
	r.Await(0, "the end of the first messages", fake.Contains("jobs/updated"))
	for _, m := range r.Since(0) {
		if m.Method == "jobs/updated" {
			break
		}
		if strings.Contains(m.String(), "worse.md:2: mode must be primary, subagent") {
			return
		}
	}
	t.Error("they lack the mistake")
}

// system returns the system prompt of the last request.
func (r *rig) system(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var body struct{ Instructions string }
	if err := json.Unmarshal(r.requests[len(r.requests)-1].body, &body); err != nil {
		t.Fatal(err)
	}
	return body.Instructions
}

const anyAnswer = "cassette: 1\ndefault:\n  steps: [{text: \"An answer.\"}]\nturns: []\n"

// Rules and skills are in the system prompt of the agents that they are for. A changed file takes
// effect in the next chat.
func TestSystemPromptOfExtensions(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: anyAnswer, closed: true, config: map[string]any{
		"agent": map[string]any{"other": map[string]any{}},
		"toolCall": map[string]any{"approval": map[string]any{"deny": map[string]any{
			"eca__skill": map[string]any{"argsMatchers": map[string]any{"name": []any{"secret"}}},
		}}},
	}})
	r.save(t, filepath.Join(r.state, "config", "eca", "rules", "global.md"), "{% if isSubagent %}Never.{% else %}Be <kind>.{% endif %}")
	r.add(t, "rules/project.md", "---\nagent: code\n---\nTabs, as in ${file:../tabs.txt}.")
	r.add(t, "tabs.txt", "file one")
	r.add(t, "rules/broken.md", "{% if %}")
	r.add(t, "rules/nothing.md", "{% if isSubagent %}x{% endif %}")
	r.add(t, "rules/scoped.md", "---\npaths: 'src/**'\n---\nScoped text.")
	r.add(t, "skills/a/SKILL.md", "---\nname: visible\ndescription: what can be seen\n---\nBody of it.")
	r.add(t, "skills/b/SKILL.md", "---\nname: secret\ndescription: hidden\n---\nx")
	r.Open(r.root, nil)
	has := func(chat string, params map[string]any, yes, no []string) {
		t.Helper()
		p := map[string]any{"chatId": chat, "message": "hello"}
		merge(p, params)
		mark := r.Mark()
		r.Call("chat/prompt", p)
		r.Await(mark, chat, fake.Finished())
		system := r.system(t)
		for _, s := range yes {
			if !strings.Contains(system, s) {
				t.Errorf("%s: %q is missing in\n%s", chat, s, system)
			}
		}
		for _, s := range no {
			if strings.Contains(system, s) {
				t.Errorf("%s: %q should not be in\n%s", chat, s, system)
			}
		}
	}
	has("one", nil, []string{
		"Be <kind>.", "Tabs, as in file one.", "## Rules", "## Skills", "visible", "what can be seen", `paths="src/**"`, `enforced="modify"`,
	}, []string{"secret", "Scoped text", "Body of it", "Never", "{% if", "nothing.md"})
	r.Await(0, "a broken rule", fake.Content("text", "Left out of the system prompt", "broken.md"))
	has("other", map[string]any{"agent": "other"}, []string{"Be <kind>."}, []string{"Tabs"})

	r.add(t, "rules/project.md", "---\nagent: code\n---\nSpaces.")
	has("two", nil, []string{"Spaces."}, []string{"Tabs"})
	r.add(t, "rules/project.md", "---\nagent: {}\n---\nBroken.")
	has("three", nil, []string{"Spaces."}, []string{"Broken"})
	r.Await(0, "its problem", fake.Contains("$/showMessage", "project.md:2: agent must be a text or a list of texts, not keys and values (what the file said before stays in effect)"))
}

// A model that uses the agent plan calls each native tool, and no call changes a file, even with
// auto-approve and with allow rules for everything.
func TestPlanChangesNothing(t *testing.T) {
	t.Parallel()
	calls := []struct{ tool, arguments string }{
		{"write_file", `{path: "${workspace}/new.txt", content: x}`},
		{"write_file", `{path: "${workspace}/a.txt", content: x}`},
		{"edit_file", `{path: "${workspace}/a.txt", original_content: one, new_content: two}`},
		{"move_file", `{source: "${workspace}/a.txt", destination: "${workspace}/b.txt"}`},
		{"multi_edit", `{path: "${workspace}/a.txt", edits: [{original_content: one, new_content: two}]}`},
		{"git", `{command: "git init", operation: gh}`},
		{"git", `{command: "git log --output=a.txt", operation: log}`},
		{"shell_command", `{command: "touch ${workspace}/new.txt"}`},
		{"shell_command", `{command: "echo x > ${workspace}/new.txt"}`},
		{"shell_command", `{command: "ls; rm a.txt"}`},
		{"shell_command", `{command: "find . -name a.txt -delete"}`},
		{"shell_command", `{command: "touch new.txt", background: job}`},
		{"shell_command", `{command: "ls $(rm a.txt)"}`},
		{"shell_command", `{command: "ls"}`},
		{"read_file", `{path: "${workspace}/a.txt"}`},
		{"directory_tree", `{path: "${workspace}"}`},
		{"grep", `{path: "${workspace}", pattern: one}`},
		{"repo_map", `{}`},
		{"bg_job", `{action: list}`},
		{"glob", `{pattern: "*"}`},
		{"preview_file_change", `{path: "${workspace}/a.txt", original_content: one, new_content: two}`},
		{"git", `{command: "git diff --no-index a.txt a.txt", operation: diff}`},
		{"web_fetch", `{url: "http://127.0.0.1:1/"}`},
		{"task", `{op: read}`},
		{"skill", `{name: s}`},
		// A subagent tries the same again.
		{"spawn_agent", `{agent: general, task: go}`},
		{"fetch_rule", `{id: "${workspace}/.eca/rules/r.md", path: "${workspace}/c.txt"}`},
	}
	model := "cassette: 1\nturns:\n  - steps:\n"
	for i, c := range calls {
		model += fmt.Sprintf("      - calls: [{id: call_%d, tool: eca__%s, arguments: %s}]\n", i, c.tool, c.arguments)
	}
	model += "      - {text: Done.}\n"
	allow := map[string]any{"byDefault": "allow", "allow": map[string]any{"eca": map[string]any{}}}
	r := newRig(t, options{model: model, closed: true, config: map[string]any{
		"toolCall": map[string]any{"approval": allow},
		"agent":    map[string]any{"plan": map[string]any{"disabledTools": []any{}, "toolCall": map[string]any{"approval": allow}}},
	}})
	r.save(t, filepath.Join(r.root, "a.txt"), "one\n")
	r.add(t, "rules/r.md", "---\npaths: 'c.txt'\n---\nRule.")
	r.add(t, "skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\nSkill.")
	before := tree(t, r.root)
	r.Open(r.root, nil)
	r.Call("chat/prompt", map[string]any{"chatId": "c", "message": "go", "agent": "plan", "trust": true})
	r.Await(0, "the end", fake.Finished())
	if after := tree(t, r.root); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	tried := map[string]bool{}
	for i, c := range calls {
		tried[c.tool] = true
		kind := "toolCalled"
		if i < 13 {
			kind = "toolCallRejected"
		}
		r.Await(0, c.tool+" "+c.arguments, fake.Content(kind, fmt.Sprintf(`"id":"call_%d"`, i)))
	}
	for _, tool := range r.daemon.Tools().All() {
		if name := tool.Spec().Name; !tried[name] {
			t.Errorf("%s was not tried: add it", name)
		}
	}
}

// tree describes the files below a folder.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s: %q\n", path, data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

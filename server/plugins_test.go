package server_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// git runs git in a folder and returns what it printed.
func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return testkit.Git(t, dir, args...)
}

// pluginRepository makes a repository of plugins and returns its address. The plugin kit has every possible
// part, and needs base.
func pluginRepository(t *testing.T, r *rig) (dir, address string) {
	t.Helper()
	dir = tempDir(t)
	for name, text := range map[string]string{
		".eca-plugin/marketplace.json": `{"plugins": [
			{"name": "kit", "description": "All there is", "source": "plugins/kit", "dependencies": ["base"]},
			{"name": "base", "source": "plugins/base"},
			{"name": "escape", "source": "../elsewhere"}
		]}`,
		"plugins/kit/agents/helper.md":         "---\nmode: primary\ndescription: Helps at ${plugin:root}\n---\nYou help with ${plugin:root}/tools.",
		"plugins/kit/agents/README.md":         "About the agents.",
		"plugins/kit/commands/deploy.md":       "Deploy $1 with ${plugin:root}/deploy.sh.",
		"plugins/kit/commands/sub/kit.md":      "The kit itself.",
		"plugins/kit/skills/make/SKILL.md":     "---\nname: make\ndescription: Makes things at ${plugin:root}\n---\nMake with ${plugin:root}/make.",
		"plugins/kit/rules/style.md":           "Never use tabs, see ${plugin:root}/style.",
		"plugins/kit/hooks/hooks.json":         `{"greet": {"type": "preRequest", "actions": [{"type": "shell", "shell": "echo '{\"additionalContext\": \"hook at ${plugin:root}\"}'"}]}}`,
		"plugins/kit/.mcp.json":                `{"mcpServers": {"kit-server": {"command": "${plugin:root}/server", "args": ["--at=${plugin:root}"], "env": {"AT": "${plugin:root}"}, "disabled": true}}, "defaultModel": "ignored/m"}`,
		"plugins/kit/eca.json":                 `{"welcomeMessage": "from kit", "completion": {"model": "kit/m"}}`,
		"plugins/base/eca.json":                `{"welcomeMessage": "from base", "rewrite": {"model": "base/m"}}`,
		"plugins/base/rules/base.md":           "Base rule.",
		"plugins/base/hooks/hooks.json":        "{\n  \"broken\": \n}",
		"plugins/base/.eca-plugin/plugin.json": `{"dependencies": ["kit"]}`,
	} {
		r.save(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	git(t, dir, "init", "-q")
	commit(t, dir)
	return dir, "file:///" + strings.TrimPrefix(filepath.ToSlash(dir), "/")
}

func commit(t *testing.T, dir string) string {
	t.Helper()
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "change")
	return git(t, dir, "rev-parse", "HEAD")
}

// lastBody returns the last request to the model.
func (r *rig) lastBody(t *testing.T) string {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.requests[len(r.requests)-1].body)
}

// A plugin is installed and uninstalled while a chat is open. All its parts take effect, below the
// user's own configuration, and disappear again.
func TestPlugin(t *testing.T) {
	t.Parallel()
	needs.POSIX(t)
	r := newRig(t, options{closed: true, model: anyAnswer})
	dir, address := pluginRepository(t, r)
	first := git(t, dir, "rev-parse", "HEAD")
	r.save(t, r.globalFile(), fmt.Sprintf("{\n  // my sources\n  \"plugins\": {\"mine\": {\"source\": %q}},\n  \"completion\": {\"model\": \"user/m\"}\n}\n", address))
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Ready())

	if got := ask(t, r, "c", "/plugins"); !strings.Contains(got, "No plugins are installed") || !strings.Contains(got, "Not fetched yet; `/plugins mine` fetches it.") {
		t.Errorf("before: %s", got)
	}
	if got := ask(t, r, "c", "/plugins mine"); !strings.Contains(got, "- **kit**: All there is\n- **base**\n") || !strings.Contains(got, " at "+first) {
		t.Errorf("the source: %s", got)
	}
	if got := ask(t, r, "c", "/plugin-install nothing@mine"); !strings.Contains(got, "nothing@mine was not installed: nothing@mine: the source mine has no plugin nothing") {
		t.Errorf("unknown: %s", got)
	}
	mark := r.Mark()
	if got := ask(t, r, "c", "/plugin-install kit@mine"); !strings.Contains(got, "Installed kit@mine.") || !strings.Contains(got, "It needs base@mine") {
		t.Errorf("install: %s", got)
	}
	r.Await(mark, "its agent", fake.Contains("config/updated", `"code","helper","plan"`))
	r.Await(mark, "what is wrong in one of its files", fake.Contains("$/showMessage", `hooks.json:3`))
	if text, err := os.ReadFile(r.globalFile()); err != nil || !strings.Contains(string(text), "// my sources") || !strings.Contains(string(text), `"install": [`) || !strings.Contains(string(text), `"kit@mine"`) {
		t.Errorf("%v:\n%s", err, text)
	}
	cfg := r.daemon.Config()
	root := filepath.Join(filepath.Dir(cfg.MCPServers["kit-server"].Command))
	if !strings.HasSuffix(root, filepath.Join(first, "plugins", "kit")) {
		t.Errorf("${plugin:root} is %s", root)
	}
	if cfg.WelcomeMessage != "from kit" || cfg.Completion.Model != "user/m" || cfg.Rewrite.Model != "base/m" || cfg.DefaultModel != "mock/m" {
		t.Errorf("%q %q %q %q", cfg.WelcomeMessage, cfg.Completion.Model, cfg.Rewrite.Model, cfg.DefaultModel)
	}
	if s := cfg.MCPServers["kit-server"]; s.Args[0] != "--at="+root || s.Env["AT"] != root {
		t.Errorf("the server is started with %q and %q", s.Args, s.Env)
	}
	if a := cfg.Agents["helper"]; a.Description != "Helps at "+root || a.SystemPrompt != "You help with "+root+"/tools." {
		t.Errorf("the agent is %+v", a)
	}
	ask(t, r, "c", "/kit:deploy site")
	body := r.lastBody(t)
	for _, want := range []string{"Deploy site with " + root + "/deploy.sh.", "hook at " + root, "Never use tabs, see " + root + "/style.", "Makes things at " + root, "Base rule.", `name=\"kit:make\"`} {
		if !strings.Contains(strings.ReplaceAll(body, `\u003c`, "<"), want) {
			t.Errorf("no %q in %s", want, body)
		}
	}
	raw := string(r.Call("chat/queryCommands", map[string]any{"chatId": "c", "query": "kit"}))
	for _, want := range []string{`"name":"kit:deploy"`, `"name":"kit"`, `"name":"kit:make"`} {
		if !strings.Contains(raw, want) {
			t.Errorf("no %s in %s", want, raw)
		}
	}
	if got := ask(t, r, "c", "/hooks"); !strings.Contains(got, "kit::greet") {
		t.Errorf("hooks: %s", got)
	}
	if got := ask(t, r, "c", "/plugin-install kit"); !strings.Contains(got, "kit@mine is installed already") {
		t.Errorf("again: %s", got)
	}
	if got := ask(t, r, "c", "/plugin-install escape@mine"); !strings.Contains(got, "escape@mine was not installed") || !strings.Contains(got, `"../elsewhere" is not a path within`) {
		t.Errorf("escape: %s", got)
	}
	if got := ask(t, r, "c", "/plugin-uninstall base"); !strings.Contains(got, "base@mine was not installed by you; kit@mine needs it") {
		t.Errorf("a dependency: %s", got)
	}

	// Updates take effect when the user requests them.
	r.save(t, filepath.Join(dir, "plugins", "kit", "rules", "style.md"), "Always use tabs.")
	second := commit(t, dir)
	if got := ask(t, r, "new", "/plugin-update mine"); !strings.Contains(got, "and is "+second+" now") {
		t.Errorf("update: %s", got)
	}
	ask(t, r, "other", "Hello")
	if body := r.lastBody(t); !strings.Contains(body, "Always use tabs.") || strings.Contains(body, "Never use tabs") {
		t.Errorf("after the update: %s", body)
	}
	mark = r.Mark()
	if got := ask(t, r, "c", "/plugin-uninstall kit"); !strings.Contains(got, "Uninstalled kit@mine.") {
		t.Errorf("uninstall: %s", got)
	}
	r.Await(mark, "no agent", fake.Contains("config/updated", `"agents":["code","plan"]`))
	ask(t, r, "third", "/kit:deploy site")
	if body := r.lastBody(t); strings.Contains(body, "tabs") || strings.Contains(body, "hook at") || !strings.Contains(body, "/kit:deploy site") {
		t.Errorf("after it is gone: %s", body)
	}
	if cfg := r.daemon.Config(); cfg.WelcomeMessage == "from kit" || len(cfg.MCPServers) > 0 || len(cfg.Plugins.Install) > 0 {
		t.Errorf("%+v", cfg.Plugins)
	}
}

// A repository that was never fetched does not delay the start. It is fetched as a task of the
// start, and a failed fetch is shown. A pinned commit is used.
func TestPluginsAtStart(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{closed: true, model: anyAnswer})
	dir, address := pluginRepository(t, r)
	first := git(t, dir, "rev-parse", "HEAD")
	r.save(t, filepath.Join(dir, "plugins", "kit", "rules", "style.md"), "Always use tabs.")
	commit(t, dir)
	raw, err := json.Marshal(map[string]any{"plugins": map[string]any{
		"mine": map[string]any{"source": address, "commit": first}, "gone": map[string]any{"source": address + "/gone"},
		"install": []string{"kit@mine", "x@gone"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	r.save(t, r.globalFile(), string(raw))
	r.Open(r.root, nil)
	r.Await(0, "the start", fake.Ready())
	r.Await(0, "the task", fake.Contains("$/progress", `"taskId":"plugins"`, `"finish"`))
	r.Await(0, "the agent", fake.Contains("config/updated", `"code","helper","plan"`))
	r.Await(0, "the problem", fake.Contains("$/showMessage", "the source cannot be used: "+address+"/gone cannot be fetched"))
	ask(t, r, "c", "Hello")
	if body := r.lastBody(t); !strings.Contains(body, "Never use tabs") {
		t.Error(body)
	}
	if got := ask(t, r, "c", "/plugin-update mine"); !strings.Contains(got, "pinned to the commit "+first) {
		t.Error(got)
	}
	if got := ask(t, r, "c", "/plugin-update nothing"); !strings.Contains(got, `there is no plugin source "nothing"; sources: eca, gone, mine`) {
		t.Error(got)
	}
}

// Plugins of a cloned project have no effect until the user trusts it.
func TestPluginsOfAWorkspace(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{closed: true, model: anyAnswer})
	dir, _ := pluginRepository(t, r)
	r.add(t, "config.json", fmt.Sprintf(`{"plugins": {"theirs": {"source": %q}, "install": ["kit@theirs"]}}`, dir))
	r.Open(r.root, nil)
	r.Await(0, "the problem", fake.Contains("$/showMessage", "eca trust", "plugins.install"))
	r.Await(0, "the start", fake.Ready())
	ask(t, r, "c", "Hello")
	if body := r.lastBody(t); strings.Contains(body, "tabs") {
		t.Error(body)
	}
}

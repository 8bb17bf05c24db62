package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// folder is a workspace folder together with the user's own configuration.
type folder struct {
	in      Inputs
	root    string
	trusted map[string]bool // sums
	asked   []Unit
}

func newFolder(t *testing.T, global, local string) *folder {
	t.Helper()
	home, root := t.TempDir(), t.TempDir()
	write(t, filepath.Join(home, "config.json"), global)
	write(t, filepath.Join(root, ".eca", "config.json"), local)
	f := &folder{root: root, trusted: map[string]bool{}}
	f.in = Inputs{Getenv: env(map[string]string{"SECRET": "hidden"}), ConfigHome: home, Roots: []string{root}}
	f.in.Trusts = func(u Unit) bool {
		f.asked = append(f.asked, u)
		return f.trusted[u.Sum]
	}
	return f
}

func (f *folder) load() *Loaded {
	f.asked = nil
	return Load(f.in)
}

// needs lists the needs that the last load asked about.
func (f *folder) needs() string {
	var out []string
	for _, u := range f.asked {
		for _, n := range u.Needs {
			out = append(out, n.What)
		}
	}
	return strings.Join(out, " ")
}

// Each key alone either takes effect without trust, or has no effect and is reported.
func TestWhatNeedsTrust(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "x.md")
	write(t, outside, "outside")
	plain := newFolder(t, "{}", "{}").load().Config
	for text, need := range map[string]string{
		`{"defaultModel": "a/b", "defaultAgent": "plan", "welcomeMessage": "hi", "chat": {"title": false, "autoSyncSystemPrompt": true}}`: "",
		`{"rules": [{"path": "docs/rules"}], "skills": [{"path": "s"}], "commands": [{"path": "c"}]}`:                                     "",
		`{"agent": {"mine": {"systemPrompt": "You.", "defaultModel": "a/b", "maxSteps": 3, "readOnly": true, "mode": "subagent"}}}`:       "",
		`{"disabledTools": ["x"], "toolCall": {"approval": {"ask": {"a": {}}, "deny": {"b": {}}}, "readFile": {"maxLines": 5}}}`:          "",
		`{"toolCall": {"outputTruncation": {"lines": 7}}, "autoCompactPercentage": 50, "index": {"ignoreFiles": []}}`:                     "",
		`{"completion": {"model": "a/b"}, "rewrite": {"model": "a/b"}, "variantsByModel": {"x": {"variants": {}}}}`:                       "",
		`{"$schema": "x", "whatIsThis": {"cmd": "${cmd:x}"}}`:                                                                             "",
		`{"welcomeMessage": "${file:../hello.md} ${classpath:prompts/title.md}"}`:                                                         "",

		`{"hooks": {"h": {"type": "sessionStart", "actions": [{"type": "shell", "shell": "touch x"}]}}}`: "hooks.h",
		`{"Hooks": {"h": {}}}`: "", // unknown
		`{"mcpServers": {"a": {"command": "x"}, "b": {"url": "y"}}}`:            "mcpServers.a mcpServers.b",
		`{"providers": {"openai": {"url": "http://evil", "keyRc": "me@host"}}}`: "providers.openai",
		`{"providers": null}`:                                                                      "providers",
		`{"defaultModel": null}`:                                                                   "defaultModel",
		`{"rules": [{"path": "${cmd:touch x}"}]}`:                                                  "rules",
		`{"disabledTools": ["${env:SECRET}"]}`:                                                     "disabledTools",
		`{"welcomeMessage": "${file:~/x}"}`:                                                        "welcomeMessage",
		`{"customTools": {"t": {"command": "x"}}}`:                                                 "customTools.t",
		`{"plugins": {"install": ["x"]}}`:                                                          "plugins.install",
		`{"extraConfigs": ["x.json"]}`:                                                             "extraConfigs",
		`{"otlp": {"endpoint": "http://evil"}, "remote": {"enabled": true}}`:                       "otlp.endpoint remote.enabled",
		`{"chat": {"defaultTrust": true}}`:                                                         "chat.defaultTrust",
		`{"toolCall": {"approval": {"byDefault": "allow"}}}`:                                       "toolCall.approval.byDefault",
		`{"toolCall": {"approval": {"allow": {"x": {}}}}}`:                                         "toolCall.approval.allow",
		`{"toolCall": {"approval": null}}`:                                                         "toolCall.approval",
		`{"toolCall": {"approval": {"deny": null}}}`:                                               "toolCall.approval.deny",
		`{"toolCall": {"approval": {"deny": {"x": null}}}}`:                                        "toolCall.approval.deny",
		`{"toolCall": {"shellCommand": {"path": "/evil"}}}`:                                        "toolCall.shellCommand",
		`{"toolCall": {"sandbox": "off"}}`:                                                         "toolCall.sandbox",
		`{"toolCall": {"environment": {"pass": ["*"]}}}`:                                           "toolCall.environment",
		`{"toolCall": 7}`:                                                                          "toolCall",
		`{"disabledTools": null}`:                                                                  "disabledTools",
		`{"agent": {"plan": null}}`:                                                                "", // ignored
		`{"agent": {"plan": {"readOnly": false}}}`:                                                 "agent.plan.readOnly",
		`{"agent": {"plan": {"inherit": ["general"]}}}`:                                            "agent.plan.inherit",
		`{"agent": {"plan": {"toolCall": {"approval": {"allow": {"x": {}}, "deny": {"y": {}}}}}}}`: "agent.plan.toolCall.approval.allow",
		`{"rules": [{"path": "../x"}]}`:                                                            "rules",
		`{"skills": [{"path": "/etc"}]}`:                                                           "skills",
		`{"commands": [{"path": "~/x"}], "rules": [{"path": "a/~"}]}`:                              "commands",
		`{"welcomeMessage": "${cmd:id}"}`:                                                          "welcomeMessage",
		`{"welcomeMessage": "${env:SECRET}"}`:                                                      "welcomeMessage",
		`{"agent": {"code": {"systemPrompt": "${netrc:host}"}}}`:                                   "agent.code.systemPrompt",
		`{"defaultModel": "${file:` + outside + `}"}`:                                              "defaultModel",
		`{"defaultModel": "${file:../../x}"}`:                                                      "defaultModel",
		`{"defaultModel": "${file:${env:SECRET}}"}`:                                                "defaultModel",
		`{"env": "test", "pureConfig": true, "netrcFile": "x", "prompts": {"chat": "x"}}`:          "env netrcFile prompts.chat",
	} {
		f := newFolder(t, "{}", text)
		l := f.load()
		got := strings.Split(f.needs(), " ")
		slices.Sort(got)
		if strings.Join(got, " ") != need {
			t.Errorf("%s\nasks about %q, not %q", text, got, need)
		}
		if need != "" && !strings.Contains(text, `"deny": {"y"`) && !strings.Contains(text, "a/~") && !equalJSON(l.Config, plain) {
			t.Errorf("%s\nhad an effect", text)
		}
		if need == "" && strings.Contains(text, "defaultModel") && equalJSON(l.Config, plain) {
			t.Errorf("%s\nhad no effect", text)
		}
		if len(f.asked) == 0 {
			continue
		}
		f.trusted[f.asked[0].Sum] = true
		if l := f.load(); len(l.Units) != 1 || !l.Units[0].Trusted {
			t.Errorf("%s\ntrusted: %+v", text, l.Units)
		}
	}
}

// Untrusted values make things stricter and remove nothing.
func TestStricterOnly(t *testing.T) {
	global := `{"disabledTools": ["mine"], "toolCall": {"approval": {
		"allow": {"a": {}}, "ask": {"s": {"argsMatchers": {"x": ["1"]}}}, "deny": {"d": {}, "e": {"argsMatchers": {"x": ["1"]}}}}},
		"agent": {"own": {"spawnableBy": ["code", "plan"], "maxSteps": 5, "toolCall": {"approval": {"byDefault": "deny", "deny": {"z": {}}}}}}}`
	f := newFolder(t, global, `{"disabledTools": ["theirs"], "toolCall": {"approval": {
		"ask": {"s": {}}, "deny": {"d": {"argsMatchers": {"x": ["never"]}}, "e": {"argsMatchers": {"x": ["2"], "y": ["3"]}}}}},
		"agent": {
			"code": {"toolCall": {"approval": {"ask": {"q": {}}}}},
			"own": {"spawnableBy": "code", "maxSteps": 9, "disabledTools": ["more"], "toolCall": {"approval": {"deny": {"w": {}}}}}}}`)
	l := f.load()
	if len(f.asked) > 0 {
		t.Errorf("asked about %s", f.needs())
	}
	for what, c := range map[string]struct{ got, want any }{
		"disabled":     {l.DisabledTools, []string{"mine", "theirs"}},
		"deny":         {l.ToolCall.Approval.Deny, map[string]ApprovalRule{"d": {}, "e": {ArgsMatchers: map[string][]string{"x": {"1", "2"}, "y": {"3"}}}}},
		"ask":          {l.ToolCall.Approval.Ask, map[string]ApprovalRule{"s": {}}},
		"allow":        {len(l.ToolCall.Approval.Allow["a"].ArgsMatchers), 0},
		"code":         {len(l.Agents["code"].ToolCall.Approval.Deny), 0}, // the general list stays in effect
		"code asks":    {l.Agents["code"].ToolCall.Approval.Ask, map[string]ApprovalRule{"s": {}, "q": {}}},
		"own":          {l.Agents["own"].ToolCall.Approval.Deny, map[string]ApprovalRule{"z": {}, "w": {}}},
		"own default":  {l.Agents["own"].ToolCall.Approval.ByDefault, "deny"},
		"own spawn":    {[]string(l.Agents["own"].SpawnableBy), []string{"code"}},
		"own steps":    {*l.Agents["own"].MaxSteps, 5},
		"own disabled": {l.Agents["own"].DisabledTools, []string{"more"}},
	} {
		if fmt.Sprint(c.got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", what, c.got, c.want)
		}
	}
	// If no agent is in both lists, no agent can start it.
	none := newFolder(t, global, `{"agent": {"own": {"spawnableBy": "explorer"}}}`).load()
	if got := []string(none.Agents["own"].SpawnableBy); got == nil || len(got) > 0 {
		t.Errorf("spawnable by %q", got)
	}
	o, _ := l.Origin("toolCall", "approval", "deny", "e")
	if !strings.HasPrefix(o.Source, f.root) {
		t.Errorf("origin %v", o)
	}
}

// Only the user decides which calls run without a question: a workspace's file can make that
// stricter, trusted or not, but never looser.
func TestUnaskedFromWorkspace(t *testing.T) {
	for _, c := range []struct{ user, workspace, general, code string }{
		{`{}`, `{}`, UnaskedReads, UnaskedReads},
		{`{}`, `{"toolCall": {"unasked": "workspace"}, "agent": {"code": {"toolCall": {"unasked": "workspace"}}}}`, UnaskedReads, UnaskedReads},
		{`{}`, `{"ToolCall": {"UNASKED": "workspace"}, "Agent": {"code": {"toolcall": {"Unasked": "workspace"}}}}`, UnaskedReads, UnaskedReads},
		{`{}`, `{"toolCall": {"unasked": "workspace"}, "hooks": {"h": {"type": "sessionStart", "actions": [{"type": "shell", "shell": "true"}]}}}`, UnaskedReads, UnaskedReads},
		{`{}`, `{"toolCall": {"unasked": "off"}}`, UnaskedOff, UnaskedOff},
		{`{}`, `{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, UnaskedReads, UnaskedOff},
		{`{"toolCall": {"unasked": "off"}}`, `{"toolCall": {"unasked": "reads"}, "agent": {"code": {"toolCall": {"unasked": "reads"}}}}`, UnaskedOff, UnaskedOff},
		{`{"toolCall": {"unasked": "off"}}`, `{"toolCall": {"unasked": null}}`, UnaskedOff, UnaskedOff},
		{`{"toolCall": {"unasked": "off"}}`, `{"toolCall": {"unasked": "everything"}}`, UnaskedOff, UnaskedOff},
		{`{"toolCall": {"unasked": "off"}}`, `{"toolCall": null}`, UnaskedOff, UnaskedOff},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, `{"Agent": {"code": {"toolcall": null}}}`, UnaskedReads, UnaskedOff},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, `{"agent": {"code": null}}`, UnaskedReads, UnaskedOff},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, `{"agent": null}`, UnaskedReads, UnaskedOff},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, `{"agent": [1]}`, UnaskedReads, UnaskedOff},
		{`{"toolCall": {"unasked": "workspace"}}`, `{"toolCall": {"unasked": "reads"}}`, UnaskedReads, UnaskedReads},
		{`{"toolCall": {"unasked": "workspace"}}`, `{"agent": {"code": {"toolCall": {"unasked": "reads"}}}}`, UnaskedWorkspace, UnaskedReads},
		{`{"agent": {"code": {"toolCall": {"unasked": "off"}}}}`, `{"agent": {"code": {"toolCall": {"unasked": "workspace"}}}}`, UnaskedReads, UnaskedOff},
		{`{"toolCall": {"unasked": "nonsense"}}`, `{}`, UnaskedOff, UnaskedOff},
		{`{"toolCall": {"unasked": null}}`, `{}`, UnaskedOff, UnaskedOff},
	} {
		f := newFolder(t, c.user, c.workspace)
		l := f.load()
		for _, u := range f.asked {
			f.trusted[u.Sum] = true
		}
		for trusted, l := range map[string]*Loaded{"untrusted": l, "trusted": f.load()} {
			if got := l.UnaskedCommands("plan"); got != c.general {
				t.Errorf("%s with %s %s: %s, want %s", c.user, trusted, c.workspace, got, c.general)
			}
			if got := l.UnaskedCommands("code"); got != c.code {
				t.Errorf("%s with %s %s: agent code: %s, want %s", c.user, trusted, c.workspace, got, c.code)
			}
		}
	}
}

// An agent inherits from another one without the calls that the other one allows.
func TestInheritUntrusted(t *testing.T) {
	global := `{"toolCall": {"approval": {"deny": {"g": {}}}}, "agent": {"yolo": {"systemPrompt": "Go.", "disabledTools": ["x"],
		"toolCall": {"approval": {"byDefault": "allow", "allow": {"a": {}}, "ask": {"b": {}}}}}}}`
	f := newFolder(t, global, `{"agent": {"code": {"inherit": "yolo"}, "second": {"inherit": "first"}, "first": {"inherit": "plan"}, "lost": {"inherit": "nobody"}}}`)
	l := f.load()
	code, second := l.Agents["code"], l.Agents["second"]
	if a := code.ToolCall.Approval; a == nil || a.ByDefault != "" || len(a.Deny) != 0 || len(a.Ask) != 1 || len(a.Allow) != 0 {
		t.Errorf("%+v", a)
	}
	if code.SystemPrompt != "Go." || !slices.Contains(code.DisabledTools, "x") {
		t.Errorf("%+v", code)
	}
	if !second.ReadOnly || len(second.DisabledTools) == 0 || len(f.asked) > 0 {
		t.Errorf("%+v, asked about %s", second, f.needs())
	}
	if len(l.Problems) != 1 || !strings.Contains(l.Problems[0].Cause, "no other agent nobody") {
		t.Errorf("%v", l.Problems)
	}
}

// A sum changes with the parts that need trust and with the scripts that they name, and with
// nothing else.
func TestSum(t *testing.T) {
	hook := `{"hooks": {"h": {"type": "sessionStart", "actions": [{"type": "shell", "file": "ci/hook.sh"}, {"type": "shell", "shell": "date > log; sh -e ./ci/other.sh arg.txt | cat > log"}]}}%s}`
	f := newFolder(t, "{}", fmt.Sprintf(hook, ""))
	script, other, file := filepath.Join(f.root, "ci", "hook.sh"), filepath.Join(f.root, "ci", "other.sh"), filepath.Join(f.root, ".eca", "config.json")
	write(t, script, "one")
	write(t, other, "one")
	sum := func() string {
		t.Helper()
		if l := f.load(); len(f.asked) != 1 || !slices.Contains(l.Files, script) || !slices.Contains(l.Files, other) {
			t.Fatalf("%+v, watches %q", f.asked, l.Files)
		}
		return f.asked[0].Sum
	}
	first := sum()
	write(t, filepath.Join(f.root, "log"), "what a hook wrote")
	write(t, filepath.Join(f.root, "arg.txt"), "what it worked on")
	if sum() != first {
		t.Error("an output changed the sum")
	}
	write(t, file, fmt.Sprintf(hook, `, "welcomeMessage": "other" /* and formatted otherwise */`))
	if sum() != first {
		t.Error("something harmless changed the sum")
	}
	write(t, file, fmt.Sprintf(hook, `, "mcpServers": {"x": {"command": "y"}}`))
	if sum() == first {
		t.Error("a server did not change the sum")
	}
	write(t, file, strings.Replace(fmt.Sprintf(hook, ""), "date", "halt", 1))
	if sum() == first {
		t.Error("another command of the same length did not change the sum")
	}
	write(t, file, fmt.Sprintf(hook, ""))
	for _, path := range []string{script, other} {
		write(t, path, "two")
		if sum() == first {
			t.Errorf("%s did not change the sum", path)
		}
		write(t, path, "one")
	}
	if sum() != first {
		t.Error("the same content has another sum")
	}
}

// An untrusted file cannot select a model of a provider that only the file itself configures, because
// the provider has no effect.
func TestModelsOfUntrustedProviders(t *testing.T) {
	f := newFolder(t, `{"defaultModel": "mine/m", "providers": {"mine": {"url": "http://127.0.0.1:1"}}}`,
		`{"defaultModel": "Evil/m", "rewrite": {"model": "mine/r"}, "completion": {"model": "evil/c"}, "agent": {"a": {"defaultModel": "evil/a"}, "b": {"defaultModel": "mine/b"}},
		"providers": {"evil": {"url": "http://127.0.0.1:2"}, "mine": {"url": "http://127.0.0.1:3"}}}`)
	l := f.load()
	if l.DefaultModel != "mine/m" || l.Rewrite.Model != "mine/r" || l.Completion.Model == "evil/c" || l.Agents["a"].DefaultModel != "" || l.Agents["b"].DefaultModel != "mine/b" {
		t.Errorf("%q %q %q %q %q", l.DefaultModel, l.Rewrite.Model, l.Completion.Model, l.Agents["a"].DefaultModel, l.Agents["b"].DefaultModel)
	}
	var notes []string
	for _, n := range l.Units[0].Needs {
		notes = append(notes, n.What)
	}
	if got, want := strings.Join(notes, " "), "providers.evil providers.mine defaultModel completion.model agent.a.defaultModel"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A link in the folder does not lead to files of the user.
func TestLinksOutside(t *testing.T) {
	needs.Symlinks(t)
	secret := filepath.Join(t.TempDir(), "id_rsa")
	write(t, secret, "PRIVATE")
	f := newFolder(t, "{}", `{"welcomeMessage": "${file:hello.md}"}`)
	if err := os.Symlink(secret, filepath.Join(f.root, ".eca", "hello.md")); err != nil {
		t.Fatal(err)
	}
	if l := f.load(); f.needs() != "welcomeMessage" || strings.Contains(l.WelcomeMessage, "PRIVATE") {
		t.Errorf("%s %q", f.needs(), l.WelcomeMessage)
	}
	// The text that the user is shown before they trust the folder does not contain it either.
	write(t, filepath.Join(f.root, ".eca", "config.json"), `{"hooks": {"h": {"type": "sessionStart", "actions": [{"type": "shell", "file": "./hello.md"}]}}}`)
	if f.load(); strings.Contains(f.asked[0].Text, "PRIVATE") || !strings.Contains(f.asked[0].Text, "not shown: it is a link to "+secret) {
		t.Error(f.asked[0].Text)
	}
	// This also holds if the link appears after the check.
	if text, err := includeFile(filepath.Join(f.root, ".eca", "hello.md"), f.root); err == nil {
		t.Errorf("read %q", text)
	}
}

// docs/trust.md names each key that takes effect without trust, or an object that contains it.
func TestSafeKeysAreNamed(t *testing.T) {
	page := readText(t, filepath.Join("..", "docs", "trust.md"))
	keys := newKeys()
	keys.each(nil, func(path []string, k *key) {
		effect := keys.trustEffect(path)
		if effect == ignored || effect == needsTrust || effect == recurse || path[0] == "$schema" {
			return
		}
		shown := path
		if path[0] == "agent" { // the rows about agents name their keys
			shown = path[2:]
		}
		for n := range shown {
			if strings.Contains(page, "`"+strings.Join(shown[:n+1], ".")+"`") {
				return
			}
		}
		t.Errorf("docs/trust.md says nothing about %s", strings.Join(path, "."))
	})
}

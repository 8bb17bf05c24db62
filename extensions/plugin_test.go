package extensions

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// The user's agents and commands take precedence over those of plugins, and skills and commands of
// plugins have the plugin's name. Files that links outside a plugin lead to are not loaded.
func TestPlugins(t *testing.T) {
	h := newHouse(t)
	h.in.Plugins = []Plugin{{"one", filepath.Join(h.dir, "one")}, {"two", filepath.Join(h.dir, "two-plugin")}}
	h.in.Expand = func(text, _, plugin string) (string, []string, error) {
		return strings.ReplaceAll(text, "${plugin:root}", plugin), nil, nil
	}
	h.write("home/agents/mine.md", "User's.")
	h.write("home/commands/one.md", "User's ${plugin:root}.")
	h.write("one/agents/mine.md", "Plugin's.")
	h.write("one/agents/shared.md", "One's.")
	h.write("two-plugin/agents/shared.md", "Two's.")
	h.write("two-plugin/agents/readme.md", "About.")
	h.write("one/commands/one.md", "Plugin's.")
	h.write("one/commands/deep/Go.md", "Go to ${plugin:root}.")
	h.write("two-plugin/skills/s/SKILL.md", "---\nname: s\ndescription: S\n---\nIn ${plugin:root}.")
	h.write("two-plugin/skills/two/SKILL.md", "---\nname: two\ndescription: Two\n---\n")
	h.write("two-plugin/rules/in/r.txt", "A rule.")
	h.write("elsewhere/secret.md", "Secret.")
	h.write("elsewhere/skills/x/SKILL.md", "---\nname: x\ndescription: X\n---\nSecret.")
	for link, to := range map[string]string{
		"one/rules": "../elsewhere", "one/commands/leak.md": "../../elsewhere/secret.md", "two-plugin/skills/all": filepath.Join(h.dir, "elsewhere"),
		"two-plugin/rules/again": "in",
	} {
		needs.Symlink(t, to, filepath.Join(h.dir, link))
	}
	set, _ := h.loader.Load(h.in)
	got := map[string]string{}
	for _, a := range set.Agents {
		got["agent "+a.ID] = h.rel(a.File)
	}
	for _, c := range set.Commands {
		got["command "+c.Name] = strings.ReplaceAll(c.Body, h.dir, "DIR")
	}
	for _, s := range set.Skills {
		got["skill "+s.Name] = strings.ReplaceAll(s.Body, h.dir, "DIR")
	}
	for _, r := range set.Rules {
		got["rule "+r.Name] = r.Text + " " + r.Scope() + " " + r.Plugin
	}
	want := map[string]string{
		"agent mine": "home/agents/mine.md", "agent shared": "two-plugin/agents/shared.md",
		"command one": "User's .", "command one:go": "Go to DIR/one.",
		"skill two:s": "In DIR/two-plugin.", "skill two": "", "rule r.txt": "A rule. global two",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	var wrong []string
	for _, p := range set.Problems {
		wrong = append(wrong, strings.ReplaceAll(p.String(), h.dir+string(filepath.Separator), ""))
	}
	text := filepath.ToSlash(strings.Join(wrong, "\n"))
	for _, part := range []string{
		"one/agents/shared.md: the agent shared is not used", "one/rules: rules: the link leads out of the plugin",
		"one/commands/leak.md leads out of the plugin", "two-plugin/skills/all leads out of the plugin",
	} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
	if len(wrong) != 4 {
		t.Error(text)
	}
	h.in.Plugins = h.in.Plugins[:1]
	if set, changed := h.loader.Load(h.in); !changed || len(set.Skills) != 0 || set.Agents[1].Plugin != "one" {
		t.Errorf("%v %+v", changed, set)
	}
}

package config

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

//go:embed defaults.jsonc prompts/*.md
var builtinFiles embed.FS

// builtin returns an embedded file. A missing file is a bug in eca.
func builtin(name string) []byte {
	data, err := builtinFiles.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return data
}

// builtinDefaults returns the layer of the default values. The tags of keys declare their defaults;
// the defaults of lists and objects are in defaults.jsonc.
func builtinDefaults(keys *key) *layer {
	l, broken := parse(defaults, builtin("defaults.jsonc"))
	if broken != nil {
		panic(broken)
	}
	keys.defaults(l.content)
	return l
}

// addPrompts adds the built-in prompt texts to the defaults.
func (b *builder) addPrompts() {
	text := func(name string) string { return strings.TrimSpace(string(builtin("prompts/" + name + ".md"))) }
	chat := func(name string) map[string]any {
		return map[string]any{"prompts": map[string]any{"chat": text(name)}}
	}
	l := &layer{source: defaults}
	b.merge(b.merged, map[string]any{
		"prompts": map[string]any{
			"chat": text("code"), "chatTitle": text("title"), "compact": text("compact"), "init": text("init"), "skillCreate": text("skill-create"),
			"completion": text("completion"), "rewrite": text("rewrite"), "environment": text("environment"),
		},
		"agent": map[string]any{"plan": chat("plan"), "explorer": chat("explorer"), "general": chat("general")},
	}, l, nil)
}

// resource returns the text that ${classpath:...} stands for: a built-in prompt or the description
// of a tool. A prompt can be named by its name in this package, or by the name in configurations
// for the reference server.
func resource(name string, tool func(name string) (string, bool)) (string, error) {
	short, isPrompt := strings.CutPrefix(strings.TrimPrefix(name, "/"), "prompts/")
	short, isText := strings.CutSuffix(short, ".md")
	if !isPrompt || !isText {
		return "", fmt.Errorf("only prompts/*.md and prompts/tools/*.md are built in")
	}
	if t, ok := strings.CutPrefix(short, "tools/"); ok {
		if tool != nil {
			if text, ok := tool(strings.TrimPrefix(t, "eca_")); ok {
				return text, nil
			}
		}
		return "", fmt.Errorf("unknown tool %s", t)
	}
	for _, old := range [][2]string{
		{"code_agent", "code"},
		{"agent_behavior", "code"},
		{"plan_agent", "plan"},
		{"plan_behavior", "plan"},
		{"inline_completion", "completion"},
		{"explorer_agent", "explorer"},
		{"additional_system_info", "environment"},
	} {
		if short == old[0] {
			short = old[1]
		}
	}
	for _, file := range []string{short, strings.ReplaceAll(short, "_", "-")} {
		if data, err := builtinFiles.ReadFile(path.Join("prompts", file+".md")); err == nil {
			return strings.TrimSpace(string(data)), nil
		}
	}
	return "", fmt.Errorf("unknown prompt; there are %s", strings.Join(resources(), ", "))
}

// resources lists the built-in prompts.
func resources() []string {
	entries, _ := builtinFiles.ReadDir("prompts") // embedded
	var out []string
	for _, e := range entries {
		out = append(out, "prompts/"+e.Name())
	}
	return out
}

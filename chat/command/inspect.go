package command

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
)

// config shows every value that is set, and where.
func (c *Commands) config(context.Context, input) (string, error) {
	cfg := c.deps.Config()
	var b strings.Builder
	b.WriteString("The effective configuration, with the place of each value. Secrets are hidden.\n\n")
	var lines strings.Builder
	for _, v := range cfg.Values() {
		fmt.Fprintf(&lines, "%s = %s  // %s\n", dotted(v.Path), shownValue(v), v.Origin)
	}
	b.WriteString(fence("jsonc", lines.String()))
	b.WriteString(problems(cfg))
	return b.String(), nil
}

// dotted joins a path of keys; a key with dots is quoted.
func dotted(path []string) string {
	out := make([]string, len(path))
	for i, key := range path {
		out[i] = key
		if strings.ContainsAny(key, ". \"\n") || key == "" {
			raw, _ := marshal(key)
			out[i] = string(raw)
		}
	}
	return strings.Join(out, ".")
}

// maxValue is how much of one value is shown, in runes.
const maxValue = 160

func shownValue(v config.Value) string {
	if v.Secret {
		return redact.Mark
	}
	raw, err := marshal(v.Value)
	if err != nil {
		return err.Error()
	}
	if r := []rune(string(raw)); len(r) > maxValue {
		return fmt.Sprintf("%s... (%s)", string(r[:maxValue]), count(len(r), "character"))
	}
	return string(raw)
}

// problems lists what is wrong with the configuration; empty if nothing is.
func problems(cfg *config.Loaded) string {
	if len(cfg.Problems) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nNot used, because it is wrong:\n\n")
	for _, p := range cfg.Problems {
		fmt.Fprintf(&b, "- %s\n", p)
	}
	return b.String()
}

// Status is what only the assembled program knows about itself.
type Status struct {
	Command   []string // how it was started
	Default   string   // the default model; empty: none
	Why       string   // why it is that
	Providers []ProviderStatus
	// Environment lists the variables that matter and are set; an empty value is hidden.
	Environment []Variable
	StoreFile   string
}

// ProviderStatus says whether a provider can be used.
type ProviderStatus struct {
	Name, API string
	Problem   string // empty if it has what it needs
}

// Variable is an environment variable.
type Variable struct{ Name, Value string }

// doctor reports what somebody would ask first when something does not work.
func (c *Commands) doctor(ctx context.Context, _ input) (string, error) {
	st, cfg := c.deps.Status(), c.deps.Config()
	var b strings.Builder
	section := func(name string) { fmt.Fprintf(&b, "\n### %s\n\n", name) }
	fmt.Fprintf(&b, "- Version: %s\n- Command: `%s`\n", c.deps.Version, strings.Join(st.Command, " "))
	for _, root := range c.deps.Roots() {
		fmt.Fprintf(&b, "- Workspace folder: `%s`\n", root)
	}
	if len(c.deps.Roots()) == 0 {
		b.WriteString("- Workspace folders: none\n")
	}

	section("Models")
	model := "none"
	if st.Default != "" {
		model = "`" + st.Default + "`"
	}
	fmt.Fprintf(&b, "- Default model: %s (%s)\n- Models to choose from: %d\n", model, st.Why, len(c.deps.Choice().IDs))
	for _, p := range st.Providers {
		mark, state := "✅", "has what it needs"
		if p.Problem != "" {
			mark, state = "❌", p.Problem
		}
		fmt.Fprintf(&b, "- %s Provider `%s` (%s): %s\n", mark, p.Name, p.API, state)
	}

	section("Environment")
	for _, v := range st.Environment {
		value := "set, hidden"
		if v.Value != "" {
			value = "`" + v.Value + "`"
		}
		fmt.Fprintf(&b, "- `%s`: %s\n", v.Name, value)
	}
	if len(st.Environment) == 0 {
		b.WriteString("- None of the variables that eca reads is set.\n")
	}

	section("Chat store")
	list, err := c.deps.Engine().List(ctx, chat.ByUpdated, 0)
	if err != nil {
		fmt.Fprintf(&b, "- ❌ `%s`: %v\n", st.StoreFile, err)
	} else {
		fmt.Fprintf(&b, "- ✅ `%s` can be read; %s of these workspace folders\n", st.StoreFile, count(len(list), "chat"))
	}

	section("Configuration")
	if found := problems(cfg); found != "" {
		b.WriteString("❌ " + strings.TrimSpace(found) + "\n")
	} else {
		b.WriteString("✅ No problems. `/config` shows every value and where it comes from.\n")
	}
	return b.String(), nil
}

// promptShow shows the request that a prompt would make.
func (c *Commands) promptShow(ctx context.Context, in input) (string, error) {
	req, err := in.session.Preview(in.rest).Wait(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "What `%s` would be sent. Secrets are hidden.\n\n## System prompt\n\n%s", req.Model, fence("", req.Instructions()))
	fmt.Fprintf(&b, "\n## Messages (%d)\n", len(req.Messages))
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "\n%s", part(m.Role, p))
		}
	}
	fmt.Fprintf(&b, "\n## Tools (%d)\n", len(req.Tools))
	for _, t := range req.Tools {
		fmt.Fprintf(&b, "\n**%s**\n\n%s%s", t.Name, fence("", t.Description), fence("json", indented(t.Schema)))
	}
	return b.String(), nil
}

// part shows a part of a message.
func part(role llm.Role, p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return fmt.Sprintf("**%s**\n\n%s", role, fence("", p.Text))
	case llm.Reasoning:
		return fmt.Sprintf("**%s, reasoning**\n\n%s", role, fence("", p.Text))
	case llm.ToolCall:
		return fmt.Sprintf("**%s calls `%s`** (%s)\n\n%s", role, p.Name, p.ID, fence("json", indented(p.Arguments)))
	case llm.ToolResult:
		return fmt.Sprintf("**result** (%s)\n\n%s", p.ID, fence("", p.Text))
	}
	return fmt.Sprintf("**%s**: a part of the type %T\n", role, p)
}

func indented(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// repoMapShow shows the map that models can ask for.
func (c *Commands) repoMapShow(ctx context.Context, in input) (string, error) {
	text, err := c.deps.RepoMap(ctx, c.deps.Roots(), in.args)
	switch {
	case err != nil:
		return "", err
	case text == "":
		return "The workspace has no source code that could be mapped.", nil
	}
	return fence("", text), nil
}

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
)

// config shows every value that is set and where it is set.
func (c *Commands) config(context.Context, input) (string, error) {
	cfg := c.deps.Config()
	var b strings.Builder
	b.WriteString("The effective configuration, with the place of each value. Secrets are hidden.\n\n")
	var lines strings.Builder
	for _, v := range cfg.Values() {
		fmt.Fprintf(&lines, "%s = %s  // %s\n", config.KeyPath(v.Path), shownValue(v), v.Origin)
	}
	b.WriteString(fence("jsonc", lines.String()))
	b.WriteString(listProblems(cfg.Mistakes()))
	return b.String(), nil
}

// maxValue is the maximum length of a shown value, in runes.
const maxValue = 160

func shownValue(v config.Value) string {
	text := v.Text()
	if r := []rune(text); len(r) > maxValue {
		return fmt.Sprintf("%s... (%s)", string(r[:maxValue]), count(len(r), "character"))
	}
	return text
}

// listProblems lists errors and warnings about the configuration. It returns "" for an empty list.
func listProblems(findings []config.Finding) string {
	if len(findings) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nProblems in the configuration:\n\n")
	for _, f := range findings {
		fmt.Fprintf(&b, "- %s\n", f)
	}
	return b.String()
}

// doctor shows the report of the checks of the installation.
func (c *Commands) doctor(ctx context.Context, _ input) (string, error) {
	report := c.deps.Doctor(ctx)
	verdict := "No problems found."
	if !report.Healthy {
		verdict = "❌ Problems found; see below."
	}
	return verdict + "\n" + report.Markdown(), ctx.Err()
}

// infoSkill is the name of the built-in skill that gives the model a report on the running eca.
const infoSkill = "eca-info"

// ecaInfo returns the prompt with the report on the running eca.
func (c *Commands) ecaInfo(ctx context.Context) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Below is a report on the eca that you run in. Use it to answer my next questions about its configuration. If it shows a problem, explain the cause and the remedy; otherwise say in one sentence that all is well.\n\n# eca %s\n", c.deps.Version)
	fmt.Fprintf(&b, "\n- Workspace folders: %s\n- Default model: %s\n- Models: %s\n", joinOrNone(c.deps.Roots()), c.deps.Choice().Default, joinOrNone(c.deps.Choice().IDs))
	fmt.Fprintf(&b, "- Agents: %s\n", joinOrNone(slices.Sorted(maps.Keys(c.deps.Config().Agents))))
	var skills []string
	for _, s := range c.deps.Extensions().Skills {
		skills = append(skills, s.Name)
	}
	fmt.Fprintf(&b, "- Skills: %s\n", joinOrNone(append(skills, infoSkill)))
	b.WriteString(c.deps.Doctor(ctx).Markdown())
	return c.redactor().String(b.String()), ctx.Err()
}

func joinOrNone(items []string) string {
	if len(items) == 0 {
		return "none"
	}
	return strings.Join(items, ", ")
}

// promptShow shows the request that a prompt would make.
func (c *Commands) promptShow(ctx context.Context, in input) (string, error) {
	req, err := in.session.Preview(in.rest).Wait(ctx)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "This is the request that `%s` would get. Secrets are hidden.\n\n# Instructions (System prompt)\n\n%s", req.Model, fence("", req.Instructions()))
	if len(req.Messages) > 0 {
		fmt.Fprintf(&b, "\n# Messages (%d)\n", len(req.Messages))
	}
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			fmt.Fprintf(&b, "\n%s", formatPart(m.Role, p))
		}
	}
	fmt.Fprintf(&b, "\n# Tools (%d)\n\nTool schemas are sent separately from the text above.\n", len(req.Tools))
	for _, t := range req.Tools {
		fmt.Fprintf(&b, "\n**%s**\n\n%s%s", t.Name, fence("", t.Description), fence("json", indentJSON(t.Schema)))
	}
	return b.String(), nil
}

// formatPart formats a part of a message.
func formatPart(role llm.Role, p llm.Part) string {
	switch p := p.(type) {
	case llm.Text:
		return fmt.Sprintf("**%s**\n\n%s", role, fence("", p.Text))
	case llm.Reasoning:
		return fmt.Sprintf("**%s, reasoning**\n\n%s", role, fence("", p.Text))
	case llm.ToolCall:
		return fmt.Sprintf("**%s calls `%s`** (%s)\n\n%s", role, p.Name, p.ID, fence("json", indentJSON(p.Arguments)))
	case llm.ServerCall:
		return fmt.Sprintf("**%s used `%s` of its provider** (%s)\n", role, p.Name, p.ID)
	case llm.ToolResult:
		return fmt.Sprintf("**result** (%s)\n\n%s", p.ID, fence("", p.Text))
	}
	return fmt.Sprintf("**%s**: a part of the type %T\n", role, p)
}

func indentJSON(raw json.RawMessage) string {
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

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// hooks lists the user's hooks by event, and the errors in their configuration.
func (c *Commands) hooks(context.Context, input) (string, error) {
	list := c.deps.Hooks()
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString("There are no hooks. They are configured as `hooks`; see docs/hooks.md.\n")
	}
	for _, event := range hooks.Events() {
		first := true
		for _, h := range list {
			if h.Event != event {
				continue
			}
			if first {
				fmt.Fprintf(&b, "\n### %s\n\n", event)
				first = false
			}
			b.WriteString(hookLine(h))
		}
	}
	b.WriteString(listProblems(slices.DeleteFunc(c.deps.Config().Mistakes(), func(f config.Finding) bool { return !strings.HasPrefix(f.Message, "hooks.") })))
	return b.String(), nil
}

func hookLine(h hooks.Info) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- **%s**", h.Name)
	if h.Description != "" {
		b.WriteString(": " + h.Description)
	}
	if h.Matcher != "" {
		b.WriteString("; for " + inline(h.Matcher))
	}
	if !h.Visible {
		b.WriteString("; not shown")
	}
	if h.Source != "" {
		b.WriteString("; from " + inline(h.Source))
	}
	b.WriteByte('\n')
	const maxAction = 120
	for _, a := range h.Actions {
		b.WriteString("  - " + inline(shorten.Text(strings.Join(strings.Fields(a), " "), maxAction)) + "\n")
	}
	return b.String()
}

// inline formats a text as inline code, even if it contains backticks.
func inline(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}

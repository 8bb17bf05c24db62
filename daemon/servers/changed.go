package servers

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// maxListed limits the number of tools that a question or a notice lists.
const maxListed = 20

// changedServers returns a description of the changes that wait for the user's agreement, by
// server.
func (sv *Servers) changedServers() map[string]string {
	out := map[string]string{}
	sv.agreements.mu.Lock()
	for name, h := range sv.agreements.pendingLaunches {
		out[name] = "How it is started has changed: " + h.difference + "."
	}
	sv.agreements.mu.Unlock()
	for _, status := range sv.manager.Statuses() {
		if status.Offer == nil {
			continue
		}
		var lines []string
		for _, t := range status.Offer.Tools {
			before, changed := t.Changed()
			if !changed {
				continue
			}
			line := "- `" + t.Spec().Name + "`: different parameters"
			if now := t.Described().Description; now != before.Description {
				line = fmt.Sprintf("- `%s` was: %s\n  and is now: %s", t.Spec().Name, oneParagraph(before.Description), oneParagraph(now))
			}
			lines = append(lines, line)
		}
		if more := len(lines) - maxListed; more > 0 {
			lines = append(lines[:maxListed], fmt.Sprintf("- and %d more", more))
		}
		if len(lines) > 0 {
			out[status.Name] = "The descriptions of its tools have changed:\n" + strings.Join(lines, "\n")
		}
	}
	return out
}

// oneParagraph returns a server's text as one quoted paragraph of limited length.
func oneParagraph(text string) string {
	const limit = 600
	return "“" + shorten.Bytes(strings.Join(strings.Fields(text), " "), limit) + "”"
}

// agreeLabel is the answer with which the user agrees.
const agreeLabel = "Allow it"

// AskChanged asks the user, in a chat, about servers that have changed. It asks about each change
// once; meanwhile the chat uses only what the user agreed to.
func (sv *Servers) AskChanged(ctx context.Context, chatID string, questions ask.Client) {
	changes := sv.changedServers()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if sv.agreements.wasAsked(consent.Sum(name, changes[name])) {
			continue
		}
		answer, err := questions.Ask(ctx, ask.Question{
			ChatID: chatID, Text: fmt.Sprintf("The MCP server `%s` has changed since you agreed to it. %s", name, changes[name]),
			Options: []ask.Option{
				{Label: agreeLabel, Description: "Use the server as it is now", Grants: true},
				{Label: "Not now", Description: "Ask about each call of a changed tool; a changed command is not started"},
			},
		})
		switch {
		case err != nil:
			if ctx.Err() == nil {
				sv.opts.Log.Warn("cannot ask the user about an MCP server", "server", name, "err", err)
			}
			return
		case !answer.Cancelled && answer.Text == agreeLabel && sv.changedServers()[name] == changes[name]:
			sv.AllowMCPServer(name)
		}
	}
}

// ChangedServers returns notices about servers that have changed, if the user cannot be asked.
func (sv *Servers) ChangedServers() []string {
	if sv.opts.Questions() != nil {
		return nil
	}
	var out []string
	changes := sv.changedServers()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		until := "Each call of a changed tool needs your approval."
		if sv.agreements.isPending(name) {
			until = "It does not start."
		}
		out = append(out, fmt.Sprintf("The MCP server %s has changed since you agreed to it. %s\n%s To agree to all changes, run: eca mcp allow %s", name, changes[name], until, visible.Argument(name)))
	}
	return out
}

package command

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/chat/search"
)

// search finds messages in all chats of the machine.
func (c *Commands) search(ctx context.Context, in input) (string, error) {
	const waitForIndex = false // an incomplete result now is better than a late one
	found, err := c.deps.Search(ctx, in.rest, search.DefaultLimit, waitForIndex)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for _, p := range found.Problems {
		fmt.Fprintf(&b, "Note: %s.\n\n", escape(p))
	}
	if len(found.Hits) == 0 {
		b.WriteString("Nothing was found.")
		if hint := search.MisspelledFilter(in.rest); hint != "" {
			fmt.Fprintf(&b, "\n\nNote: %s\n", escape(hint))
		}
	}
	for _, h := range found.Hits {
		title, err := c.deps.Engine().DisplayTitle(ctx, h.Chat, h.Title)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "- **%s**, %s, %s, `%s`", escape(title), h.At.Format("2006-01-02 15:04"), h.Role, h.Chat)
		if len(h.Workspace) > 0 {
			fmt.Fprintf(&b, ", %s", escape(strings.Join(h.Workspace, ", ")))
		}
		b.WriteString("\n  ")
		for _, p := range h.Snippet {
			text := escape(collapseSpace(p.Text))
			if p.Match {
				text = "**" + text + "**"
			}
			b.WriteString(text)
		}
		b.WriteString("\n")
	}
	if found.More {
		b.WriteString("\nThere are older messages. More words, `role:`, `workspace:`, `since:` or `until:` narrow the search.\n")
	}
	if found.Incomplete {
		b.WriteString("\nNot all chats are in the index yet; search again later.\n")
	}
	return b.String(), nil
}

// collapseSpace replaces each run of white space by a space, also at the beginning and the end.
func collapseSpace(text string) string {
	joined := strings.Join(strings.Fields(text), " ")
	if joined == "" && text != "" {
		return " "
	}
	if strings.TrimLeftFunc(text, unicode.IsSpace) != text {
		joined = " " + joined
	}
	if strings.TrimRightFunc(text, unicode.IsSpace) != text {
		joined += " "
	}
	return joined
}

// escape escapes the characters with which Markdown most often formats a text. It does not escape
// &, ~, nor - and > at the beginning of a line.
func escape(text string) string {
	return strings.NewReplacer("\\", `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "<", `\<`, "#", `\#`, "|", `\|`).Replace(text)
}

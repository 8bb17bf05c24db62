package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
)

// modelUsage is the usage of a model in a chat.
type modelUsage struct {
	model                                  string
	requests, priced                       int
	input, output, cacheRead, cacheWritten int64
	cost                                   float64
}

// costs shows the usage of this chat by model, and that of all chats.
func (c *Commands) costs(ctx context.Context, in input) (string, error) {
	events, err := transcript(ctx, in.session)
	if err != nil {
		return "", err
	}
	var list []*modelUsage
	var total *float64
	model := ""
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.TurnStarted:
			model = b.Model
		case event.UsageReported:
			by := model
			if b.Purpose == chat.PurposeSubagent {
				by = "(subagents)" // subagents may use other models
			}
			i := slices.IndexFunc(list, func(s *modelUsage) bool { return s.model == by })
			if i < 0 {
				i, list = len(list), append(list, &modelUsage{model: by})
			}
			list[i].add(b)
			if b.TotalCost != nil {
				total = b.TotalCost
			}
		default:
		}
	}
	// The record of spending includes requests that a rollback removed from the chat. The chat
	// includes requests that are older than the record. The higher cost is shown.
	if used, err := c.deps.Spending.Chat(ctx, in.session.ID()); err == nil && used.Cost > 0 && (total == nil || used.Cost > *total) {
		total = &used.Cost
	}
	if len(list) == 0 && total == nil {
		return noAnswerYet + "\n" + c.recentSpending(ctx), nil
	}
	var b strings.Builder
	if len(list) == 0 {
		b.WriteString("No request is left in this chat.\n")
	} else {
		b.WriteString("| model | requests | input | from cache | to cache | output | cost |\n|---|---|---|---|---|---|---|\n")
	}
	unpriced, listed := 0, 0.0
	for _, s := range list {
		listed += s.cost
		cost := "unknown"
		if s.priced > 0 {
			cost = fmt.Sprintf("$%.4f", s.cost)
		}
		unpriced += s.requests - s.priced
		fmt.Fprintf(&b, "| %s | %d | %s | %s | %s | %s | %s |\n",
			s.model, s.requests, thousands(s.input), thousands(s.cacheRead), thousands(s.cacheWritten), thousands(s.output), cost)
	}
	if total != nil {
		fmt.Fprintf(&b, "\nThis chat has cost **$%.4f** so far.", *total)
		if list != nil && *total > listed+0.00005 {
			b.WriteString(" This includes requests that are not in the table: those of messages that were removed since, and estimates for requests that were stopped.")
		}
		b.WriteString("\n")
	}
	if unpriced > 0 {
		fmt.Fprintf(&b, "\nThe price of %s is not known: set `cost` of the model in the configuration.\n", count(unpriced, "request"))
	}
	return b.String() + c.recentSpending(ctx), nil
}

const noAnswerYet = "No model has answered in this chat yet."

func (s *modelUsage) add(u event.UsageReported) {
	s.requests++
	s.input += u.InputTokens
	s.output += u.OutputTokens
	s.cacheRead += u.CacheReadTokens
	s.cacheWritten += u.CacheWriteTokens
	if u.Cost != nil {
		s.priced++
		s.cost += *u.Cost
	}
}

// Size of the drawing of the context.
const (
	gridWidth = 10
	gridCells = gridWidth * gridWidth
	freeEmoji = "⬜"
)

// context draws the use of the context by the last request.
func (c *Commands) context(ctx context.Context, in input) (string, error) {
	events, err := transcript(ctx, in.session)
	if err != nil {
		return "", err
	}
	var used *event.UsageReported
	var system event.SystemPrompt
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.UsageReported:
			if b.Purpose == "" {
				used = &b
			}
		case event.SystemPrompt:
			if len(b.Parts) > 0 {
				system = b
			}
		default:
		}
	}
	if used == nil {
		return noAnswerYet, nil
	}
	meta := in.session.Meta()
	return drawContext(*used, meta.Model, c.deps.Config().AutoCompact(meta.Agent)) + listSystem(system), nil
}

// listSystem lists the blocks of the system prompt.
func listSystem(p event.SystemPrompt) string {
	if len(p.Parts) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\nThe system prompt, block by block (estimated tokens):\n\n")
	for _, part := range p.Parts {
		fmt.Fprintf(&b, "- %s %s: %s\n", emoji(part.Category), part.Name, thousands(chat.Tokens(part.Text)))
	}
	return b.String()
}

func drawContext(u event.UsageReported, model string, autoCompact int) string {
	used := u.InputTokens + u.OutputTokens + u.CacheReadTokens + u.CacheWriteTokens
	whole := max(u.ContextLimit, used, 1)
	var cells []string
	for _, s := range u.Share {
		if n := int((s.Tokens*gridCells + whole/2) / whole); s.Tokens > 0 {
			cells = append(cells, slices.Repeat([]string{emoji(s.Category)}, max(n, 1))...)
		}
	}
	cells = cells[:min(len(cells), gridCells)]
	cells = append(cells, slices.Repeat([]string{freeEmoji}, gridCells-len(cells))...)

	var b strings.Builder
	fmt.Fprintf(&b, "Context of `%s`: %s", model, thousands(used))
	switch {
	case u.ContextLimit == 0:
		b.WriteString(" tokens; the model's limit is not known")
	case used > u.ContextLimit:
		fmt.Fprintf(&b, " tokens, more than the model's limit of %s. The model answered, so the limit is wrong: correct `limit.context` of the model in the configuration", thousands(u.ContextLimit))
	default:
		fmt.Fprintf(&b, " of %s tokens (%s)", thousands(u.ContextLimit), percent(used, u.ContextLimit))
	}
	b.WriteString("\n\n")
	for row := range slices.Chunk(cells, gridWidth) {
		b.WriteString(strings.Join(row, "") + "\n")
	}
	b.WriteString("\n")
	for _, s := range u.Share {
		fmt.Fprintf(&b, "- %s %s: %s (%s)\n", emoji(s.Category), s.Category, thousands(s.Tokens), percent(s.Tokens, whole))
	}
	if u.ContextLimit > 0 {
		free := max(u.ContextLimit-used, 0)
		fmt.Fprintf(&b, "- %s Free: %s (%s)\n", freeEmoji, thousands(free), percent(free, whole))
	}
	if autoCompact > 0 {
		fmt.Fprintf(&b, "\nAuto-compact at %d%%", autoCompact)
		if u.ContextLimit > 0 {
			fmt.Fprintf(&b, ": %s tokens", thousands(u.ContextLimit*int64(autoCompact)/100))
		}
		b.WriteString("\n")
	}
	b.WriteString("\nThe parts are estimates; the sum is what the provider counted.\n")
	return b.String()
}

// emoji returns the emoji that represents a category in all clients (eca-protocol.md 7.2).
func emoji(category string) string {
	switch category {
	case "System prompt":
		return "🟦"
	case "Rules":
		return "🟪"
	case "Skills":
		return "🟨"
	case "AGENTS.md":
		return "🟫"
	case "Tool definitions":
		return "🟧"
	case "Tool calls":
		return "🟥"
	}
	return "🟩"
}

func percent(part, whole int64) string {
	return fmt.Sprintf("%.1f%%", 100*float64(part)/float64(whole))
}

// thousands groups digits: 12,345.
func thousands(n int64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

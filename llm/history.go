package llm

import (
	"context"
	"iter"
	"slices"
)

// Modes that determine which earlier reasoning is sent back to a model (eca-features.md 4.1,
// reasoningHistory). Some providers require all of it; sending less saves tokens.
const (
	HistoryAll  = "all"
	HistoryTurn = "turn" // only reasoning since the user's last message
	HistoryOff  = "off"
)

// WithReasoningHistory returns a model whose requests contain earlier reasoning according to mode.
// An unknown mode means HistoryAll.
func WithReasoningHistory(m Model, mode string) Model {
	if mode != HistoryTurn && mode != HistoryOff {
		return m
	}
	return &reasoningFilter{m, mode}
}

type reasoningFilter struct {
	model Model
	mode  string
}

func (f *reasoningFilter) Stream(ctx context.Context, req Request) iter.Seq2[Delta, error] {
	end := len(req.Messages)
	if f.mode == HistoryTurn {
		for end > 0 && !isPrompt(req.Messages[end-1]) {
			end--
		}
	}
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages[:end] {
		req.Messages[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool {
			_, isReasoning := p.(Reasoning)
			return isReasoning
		})
	}
	return f.model.Stream(ctx, req)
}

// isPrompt reports whether a message contains input of the user. A message with only tool results
// continues a turn.
func isPrompt(m Message) bool {
	return m.Role == User && slices.ContainsFunc(m.Parts, func(p Part) bool {
		_, result := p.(ToolResult)
		return !result
	})
}

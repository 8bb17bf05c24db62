package llm

import (
	"context"
	"iter"
	"slices"
)

// What of its earlier reasoning a model is sent back (eca-features 4.1,
// reasoningHistory). Providers want all of it, or tokens saved.
const (
	HistoryAll  = "all"
	HistoryTurn = "turn" // that since the user's last message
	HistoryOff  = "off"
)

// WithReasoningHistory returns a model that is sent as much reasoning as mode says; an
// unknown mode is HistoryAll.
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
		for end > 0 && !prompts(req.Messages[end-1]) {
			end--
		}
	}
	req.Messages = slices.Clone(req.Messages)
	for i, m := range req.Messages[:end] {
		req.Messages[i].Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p Part) bool {
			_, is := p.(Reasoning)
			return is
		})
	}
	return f.model.Stream(ctx, req)
}

// prompts says whether the user says something in a message; results of tools alone go
// on with a turn.
func prompts(m Message) bool {
	return m.Role == User && slices.ContainsFunc(m.Parts, func(p Part) bool {
		_, result := p.(ToolResult)
		return !result
	})
}

package anthropic

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/llm"
)

// betaBinding is the beta that lets a request set what happens to thinking whose conversation has
// changed.
const betaBinding = "thinking-binding-controls-2026-08-01"

// The thinking budget in tokens for models that need one (eca-features.md 7), and the smallest one
// that the API accepts.
const (
	thinkingBudget = 2048
	minBudget      = 1024
)

// CanThink reports whether a model can probably think: all models except Claude before 3.7.
func CanThink(model string) bool {
	v, claude := claudeVersion(model)
	return !claude || v >= 307
}

// bindsThinking reports whether a model binds its thinking to everything before it in the
// conversation, and refuses the conversation if that has changed. eca has such a model drop the thinking
// instead, because tools change and old results are pruned.
func bindsThinking(model string) bool {
	v, claude := claudeVersion(model)
	return claude && v >= 501
}

// thinking returns the field that asks a model to think, or nil. Newer Claude models accept only
// the adaptive form, others only the form with a budget.
func thinking(req llm.Request, maxTokens int64, msgs []message) map[string]any {
	if !req.Reasoning {
		return nil
	}
	var out map[string]any
	switch v, _ := claudeVersion(req.Model); {
	case v >= 406:
		out = map[string]any{"type": "adaptive"}
		if v >= 407 {
			out["display"] = "summarized" // otherwise the text is left out
		}
		if bindsThinking(req.Model) {
			out["block_binding"] = map[string]any{"prefix_mismatch_behavior": "drop_block"}
		}
	case maxTokens < 2*minBudget || !allowsThinkingBudget(msgs):
		return nil
	default:
		out = map[string]any{"type": "enabled", "budget_tokens": min(thinkingBudget, maxTokens/2)}
	}
	// A different form in the user's payload replaces this one, because the fields of two forms
	// must not be combined.
	if theirs, ok := req.Extra["thinking"].(map[string]any); ok && theirs["type"] != nil && theirs["type"] != out["type"] {
		return nil
	}
	return out
}

// allowsThinkingBudget reports whether the conversation allows thinking with a budget. While the model
// calls tools, its first message after the user's message must begin with thinking. That is not so if
// the calls were made through another API or by a model without thinking.
func allowsThinkingBudget(msgs []message) bool {
	first := len(msgs)
	for i := len(msgs) - 1; i > 0 && msgs[i].has("tool_result"); i -= 2 {
		first = i - 1
	}
	return first == len(msgs) || msgs[first].Content[0].raw != nil
}

// thinkingData is the part of a thinking block that must be sent back: a signature, or the encrypted
// thinking.
type thinkingData struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// replay returns a thinking block as it is sent back to the model, or nil if there is nothing to
// send.
func replay(r llm.Reasoning) json.RawMessage {
	var s thinkingData
	if err := json.Unmarshal(r.Opaque, &s); err != nil {
		return nil
	}
	var block any
	switch {
	case s.Redacted != "":
		block = struct {
			Type string `json:"type"`
			Data string `json:"data"`
		}{"redacted_thinking", s.Redacted}
	case s.Signature != "" || r.Text != "":
		block = struct {
			Type      string `json:"type"`
			Thinking  string `json:"thinking"`
			Signature string `json:"signature,omitempty"` // some compatible servers send none
		}{"thinking", r.Text, s.Signature}
	default:
		return nil
	}
	raw, _ := json.Marshal(block) // strings always encode
	return raw
}

// claudeVersion returns the version of a Claude model (see llm.ClaudeVersion). A Claude model
// without a version is treated as a recent one.
func claudeVersion(model string) (v int, claude bool) {
	const recent = 407
	if v, claude = llm.ClaudeVersion(model); claude && v == 0 {
		v = recent
	}
	return v, claude
}

package anthropic

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// betaBinding lets a request say what happens to thinking whose conversation changed.
const betaBinding = "thinking-binding-controls-2026-08-01"

// Tokens to think with where the model does not choose itself (eca-features 7), and the
// least that the API takes.
const (
	thinkingBudget = 2048
	minBudget      = 1024
)

// CanThink says whether a model is likely able to think: all but the Claude models
// before 3.7.
func CanThink(model string) bool {
	v, claude := claudeVersion(model)
	return !claude || v >= 307
}

// bindsThinking says whether a model ties its thinking to all that came before it, and
// refuses a conversation in which that changed. It is asked to forget such thinking
// instead: tools come and go, and old results are pruned.
func bindsThinking(model string) bool {
	v, claude := claudeVersion(model)
	return claude && v >= 501
}

// thinking is how a model is asked to think; nil if it is not. Newer Claude models take
// the adaptive form only, others the one with a budget only.
func thinking(req llm.Request, maxTokens int64, msgs []message) map[string]any {
	if !req.Reasoning {
		return nil
	}
	var out map[string]any
	switch v, _ := claudeVersion(req.Model); {
	case v >= 406:
		out = map[string]any{"type": "adaptive"}
		if v >= 407 {
			out["display"] = "summarized" // the text is left out otherwise
		}
		if bindsThinking(req.Model) {
			out["block_binding"] = map[string]any{"prefix_mismatch_behavior": "drop_block"}
		}
	case maxTokens < 2*minBudget || !loopThinks(msgs):
		return nil
	default:
		out = map[string]any{"type": "enabled", "budget_tokens": min(thinkingBudget, maxTokens/2)}
	}
	// Another form in the user's payload replaces ours: their fields do not mix.
	if theirs, ok := req.Extra["thinking"].(map[string]any); ok && theirs["type"] != nil && theirs["type"] != out["type"] {
		return nil
	}
	return out
}

// loopThinks says whether thinking with a budget is possible: while the model calls
// tools, the first of its messages since the user spoke must begin with thinking. It
// does not if another API or a model without thinking made the calls.
func loopThinks(msgs []message) bool {
	first := len(msgs)
	for i := len(msgs) - 1; i > 0 && msgs[i].has("tool_result"); i -= 2 {
		first = i - 1
	}
	return first == len(msgs) || msgs[first].Content[0].raw != nil
}

// sealed is what a model's thinking comes with: a signature, or the thinking itself in a
// form that only the provider can read.
type sealed struct {
	Signature string `json:"signature,omitempty"`
	Redacted  string `json:"redacted,omitempty"`
}

// replay is thinking as it goes back to the model; nil if there is nothing to send.
func replay(r llm.Reasoning) json.RawMessage {
	var s sealed
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
			Signature string `json:"signature,omitempty"` // some compatible servers give none
		}{"thinking", r.Text, s.Signature}
	default:
		return nil
	}
	raw, _ := json.Marshal(block) // strings always encode
	return raw
}

// claudeVersion reads the version in a Claude model's name as major*100+minor, like 406
// for claude-sonnet-4-6, claude-4.6-sonnet and anthropic/claude-sonnet-4-6-20260217;
// claude is false for other models. A Claude without a version counts as a recent one.
func claudeVersion(model string) (v int, claude bool) {
	_, name, claude := strings.Cut(strings.ToLower(model), "claude-")
	if !claude {
		return 0, false
	}
	const unknown = 407
	v = unknown
	for _, token := range strings.FieldsFunc(name, func(r rune) bool { return !isAlnum(r) }) {
		n, err := strconv.Atoi(token)
		switch {
		case err != nil || len(token) > 2:
			if v != unknown {
				return v, true
			}
		case v == unknown:
			v = n * 100
		default:
			return v + n, true
		}
	}
	return v, true
}

func isAlnum(r rune) bool { return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' }

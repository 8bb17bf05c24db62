package history

import (
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// Full reports whether the conversation takes at least share percent of the model's limit, in
// tokens. After a compaction, successful or not, the conversation has to grow by a tenth of the
// limit first: the instructions alone may be that long, and another summary would not help.
func (h *History) Full(limit, share int64) bool {
	const growth = 10 // percent of the limit
	if limit == 0 || share <= 0 || h.used*100 < limit*share {
		return false
	}
	return h.usedAfterCompaction == 0 || (h.used-h.usedAfterCompaction)*100 >= limit*growth
}

// addUsage notes the tokens of a request of the conversation and its answer.
func (h *History) addUsage(b event.UsageReported) {
	h.used = b.InputTokens + b.OutputTokens + b.CacheReadTokens + b.CacheWriteTokens
	if h.justCompacted {
		h.usedAfterCompaction, h.justCompacted = h.used, false
	}
}

// NoteFailedCompaction makes Full return false until the conversation has grown.
func (h *History) NoteFailedCompaction() { h.usedAfterCompaction = h.used }

// compact replaces all messages with a summary, except prompts at the end that are not answered yet.
func (h *History) compact(c event.Compacted) {
	h.flush()
	h.used, h.justCompacted = 0, true
	clear(h.rules)
	clear(h.instructedFiles)
	if c.Summary == "" { // an imported chat has the summary in the next message
		h.messages = nil
		clear(h.imagesWithheld)
		return
	}
	pending := len(h.messages)
	for pending > 0 && isPrompt(h.messages[pending-1]) {
		pending--
	}
	text := "This conversation was compacted. This is a summary of it:\n\n" + strings.TrimSpace(c.Summary)
	if c.Auto && pending == len(h.messages) {
		text += "\n\nGo on with what the user asked for last, from where it stands."
	}
	summary := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
	for model, n := range h.imagesWithheld {
		h.imagesWithheld[model] = max(0, n-pending) + 1
	}
	h.messages = append([]llm.Message{summary}, h.messages[pending:]...)
}

// isPrompt reports whether a message is the user's, and not results of calls.
func isPrompt(m llm.Message) bool {
	return m.Role == llm.User && !slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
		_, result := p.(llm.ToolResult)
		return result
	})
}

// prunedText replaces the text of a result that was pruned.
const prunedText = "(This result was left out because the conversation became too long. Run the tool again if you need it.)"

// prune replaces the results of calls with prunedText.
func (h *History) prune(callIDs []string) {
	h.flush()
	for _, id := range callIDs {
		delete(h.rules, id)
		delete(h.instructedFiles, id)
	}
	out := make([]llm.Message, len(h.messages))
	for i, m := range h.messages {
		out[i] = llm.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
		for j, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok && slices.Contains(callIDs, r.ID) {
				r.Text, r.Images = prunedText, nil
				out[i].Parts[j] = r
			}
		}
	}
	h.messages, h.used = out, 0
}

// OldResults returns the calls whose results to prune: those that precede the newest keep tokens of
// results and are noticeably longer than prunedText.
func (h *History) OldResults(keep int64) []string {
	h.flush()
	var out []string
	var tokens int64
	for _, m := range slices.Backward(h.messages) {
		for _, p := range slices.Backward(m.Parts) {
			r, ok := p.(llm.ToolResult)
			if !ok {
				continue
			}
			tokens += Tokens(ResultBytes(r))
			if tokens > keep && ResultBytes(r) > 2*len(prunedText) {
				out = append(out, r.ID)
			}
		}
	}
	slices.Reverse(out)
	return out
}

// ImageBytes is the number of bytes of text that an image counts as in estimates. Its price depends
// on its pixels, not on the size of its file.
const ImageBytes = 4 * 1500

// ResultBytes returns the number of bytes of text that a result counts as.
func ResultBytes(r llm.ToolResult) int { return len(r.Text) + ImageBytes*len(r.Images) }

// ServerCallBytes is like ResultBytes, for a call that the provider ran.
func ServerCallBytes(c llm.ServerCall) int { return len(c.Opaque) + ImageBytes*len(c.Images) }

// BytesPerToken is the usual rough estimate.
const BytesPerToken = 4

// Tokens estimates the number of tokens in a text of the given number of bytes.
func Tokens(bytes int) int64 { return int64(bytes+BytesPerToken-1) / BytesPerToken }

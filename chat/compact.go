package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/llm"
)

// A conversation that grows beyond what its model takes is kept going: near the limit it
// is compacted, which means that the model is sent a summary in place of what was said
// so far; if a request is refused as too long all the same, old results of tools are
// left out first. Both are events, so that the history is the same after a restart, and
// the log keeps the original.

const (
	progressCompacting     = "Compacting"
	progressCompactingTool = "Compacting..."

	noticeOverflow = "Context window exceeded. Auto-compacting conversation...\n"

	// keptResults is how many estimated tokens of the newest results stay when old ones
	// are left out (eca-features, Appendix B).
	keptResults = 40_000
	// maxRecoveries bounds how often one request is made shorter.
	maxRecoveries = 8
)

// errTooLong ends a turn whose request can not be made short enough.
var errTooLong = errors.New("The conversation does not fit into the model's context any more, and could not be made shorter. Start a new chat, or choose a model with a larger context.") //nolint:staticcheck,revive // shown as it is

// tooLongFor says whether a request was refused because it is too long for the model.
func tooLongFor(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrContextOverflow
}

// compactIfFull compacts when the last request came near the model's limit, as often as
// that happens. If nobody can write a summary, the turn goes on without: it is the limit
// itself that ends it, and then recoverOverflow has its turn.
func (t *turn) compactIfFull() error {
	limit, share := t.model.Limit.Context, int64(t.cfg.AutoCompact(t.agent))
	t.mu.Lock()
	full := t.history.full(limit, share)
	t.mu.Unlock()
	if !full || t.noCompact {
		return nil
	}
	err := t.compact("", true)
	switch {
	case err == nil, t.ctx.Err() != nil, errors.Is(err, errByHook):
		return err
	case errors.Is(err, errCompactBlocked):
		t.noCompact = true // the hook is not asked again and again
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.history.least = t.history.used
	t.emitLocked(event.Notice{Text: "\n" + capital(err.Error()) + ". It goes on as it is.\n"})
	return nil
}

// capital begins a text with a capital letter.
func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// full says whether a conversation takes its share, in percent, of the model's limit. What
// a summary did not make shorter, or nobody could summarize, has to grow first: the
// instructions alone may be that long, and a summary for each request would help nobody.
func (h *history) full(limit, share int64) bool {
	const growth = 10 // percent of the limit
	if limit == 0 || share <= 0 || h.used*100 < limit*share {
		return false
	}
	return h.least == 0 || (h.used-h.least)*100 >= limit*growth
}

// usage takes what a request of the conversation and its answer took.
func (h *history) usage(b event.UsageReported) {
	h.used = b.InputTokens + b.OutputTokens + b.CacheReadTokens + b.CacheWriteTokens
	if h.fresh {
		h.least, h.fresh = h.used, false
	}
}

// compact puts a summary in place of what was said. instructions are the user's.
func (t *turn) compact(instructions string, auto bool) error {
	trigger := "manual"
	if auto {
		trigger = "auto"
	}
	if err := t.beforeCompact(trigger, instructions); err != nil {
		return err
	}
	summarize := t.summarize
	if t.cfg.Env == config.EnvTest {
		summarize = t.summarizeByTool
	} else {
		t.enter(progressCompacting)
	}
	summary, err := summarize(instructions)
	if err != nil {
		return fmt.Errorf("the conversation could not be compacted: %w", err)
	}
	stop, err := t.afterCompact(trigger, &summary)
	if err != nil {
		return err
	}
	t.emit(event.Compacted{Summary: summary, Auto: auto})
	if stop != nil {
		t.say(stop.Notice())
		return errByHook
	}
	return nil
}

// summarize asks for a summary: the model that is configured for it, and the chat's own if
// there is none, or if that one fails.
func (t *turn) summarize(instructions string) (string, error) {
	name := t.cfg.Compact.Model
	if name == "" || name == t.model.ID {
		return t.summarizeWith(t.model, instructions)
	}
	model, err := t.s.eng.deps.Models.Resolve(name, t.model.ID)
	if err == nil {
		var summary string
		if summary, err = t.summarizeWith(model, instructions); err == nil || t.ctx.Err() != nil {
			return summary, err
		}
	}
	t.s.eng.deps.Log.Warn("compact.model could not summarize; the chat's own model does", "chat", t.s.id, "model", name, "err", err)
	return t.summarizeWith(t.model, instructions)
}

// summaryQuestion is what a model is asked for a summary. instructions are the user's.
func (t *turn) summaryQuestion(instructions string) string {
	question := t.render(cmp.Or(t.cfg.Agents[t.agent].Prompts.Compact, t.cfg.Prompts.Compact))
	if instructions = strings.TrimSpace(instructions); instructions != "" {
		question += "\n\nThe user adds: " + instructions
	}
	return question
}

// summarizeWith asks a model for a summary of the conversation, with less and less of it if
// it is too long even for that.
func (t *turn) summarizeWith(model Model, instructions string) (string, error) {
	question := t.summaryQuestion(instructions)
	t.mu.Lock()
	messages := t.history.messages()
	t.mu.Unlock()
	if len(messages) == 0 {
		return "", errors.New("there is nothing to compact")
	}
	for budget := int64(0); ; {
		req := t.summaryRequest(model, messages, question, budget)
		summary, err := t.askOnce(model, req)
		if refusesImage(err) && model.ID == t.model.ID && t.leaveImagesOut(err) {
			continue
		}
		// A model that sees tools may call one instead of answering.
		again := errors.Is(err, errNoText) && len(req.Tools) > 0
		if err == nil || !tooLongFor(err) && !again {
			return summary, err
		}
		// Half of what was too much; at first the size is a guess.
		budget = cmp.Or(budget, estimate(req).total()) / 2
		const least = 500
		if budget < least {
			return "", errTooLong
		}
	}
}

// summaryRequest asks the chat's own model behind the conversation as it is, which the
// provider has in its cache. Another model, and one for which that was too long, gets a
// transcript of at most budget tokens; 0 is no limit.
func (t *turn) summaryRequest(model Model, messages []llm.Message, question string, budget int64) llm.Request {
	if model.ID == t.model.ID && budget == 0 {
		req := t.build()
		req.Purpose = llm.PurposeCompact
		req.Messages = append(slices.Clip(t.visible(messages)), llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: question}}})
		return req
	}
	if budget == 0 && model.Limit.Context > 0 {
		const share = 2 // of the context; the rest is for the answer, and for bad guesses
		budget = model.Limit.Context / share
	}
	return llm.Request{
		Purpose: llm.PurposeCompact, Model: model.Name, System: question, MaxOutput: model.Limit.Output, Context: model.Limit.Context,
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: record(messages, budget)}}}},
		CacheKey: t.s.id + "/compact", Headers: model.Headers, Extra: model.Extra, Origin: t.origin(),
	}
}

// record is a conversation as one text of at most budget tokens (0 is no limit), the
// newest part of it.
func record(messages []llm.Message, budget int64) string {
	var parts []string
	left := budget * bytesPerToken
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Parts) {
			text := recordPart(m.Role, p)
			if text == "" {
				continue
			}
			if left -= int64(len(text)); budget > 0 && left < 0 {
				parts = append(parts, "(What was said before is left out.)\n")
				slices.Reverse(parts)
				return strings.Join(parts, "\n")
			}
			parts = append(parts, text)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n")
}

func recordPart(role llm.Role, p llm.Part) string {
	const longest = 4000 // bytes of one result
	switch p := p.(type) {
	case llm.Text:
		return fmt.Sprintf("%s: %s\n", role, p.Text)
	case llm.ToolCall:
		return fmt.Sprintf("call of %s: %s\n", p.Name, shorten.Bytes(string(p.Arguments), longest))
	case llm.ToolResult:
		text := shorten.Bytes(p.Text, longest)
		for range p.Images {
			text += "\n(an image)"
		}
		return fmt.Sprintf("result: %s\n", text)
	case llm.Image:
		return fmt.Sprintf("%s: (an image)\n", role)
	}
	return ""
}

// askOnce makes a request besides the conversation and returns the text of the answer.
// It is counted, not shown.
func (t *turn) askOnce(model Model, req llm.Request) (string, error) {
	text, usage, _, err := collect(t.ctx, model.Client, req)
	if err != nil {
		return "", err
	}
	t.emit(t.s.besides(model, req.Purpose, usage))
	if text = strings.TrimSpace(text); text == "" {
		return "", errNoText
	}
	return text, nil
}

var errNoText = errors.New("the model answered without text")

// recoverOverflow makes the next request shorter after one was refused as too long: at
// first without old results of tools, then with a summary.
func (t *turn) recoverOverflow(attempt int) error {
	if attempt > maxRecoveries {
		return errTooLong
	}
	t.mu.Lock()
	old := t.history.oldResults(keptResults / int64(attempt))
	t.mu.Unlock()
	if len(old) > 0 {
		t.emit(event.Pruned{CallIDs: old})
		return nil
	}
	t.emit(event.Notice{Text: noticeOverflow})
	before := t.size()
	if err := t.compact("", true); errors.Is(err, errCompactBlocked) {
		return errTooLong
	} else if err != nil {
		return err
	}
	if t.size() >= before {
		return errTooLong
	}
	return nil
}

// size estimates the tokens of the history.
func (t *turn) size() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return estimate(llm.Request{Messages: t.history.messages()}).total()
}

// compact puts a summary in place of all but the prompt that is not answered yet.
func (h *history) compact(c event.Compacted) {
	h.flush()
	h.used, h.fresh = 0, true
	clear(h.rules)
	clear(h.instructed)
	if c.Summary == "" { // imported: a message with the summary follows
		h.done = nil
		clear(h.blind)
		return
	}
	pending := len(h.done)
	for pending > 0 && isPrompt(h.done[pending-1]) {
		pending--
	}
	text := "This conversation was compacted. What was said and done so far, in short:\n\n" + strings.TrimSpace(c.Summary)
	if c.Auto && pending == len(h.done) {
		text += "\n\nGo on with what the user asked for last, from where it stands."
	}
	summary := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
	for model, n := range h.blind {
		h.blind[model] = max(0, n-pending) + 1
	}
	h.done = append([]llm.Message{summary}, h.done[pending:]...)
}

// isPrompt says whether a message is the user's own, not a tool's result.
func isPrompt(m llm.Message) bool {
	return m.Role == llm.User && !slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
		_, result := p.(llm.ToolResult)
		return result
	})
}

// prunedText stands for a result that was left out.
const prunedText = "(This result was left out because the conversation became too long. Run the tool again if you need it.)"

// prune leaves out results.
func (h *history) prune(callIDs []string) {
	h.flush()
	for _, id := range callIDs {
		delete(h.rules, id)
		delete(h.instructed, id)
	}
	out := make([]llm.Message, len(h.done))
	for i, m := range h.done {
		out[i] = llm.Message{Role: m.Role, Parts: slices.Clone(m.Parts)}
		for j, p := range m.Parts {
			if r, ok := p.(llm.ToolResult); ok && slices.Contains(callIDs, r.ID) {
				r.Text, r.Images = prunedText, nil
				out[i].Parts[j] = r
			}
		}
	}
	h.done, h.used = out, 0
}

// oldResults returns the calls whose results are beyond the newest keep tokens and worth
// leaving out.
func (h *history) oldResults(keep int64) []string {
	h.flush()
	var out []string
	var seen int64
	for _, m := range slices.Backward(h.done) {
		for _, p := range slices.Backward(m.Parts) {
			r, ok := p.(llm.ToolResult)
			if !ok {
				continue
			}
			seen += tokens(resultBytes(r))
			if seen > keep && resultBytes(r) > 2*len(prunedText) {
				out = append(out, r.ID)
			}
		}
	}
	slices.Reverse(out)
	return out
}

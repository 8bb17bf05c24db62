package chat

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/llm"
)

// A conversation can outgrow the context of its model. Near the limit it is compacted: the model is
// sent a summary in place of the messages so far. If the provider still refuses a request as too
// long, old results of tools are pruned first, and then the conversation is compacted. Both are
// events, so that the history is the same after a restart. The log keeps the original messages.

const (
	progressCompacting = "Compacting"
	compactToolSummary = "Compacting..." // of a call of the tool compact_chat

	noticeOverflow = "Context window exceeded. Auto-compacting conversation...\n"

	// keptResultTokens is how many estimated tokens of the newest tool results the first pruning
	// keeps; attempt n keeps a nth of it (eca-features.md, Appendix B).
	keptResultTokens = 40_000
	// maxRecoveries is how many times one request is shortened.
	maxRecoveries = 8
)

// errTooLong ends a turn whose request cannot be made short enough.
var errTooLong = errors.New("The conversation no longer fits into the model's context, and could not be made shorter. Start a new chat, or choose a model with a larger context.") //nolint:staticcheck,revive // shown as it is

// isContextOverflow reports whether a request was refused because it is too long for the model.
func isContextOverflow(err error) bool {
	var e *llm.Error
	return errors.As(err, &e) && e.Kind == llm.ErrContextOverflow
}

// compactor shortens the conversation of a turn.
type compactor struct {
	*turnContext
	requests  *requestBuilder
	images    *imageFilter
	hooks     *turnHooks
	stream    func(llm.Request) (*answer, error) // turn.stream
	forbidden bool                               // a hook forbids compaction in this turn
}

// compactIfFull compacts the conversation if the last request came near the model's limit. If no model can
// write a summary, the turn continues, and recoverOverflow handles requests that are refused as too
// long. ran reports whether a model may have been asked.
func (c *compactor) compactIfFull() (ran bool, err error) {
	limit, share := c.model.Limit.Context, int64(c.Config.AutoCompact(c.agent))
	full := read(c.rec, func(h *history.History) bool { return h.Full(limit, share) })
	if !full || c.forbidden {
		return false, nil
	}
	err = c.compact("", true)
	switch {
	case err == nil, c.ctx.Err() != nil, errors.Is(err, errStoppedByHook):
		return true, err
	case errors.Is(err, errCompactBlocked):
		c.forbidden = true // do not run the hook again before each request
		return false, nil
	}
	c.rec.withHistory((*history.History).NoteFailedCompaction)
	c.rec.emit(event.Notice{Text: "\n" + capitalize(err.Error()) + ". The turn continues without a summary.\n"})
	return true, nil
}

// capitalize capitalizes the first letter of a text.
func capitalize(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// compact replaces the conversation with a summary. instructions are the user's, for the summary.
func (c *compactor) compact(instructions string, auto bool) error {
	trigger := "manual"
	if auto {
		trigger = "auto"
	}
	if err := c.hooks.runPreCompactHooks(trigger, instructions); err != nil {
		return err
	}
	summarize := c.summarize
	if c.Config.Conformance().CompactByTool {
		summarize = c.summarizeByTool
	} else {
		c.rec.showProgress(progressCompacting)
	}
	summary, err := summarize(instructions)
	if err != nil {
		return fmt.Errorf("the conversation could not be compacted: %w", err)
	}
	stop, err := c.hooks.runPostCompactHooks(trigger, &summary)
	if err != nil {
		return err
	}
	c.rec.emit(event.Compacted{Summary: summary, Auto: auto})
	if stop != nil {
		c.rec.showNotice(stop.Notice())
		return errStoppedByHook
	}
	return nil
}

// summarize gets a summary from the model that is configured for it. It uses the chat's own model if
// no model is configured, or if that model fails.
func (c *compactor) summarize(instructions string) (string, error) {
	name := c.Config.Compact.Model
	if name == "" || name == c.model.ID {
		return c.summarizeWith(c.model, instructions)
	}
	model, err := c.Models.Resolve(name, c.model.ID)
	if err == nil {
		var summary string
		if summary, err = c.summarizeWith(model, instructions); err == nil || c.ctx.Err() != nil {
			return summary, err
		}
	}
	c.session.eng.deps.Log.Warn("compact.model could not summarize; the chat's own model does", "chat", c.session.id, "model", name, "err", err)
	return c.summarizeWith(c.model, instructions)
}

// summaryQuestion returns the request for a summary. instructions are the user's.
func (c *compactor) summaryQuestion(instructions string) string {
	question := c.render(cmp.Or(c.Config.Agents[c.agent].Prompts.Compact, c.Config.Prompts.Compact))
	if instructions = strings.TrimSpace(instructions); instructions != "" {
		question += "\n\nAdditional instructions from the user: " + instructions
	}
	return question
}

// summarizeWith asks a model for a summary of the conversation. If that request is too long, or the
// model calls a tool instead of answering, it tries again with less of the conversation.
func (c *compactor) summarizeWith(model Model, instructions string) (string, error) {
	question := c.summaryQuestion(instructions)
	messages := read(c.rec, (*history.History).Messages)
	if len(messages) == 0 {
		return "", errors.New("there is nothing to compact")
	}
	for budget := int64(0); ; {
		req := c.summaryRequest(model, messages, question, budget)
		summary, err := c.askOnce(model, req)
		if isImageRefusal(err) && model.ID == c.model.ID && c.images.withholdAfterRefusal(err) {
			continue
		}
		calledTool := errors.Is(err, errNoText) && len(req.Tools) > 0
		if err == nil || !isContextOverflow(err) && !calledTool {
			return summary, err
		}
		// Try half of the last budget. The first request had none, so its estimated size counts.
		budget = cmp.Or(budget, estimate(req).total()) / 2
		const minBudget = 500
		if budget < minBudget {
			return "", errTooLong
		}
	}
}

// summaryRequest returns the request for a summary. The chat's own model gets the question after the
// unchanged conversation, which the provider has in its cache. Another model gets a transcript of at
// most budget tokens; if budget is 0, of half of its context, or of everything if that is not known. The
// chat's own model also gets a transcript if budget is set.
func (c *compactor) summaryRequest(model Model, messages []llm.Message, question string, budget int64) llm.Request {
	if model.ID == c.model.ID && budget == 0 {
		req := c.requests.build()
		req.Purpose = llm.PurposeCompact
		req.Messages = append(slices.Clip(c.images.visible(messages)), llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: question}}})
		return req
	}
	if budget == 0 && model.Limit.Context > 0 {
		budget = model.Limit.Context / 2 // the rest is for the answer, and for errors of the estimate
	}
	return llm.Request{
		Purpose: llm.PurposeCompact, Model: model.Name, System: question, MaxOutput: model.Limit.Output, Context: model.Limit.Context,
		Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text{Text: conversationText(messages, budget)}}}},
		CacheKey: c.session.id + "/compact", Headers: model.Headers, Extra: model.Extra, Origin: c.origin(),
	}
}

// conversationText returns the newest part of a conversation as one text of at most budget tokens. A
// budget of 0 means the whole conversation.
func conversationText(messages []llm.Message, budget int64) string {
	var parts []string
	left := budget * history.BytesPerToken
	for _, m := range slices.Backward(messages) {
		for _, p := range slices.Backward(m.Parts) {
			text := partText(m.Role, p)
			if text == "" {
				continue
			}
			if left -= int64(len(text)); budget > 0 && left < 0 {
				parts = append(parts, "(Earlier messages are left out.)\n")
				slices.Reverse(parts)
				return strings.Join(parts, "\n")
			}
			parts = append(parts, text)
		}
	}
	slices.Reverse(parts)
	return strings.Join(parts, "\n")
}

func partText(role llm.Role, p llm.Part) string {
	const maxResult = 4000 // bytes of one result
	switch p := p.(type) {
	case llm.Text:
		return fmt.Sprintf("%s: %s\n", role, p.Text)
	case llm.ToolCall:
		return fmt.Sprintf("call of %s: %s\n", p.Name, shorten.Bytes(string(p.Arguments), maxResult))
	case llm.ToolResult:
		text := shorten.Bytes(p.Text, maxResult)
		for range p.Images {
			text += "\n(an image)"
		}
		return fmt.Sprintf("result: %s\n", text)
	case llm.Image:
		return fmt.Sprintf("%s: (an image)\n", role)
	case llm.ServerCall:
		return fmt.Sprintf("%s: (a call of the provider's %s)\n", role, p.Name)
	}
	return ""
}

// askOnce makes a side request and returns the text of its answer, without showing it. The usage is
// reported.
func (c *compactor) askOnce(model Model, req llm.Request) (string, error) {
	text, usage, _, err := collect(c.ctx, model.Client, req)
	if err != nil {
		return "", err
	}
	c.rec.emit(c.session.cost.sideUsage(model, req.Purpose, usage))
	if text = strings.TrimSpace(text); text == "" {
		return "", errNoText
	}
	return text, nil
}

var errNoText = errors.New("the model answered without text")

// recoverOverflow shortens the conversation after a request was refused as too long: it prunes old
// results of tools, or compacts if no old results are left.
func (c *compactor) recoverOverflow(attempt int) error {
	if attempt > maxRecoveries {
		return errTooLong
	}
	old := read(c.rec, func(h *history.History) []string { return h.OldResults(keptResultTokens / int64(attempt)) })
	if len(old) > 0 {
		c.rec.emit(event.Pruned{CallIDs: old})
		return nil
	}
	c.rec.emit(event.Notice{Text: noticeOverflow})
	sizeBefore := c.size()
	if err := c.compact("", true); errors.Is(err, errCompactBlocked) {
		return errTooLong
	} else if err != nil {
		return err
	}
	if c.size() >= sizeBefore {
		return errTooLong
	}
	return nil
}

// size estimates the tokens of the history.
func (c *compactor) size() int64 {
	return estimate(llm.Request{Messages: read(c.rec, (*history.History).Messages)}).total()
}

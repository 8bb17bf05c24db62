// Package history turns the events of a chat into the messages for its models, and keeps the state
// that later turns need, such as the list of tasks.
//
// It guarantees that providers accept the messages, even after crashes and failed requests: each
// call that eca runs has exactly one result, reasoning is followed by text or a call, and no call or
// reasoning occurs twice. It does not make requests or store anything; package chat does both.
package history

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// History converts a chat's events into the messages that eca sends to the model. A running chat and a
// chat that is loaded from the store build them in the same way, so both send the same bytes. It is
// not safe for concurrent use. It has more than 25 fields because it is the state of one pass over
// all kinds of events.
type History struct {
	messages []llm.Message   // complete messages
	prompts  int             // number of prompts that the user has written for the model
	ids      map[string]bool // ids of calls and blocks of reasoning
	tasks    *event.Tasks    // the list of tasks; nil if there are no tasks
	models   modelChange
	dialog   pendingDialog
	rights   map[string]config.Rights // by agent: its rights in its last turn, if known

	used                int64 // tokens of the last request and its answer; 0 means unknown
	usedAfterCompaction int64 // used after the last compaction, successful or not; 0 means unknown
	justCompacted       bool  // there was no request since the last compaction

	promptStart   int  // number of messages that precede the last prompt
	promptCounted bool // the last prompt is counted in prompts

	system         event.SystemPrompt // the pinned system prompt; without parts if none is pinned
	reportedPrompt string             // digest of a newer system prompt that the user was notified of
	imagesWithheld map[string]int     // by model: how many of the oldest messages it gets without images

	rules           map[string]string   // by call: path-scoped rule that the call added to the history
	instructedFiles map[string][]string // by call: files whose instructions the call added to the history

	startedCalls map[string]bool           // calls of the current message that have begun to run
	running      map[string]event.Subagent // by call: subagents whose calls run
	background   map[string]event.Subagent // by call: background subagents that have not reported yet

	// The assistant message that is being built.
	parts          []llm.Part
	text           strings.Builder
	reasoningTexts map[string]*strings.Builder // by id: text of reasoning that has not ended
	calls          []event.ToolJudged
	results        map[string]llm.ToolResult
	openCalls      []string // ids of announced calls that have no result yet
}

// New returns the history of a chat without events.
func New() *History {
	return &History{
		ids: map[string]bool{}, imagesWithheld: map[string]int{}, reasoningTexts: map[string]*strings.Builder{},
		results: map[string]llm.ToolResult{}, rules: map[string]string{}, instructedFiles: map[string][]string{},
		rights: map[string]config.Rights{}, startedCalls: map[string]bool{}, running: map[string]event.Subagent{}, background: map[string]event.Subagent{},
	}
}

// Add adds an event.
func (h *History) Add(b event.Body) {
	h.models.add(b)
	h.dialog.add(b)
	switch b := b.(type) {
	case event.UserMessage:
		h.addUserMessage(b)
	case event.TurnStarted:
		if b.Rights != nil {
			h.rights[b.Agent] = config.Rights(*b.Rights)
		}
	case event.TextDelta:
		h.beforeOutput()
		h.text.WriteString(b.Text)
	case event.ReasoningStarted, event.ReasoningDelta, event.ReasoningFinished:
		h.addReasoning(b)
	case event.ToolProposed:
		h.beforeOutput()
		h.endText()
		h.parts = append(h.parts, llm.ToolCall{ID: b.CallID}) // a placeholder, which flush fills in
		h.ids[b.CallID] = true
		h.openCalls = append(h.openCalls, b.CallID)
	case event.ToolJudged:
		h.addJudged(b)
	case event.ToolStarted:
		h.noteStarted(b.CallID)
	case event.ToolFinished:
		h.addFinished(b)
	case event.ToolRejected:
		h.addResult(llm.ToolResult{ID: b.CallID, Text: rejectionText(b, h.startedCalls[b.CallID]), Failed: true})
	case event.Report:
		h.flush()
		delete(h.background, b.CallID)
		h.messages = append(h.messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: reportText(b)}}})
	case event.UsageReported:
		if b.Purpose == "" {
			h.addUsage(b)
		}
	case event.Compacted:
		h.compact(b)
	case event.Pruned:
		h.prune(b.CallIDs)
	case event.Continued:
		h.flush()
		if b.Prompt != "" {
			h.messages = append(h.messages, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: b.Prompt}}})
		}
	case event.ImagesRefused:
		h.flush()
		h.imagesWithheld[b.Model] = len(h.messages)
	case event.TasksCleared:
		h.tasks = nil
	case event.PromptAmended:
		h.amendPrompt(b)
	case event.SystemPrompt:
		h.system, h.reportedPrompt = b, ""
	case event.Notice:
		if b.System != "" {
			h.reportedPrompt = b.System
		}
	case event.TurnFinished:
		h.flush()
		if b.Reason == event.FinishedBlocked {
			h.forgetPrompt()
		}
	case event.FileChanged, event.Flag, event.HookFinished, event.HookStarted, event.Progress, event.TitleChanged, event.ToolArgsDelta,
		event.ToolUpdated, event.Truncated, event.UndoPoint, event.Unknown:
		// not sent to the model
	}
}

// placeholder returns the index of a call's placeholder in parts, or -1.
func (h *History) placeholder(id string) int {
	return slices.IndexFunc(h.parts, func(p llm.Part) bool {
		c, ok := p.(llm.ToolCall)
		return ok && c.ID == id
	})
}

// addJudged adds a complete call. Imported calls of a provider's own tools have no API; they become ordinary
// calls.
func (h *History) addJudged(b event.ToolJudged) {
	if b.Origin == tools.OriginServer && b.API != "" {
		if at := h.placeholder(b.CallID); at >= 0 {
			h.parts[at] = llm.ToolCall{ID: b.CallID, Name: b.Name, API: b.API}
		}
		return
	}
	if !h.ids[b.CallID] {
		h.parts = append(h.parts, llm.ToolCall{ID: b.CallID})
	}
	h.calls = append(h.calls, b)
}

// addReasoning adds an event of a block of reasoning.
func (h *History) addReasoning(b event.Body) {
	switch b := b.(type) {
	case event.ReasoningStarted:
		h.beforeOutput()
		h.ids[b.ID] = true
		h.reasoningTexts[b.ID] = &strings.Builder{}
	case event.ReasoningDelta:
		if r := h.reasoningTexts[b.ID]; r != nil {
			r.WriteString(b.Text)
		}
	case event.ReasoningFinished:
		if r := h.reasoningTexts[b.ID]; r != nil {
			h.endText()
			h.parts = append(h.parts, llm.Reasoning{ID: b.ID, Text: r.String(), API: b.API, Opaque: b.Opaque})
			delete(h.reasoningTexts, b.ID)
		}
	default:
	}
}

// beforeOutput is called before output of the model is added. If calls of the message that is being built
// were judged already, the output belongs to the next response, so the message is complete.
func (h *History) beforeOutput() {
	if len(h.calls) > 0 {
		h.flush()
	}
}

func (h *History) endText() {
	if h.text.Len() > 0 {
		h.parts = append(h.parts, llm.Text{Text: h.text.String()})
		h.text.Reset()
	}
}

// flush completes the assistant message that is being built, with one result for each of its calls.
func (h *History) flush() {
	h.endText()
	judged := map[string]event.ToolJudged{}
	for _, c := range h.calls {
		judged[c.CallID] = c
	}
	var parts, results []llm.Part
	for _, p := range h.parts {
		placeholder, isCall := p.(llm.ToolCall)
		c, known := judged[placeholder.ID]
		switch {
		case !isCall:
			parts = append(parts, p)
			continue
		case !known:
			continue // the call was never complete, or a provider's call has nothing to send back
		}
		parts = append(parts, llm.ToolCall{ID: c.CallID, Name: ModelName(c.Tool), Arguments: c.Arguments, API: c.API, Opaque: c.Opaque})
		r, ok := h.results[c.CallID]
		if !ok {
			r = llm.ToolResult{ID: c.CallID, Text: rejectionText(event.ToolRejected{Reason: event.Interrupted}, h.startedCalls[c.CallID]), Failed: true}
		}
		results = append(results, r)
	}
	parts = withoutTrailingReasoning(parts)
	if len(parts) > 0 {
		h.messages = append(h.messages, llm.Message{Role: llm.Assistant, Parts: parts})
	}
	if len(results) > 0 {
		h.messages = append(h.messages, llm.Message{Role: llm.User, Parts: results})
	}
	h.parts, h.calls, h.openCalls = nil, nil, nil
	clear(h.reasoningTexts)
	clear(h.results)
	clear(h.startedCalls)
}

// withoutTrailingReasoning returns parts that do not end with reasoning. If there are calls, it moves the
// trailing reasoning before the first one, to which it may belong. Otherwise it drops that reasoning,
// because providers refuse reasoning that nothing follows.
func withoutTrailingReasoning(parts []llm.Part) []llm.Part {
	isCall := func(p llm.Part) bool { _, ok := p.(llm.ToolCall); return ok }
	for end := len(parts); end > 0; end = len(parts) {
		last, ok := parts[end-1].(llm.Reasoning)
		if !ok {
			break
		}
		parts = parts[:end-1]
		if first := slices.IndexFunc(parts, isCall); first >= 0 {
			parts = slices.Insert(parts, first, llm.Part(last))
		}
	}
	return parts
}

// Messages completes the message that is being built and returns all messages. Later events do not
// change the result.
func (h *History) Messages() []llm.Message {
	h.flush()
	return h.messages[:len(h.messages):len(h.messages)]
}

// ModelName returns the name by which the model called a tool.
func ModelName(t event.Tool) string {
	if t.Origin == "unknown" {
		return t.Name
	}
	return tools.FullName(t.Server, t.Name)
}

// CompleteMessages returns the complete messages.
func (h *History) CompleteMessages() []llm.Message { return h.messages }

// Prompts returns the number of prompts that the user has written for a model.
func (h *History) Prompts() int { return h.prompts }

// Has reports whether a call or a block of reasoning has this id.
func (h *History) Has(id string) bool { return h.ids[id] }

// Tasks returns the list of tasks, or nil.
func (h *History) Tasks() *event.Tasks { return h.tasks }

// PreviousModel returns the full id of the model of the turn before the current one; empty in the
// first turn.
func (h *History) PreviousModel() string { return h.models.previous }

// AwaitsDialog reports whether a dialog was open at the last event, so that the next prompt is its
// input.
func (h *History) AwaitsDialog() bool { return h.dialog.open }

// Rights returns the rights that an agent had in its last turn; ok is false if they are unknown.
func (h *History) Rights(agent string) (rights config.Rights, ok bool) {
	rights, ok = h.rights[agent]
	return rights, ok
}

// System returns the pinned system prompt, which has no parts if none is pinned, and the digest of
// the newer system prompt that the user was notified of last, or "".
func (h *History) System() (pinned event.SystemPrompt, reported string) {
	return h.system, h.reportedPrompt
}

// ImagesWithheld returns how many of the oldest messages a model gets without images.
func (h *History) ImagesWithheld(model string) int { return h.imagesWithheld[model] }

// Rules returns the ids of the path-scoped rules in the history, sorted.
func (h *History) Rules() []string { return slices.Sorted(maps.Values(h.rules)) }

// InstructedFiles returns the files whose instructions are in the history.
func (h *History) InstructedFiles() (out []string) {
	for _, files := range h.instructedFiles {
		out = append(out, files...)
	}
	return out
}

// Size estimates the memory of the history, in bytes.
func (h *History) Size() int { return event.Size(h.system.Parts) + event.Size(h.messages) }

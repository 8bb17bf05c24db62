// Package history folds the events of a chat into what its models are sent: messages, and
// what later turns need to know of them.
//
// It guarantees that whatever happened, the messages are ones that providers accept: each
// call has one result, reasoning leads to something, nothing is said twice. It makes no
// requests and stores nothing; package chat does.
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

// History folds a chat's events into the messages the model is sent. The same fold serves a
// running chat and one that is loaded, so both send the same bytes. It is not safe for
// concurrent use.
type History struct {
	done    []llm.Message   // complete
	prompts int             // user messages so far
	ids     map[string]bool // of calls and reasoning
	tasks   *event.Tasks    // the list of tasks, if there is one
	models  modelChange
	dialog  pendingDialog
	rights  map[string]config.Rights // of agents when they answered last, if they are known

	used                int64 // tokens that the last request and its answer took; 0 is unknown
	usedAfterCompaction int64 // what used was when the last summary did what it could; 0 is unknown
	justCompacted       bool  // nothing was asked since the last summary

	promptStart int  // the messages before the last prompt
	counted     bool // it is among prompts

	system         event.SystemPrompt // the pinned one; without parts if nothing is pinned
	reportedPrompt string             // the system prompt whose difference to that the user has seen
	imagesWithheld map[string]int     // by model: in how many of the first messages it is not sent images

	rules      map[string]string   // path-scoped rules whose text is in the history, by the call that fetched them
	instructed map[string][]string // files whose instructions are in the history, by the call they came with

	began      map[string]bool           // calls that run, or ran without a result so far
	running    map[string]event.Subagent // by call: those whose calls run
	background map[string]event.Subagent // by call: those in the background that have not reported yet

	// The assistant message that is being built.
	parts   []llm.Part
	text    strings.Builder
	reason  map[string]*strings.Builder
	calls   []event.ToolJudged
	results map[string]llm.ToolResult
	open    []string // calls that were announced and have no result yet
}

// New returns the history of a chat without events.
func New() *History {
	return &History{
		ids: map[string]bool{}, imagesWithheld: map[string]int{}, reason: map[string]*strings.Builder{},
		results: map[string]llm.ToolResult{}, rules: map[string]string{}, instructed: map[string][]string{},
		rights: map[string]config.Rights{}, began: map[string]bool{}, running: map[string]event.Subagent{}, background: map[string]event.Subagent{},
	}
}

// Add folds one event.
func (h *History) Add(b event.Body) {
	h.models.add(b)
	h.dialog.add(b)
	switch b := b.(type) {
	case event.UserMessage:
		h.user(b)
	case event.TurnStarted:
		if b.Rights != nil {
			h.rights[b.Agent] = config.Rights(*b.Rights)
		}
	case event.TextDelta:
		h.output()
		h.text.WriteString(b.Text)
	case event.ReasoningStarted, event.ReasoningDelta, event.ReasoningFinished:
		h.reasoning(b)
	case event.ToolProposed:
		h.output()
		h.endText()
		h.parts = append(h.parts, llm.ToolCall{ID: b.CallID}) // its place; flush knows the rest
		h.ids[b.CallID] = true
		h.open = append(h.open, b.CallID)
	case event.ToolJudged:
		h.judged(b)
	case event.ToolStarted:
		h.started(b.CallID)
	case event.ToolFinished:
		h.finished(b)
	case event.ToolRejected:
		h.result(llm.ToolResult{ID: b.CallID, Text: rejection(b, h.began[b.CallID]), Failed: true})
	case event.Report:
		h.flush()
		delete(h.background, b.CallID)
		h.done = append(h.done, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: reportText(b)}}})
	case event.UsageReported:
		if b.Purpose == "" {
			h.usage(b)
		}
	case event.Compacted:
		h.compact(b)
	case event.Pruned:
		h.prune(b.CallIDs)
	case event.Continued:
		h.flush()
		if b.Prompt != "" {
			h.done = append(h.done, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: b.Prompt}}})
		}
	case event.ImagesRefused:
		h.flush()
		h.imagesWithheld[b.Model] = len(h.done)
	case event.TasksCleared:
		h.tasks = nil
	case event.PromptAmended:
		h.amend(b)
	case event.SystemPrompt:
		h.system, h.reportedPrompt = b, ""
	case event.Notice:
		if b.System != "" {
			h.reportedPrompt = b.System
		}
	case event.TurnFinished:
		h.flush()
		if b.Reason == event.FinishedBlocked {
			h.forget()
		}
	case event.FileChanged, event.Flag, event.HookFinished, event.HookStarted, event.Progress, event.TitleChanged, event.ToolArgsDelta,
		event.ToolUpdated, event.Truncated, event.UndoPoint, event.Unknown:
		// which the model is not sent
	}
}

// placeOf returns the index of a call's place in the message that is being built; -1 without one.
func (h *History) placeOf(id string) int {
	return slices.IndexFunc(h.parts, func(p llm.Part) bool {
		c, ok := p.(llm.ToolCall)
		return ok && c.ID == id
	})
}

// judged notes a call that is complete. One without an API is imported: any model takes it as an
// ordinary call.
func (h *History) judged(b event.ToolJudged) {
	if b.Origin == tools.OriginServer && b.API != "" {
		if at := h.placeOf(b.CallID); at >= 0 {
			h.parts[at] = llm.ToolCall{ID: b.CallID, Name: b.Name, API: b.API}
		}
		return
	}
	if !h.ids[b.CallID] {
		h.parts = append(h.parts, llm.ToolCall{ID: b.CallID})
	}
	h.calls = append(h.calls, b)
}

// reasoning folds an event of a block of reasoning.
func (h *History) reasoning(b event.Body) {
	switch b := b.(type) {
	case event.ReasoningStarted:
		h.output()
		h.ids[b.ID] = true
		h.reason[b.ID] = &strings.Builder{}
	case event.ReasoningDelta:
		if r := h.reason[b.ID]; r != nil {
			r.WriteString(b.Text)
		}
	case event.ReasoningFinished:
		if r := h.reason[b.ID]; r != nil {
			h.endText()
			h.parts = append(h.parts, llm.Reasoning{ID: b.ID, Text: r.String(), API: b.API, Opaque: b.Opaque})
			delete(h.reason, b.ID)
		}
	default:
	}
}

// output is called when the model says something: if the calls of the message that
// is being built were judged already, this is the next response.
func (h *History) output() {
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

// flush ends the assistant message, with one result for each of its calls.
func (h *History) flush() {
	h.endText()
	judged := map[string]event.ToolJudged{}
	for _, c := range h.calls {
		judged[c.CallID] = c
	}
	var parts, results []llm.Part
	for _, p := range h.parts {
		place, isCall := p.(llm.ToolCall)
		c, known := judged[place.ID]
		switch {
		case !isCall:
			parts = append(parts, p)
			continue
		case !known:
			continue // it was never complete
		}
		parts = append(parts, llm.ToolCall{ID: c.CallID, Name: ModelName(c.Tool), Arguments: c.Arguments, API: c.API, Opaque: c.Opaque})
		r, ok := h.results[c.CallID]
		if !ok {
			r = llm.ToolResult{ID: c.CallID, Text: rejection(event.ToolRejected{Reason: event.Interrupted}, h.began[c.CallID]), Failed: true}
		}
		results = append(results, r)
	}
	parts = withoutTrailingReasoning(parts)
	if len(parts) > 0 {
		h.done = append(h.done, llm.Message{Role: llm.Assistant, Parts: parts})
	}
	if len(results) > 0 {
		h.done = append(h.done, llm.Message{Role: llm.User, Parts: results})
	}
	h.parts, h.calls, h.open = nil, nil, nil
	clear(h.reason)
	clear(h.results)
	clear(h.began)
}

// withoutTrailingReasoning moves reasoning that came last before the calls: it may
// belong to them. Without calls it led to nothing, and providers refuse it.
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

// Messages returns the history, ready to be sent. The result shares no state that
// later events change.
func (h *History) Messages() []llm.Message {
	h.flush()
	return h.done[:len(h.done):len(h.done)]
}

// ModelName is the name by which the model called a tool.
func ModelName(t event.Tool) string {
	if t.Origin == "unknown" {
		return t.Name
	}
	return tools.FullName(t.Server, t.Name)
}

// Done returns the messages that are complete.
func (h *History) Done() []llm.Message { return h.done }

// Prompts returns how many prompts the user has written.
func (h *History) Prompts() int { return h.prompts }

// Has says whether a call or a block of reasoning has this id.
func (h *History) Has(id string) bool { return h.ids[id] }

// Tasks returns the list of tasks; or nil.
func (h *History) Tasks() *event.Tasks { return h.tasks }

// PreviousModel returns the full id of the model that answered before the one that answers
// now; may be empty.
func (h *History) PreviousModel() string { return h.models.before }

// AwaitsDialog says whether the next prompt answers a dialog with eca, if the events show
// that.
func (h *History) AwaitsDialog() bool { return h.dialog.open }

// Rights returns those that an agent had when it answered last; ok is false if they are not
// known.
func (h *History) Rights(agent string) (rights config.Rights, ok bool) {
	rights, ok = h.rights[agent]
	return rights, ok
}

// System returns the pinned system prompt, which has no parts if nothing is pinned, and the
// one whose difference to it the user has seen.
func (h *History) System() (pinned event.SystemPrompt, reported string) {
	return h.system, h.reportedPrompt
}

// ImagesWithheld returns in how many of the first messages a model is not sent images.
func (h *History) ImagesWithheld(model string) int { return h.imagesWithheld[model] }

// Rules returns the sorted ids of the path-scoped rules that the model knows.
func (h *History) Rules() []string { return slices.Sorted(maps.Values(h.rules)) }

// Instructed returns the files whose instructions the model knows.
func (h *History) Instructed() (out []string) {
	for _, files := range h.instructed {
		out = append(out, files...)
	}
	return out
}

// Size estimates the memory that the history takes, in bytes.
func (h *History) Size() int { return event.Size(h.system.Parts) + event.Size(h.done) }

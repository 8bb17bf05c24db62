package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// history folds a chat's events into the messages the model is sent. The same fold
// serves a running chat and one that is loaded, so both send the same bytes.
type history struct {
	done  []llm.Message
	turns int             // user messages so far
	ids   map[string]bool // of calls and reasoning
	used  int64           // tokens that the last request and its answer took; 0 is unknown
	least int64           // what used was when the last summary did what it could; 0 is unknown
	fresh bool            // nothing was asked since the last summary
	tasks *event.Tasks    // the list of tasks, if there is one
	model modelChange
	// rights are those of agents when they answered last, as far as they are known.
	rights map[string]config.Rights
	// pendingDialog is what the events say of a dialog, which may have been another process's.
	pendingDialog pendingDialog

	before  int  // the messages in front of the last prompt
	counted bool // it is among turns

	system event.SystemPrompt // the pinned one; without parts there is none
	told   string             // the system prompt whose difference to that the user was told
	blind  map[string]int     // by model: in how many of the first messages it is not sent images

	// rules are the path-scoped rules whose text is in the history, by the call that
	// fetched them.
	rules map[string]string
	// instructed are the files whose instructions are in the history, by the call they came
	// with.
	instructed map[string][]string

	// Subagents by call: those whose calls run, and those in the background whose reports
	// are not there yet.
	children, behind map[string]event.Subagent

	// The assistant message that is being built.
	parts   []llm.Part
	text    strings.Builder
	reason  map[string]*strings.Builder
	calls   []event.ToolJudged
	results map[string]llm.ToolResult
	open    []string // calls that were proposed and have no result yet
}

func newHistory() *history {
	return &history{
		ids: map[string]bool{}, blind: map[string]int{}, reason: map[string]*strings.Builder{},
		results: map[string]llm.ToolResult{}, rules: map[string]string{}, instructed: map[string][]string{},
		rights:   map[string]config.Rights{},
		children: map[string]event.Subagent{}, behind: map[string]event.Subagent{},
	}
}

// add folds one event.
func (h *history) add(b event.Body) {
	h.model.add(b)
	h.pendingDialog.add(b)
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
	case event.ToolProposed:
		h.output()
		h.endText()
		h.parts = append(h.parts, llm.ToolCall{ID: b.CallID}) // its place; flush knows the rest
		h.ids[b.CallID] = true
		h.open = append(h.open, b.CallID)
	case event.ToolJudged:
		if !h.ids[b.CallID] {
			h.parts = append(h.parts, llm.ToolCall{ID: b.CallID})
		}
		h.calls = append(h.calls, b)
	case event.ToolStarted:
		h.started(b.CallID)
	case event.ToolFinished:
		h.finished(b)
	case event.ToolRejected:
		h.result(llm.ToolResult{ID: b.CallID, Text: rejection(b), Failed: true})
	case event.Report:
		h.flush()
		delete(h.behind, b.CallID)
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
		h.blind[b.Model] = len(h.done)
	case event.TasksCleared:
		h.tasks = nil
	case event.PromptAmended:
		h.amend(b)
	case event.SystemPrompt:
		h.system, h.told = b, ""
	case event.Notice:
		if b.System != "" {
			h.told = b.System
		}
	case event.TurnFinished:
		h.flush()
		if b.Reason == event.FinishedBlocked {
			h.forget()
		}
	}
}

// finished adds the result of a call, and keeps what later turns need of it.
func (h *history) finished(b event.ToolFinished) {
	if s, ok := h.children[b.CallID]; ok && s.Background && !b.Failed {
		h.behind[b.CallID] = s
	}
	h.result(llm.ToolResult{ID: b.CallID, Text: joinInstructions(joinContext(lines(b.Outputs), b.Context), b.Instructions), Failed: b.Failed, Images: images(b.Images)})
	for _, i := range b.Instructions {
		h.instructed[b.CallID] = append(h.instructed[b.CallID], i.Path)
	}
	if b.Details != nil && b.Details.Tasks != nil {
		h.tasks = b.Details.Tasks
	}
	if b.Details != nil && b.Details.Rule != nil {
		h.rules[b.CallID] = b.Details.Rule.ID
	}
}

// user adds what the user said, unless it was for eca only.
func (h *history) user(m event.UserMessage) {
	h.flush()
	h.before, h.counted = len(h.done), !m.Steer && !m.Command
	if m.Command && m.Prompt == "" {
		return
	}
	if h.counted {
		h.turns++
	}
	h.done = append(h.done, userMessage(m))
}

// output is called when the model says something: if the calls of the message that
// is being built were judged already, this is the next response.
func (h *history) output() {
	if len(h.calls) > 0 {
		h.flush()
	}
}

func (h *history) endText() {
	if h.text.Len() > 0 {
		h.parts = append(h.parts, llm.Text{Text: h.text.String()})
		h.text.Reset()
	}
}

// flush ends the assistant message, with one result for each of its calls.
func (h *history) flush() {
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
		parts = append(parts, llm.ToolCall{ID: c.CallID, Name: modelName(c.Tool), Arguments: c.Arguments, API: c.API, Opaque: c.Opaque})
		r, ok := h.results[c.CallID]
		if !ok {
			r = llm.ToolResult{ID: c.CallID, Text: rejection(event.ToolRejected{Reason: event.Interrupted}), Failed: true}
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
}

// withoutTrailingReasoning moves reasoning that came last in front of the calls: it may
// hold what belongs to them. Without calls it led to nothing, and providers refuse it.
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

// messages returns the history, ready to be sent. The result shares no state that
// later events change.
func (h *history) messages() []llm.Message {
	h.flush()
	return h.done[:len(h.done):len(h.done)]
}

func (h *history) result(r llm.ToolResult) {
	h.results[r.ID] = r
	delete(h.children, r.ID)
	h.open = slices.DeleteFunc(h.open, func(id string) bool { return id == r.ID })
}

// openCalls returns the calls that have no result, in the order the model made them.
func (h *history) openCalls() []string { return slices.Clone(h.open) }

// started notes that a call runs, if that means a subagent.
func (h *history) started(id string) {
	for _, c := range h.calls {
		if c.CallID == id && c.Details != nil && c.Details.Subagent != nil {
			h.children[id] = *c.Details.Subagent
		}
	}
}

// reject ends a call that has no result. Of a subagent's the model is told how it can go on.
func (h *history) reject(id string, reason event.RejectReason) event.ToolRejected {
	r := event.ToolRejected{CallID: id, Reason: reason}
	if s, ok := h.children[id]; ok {
		r.Message = resumable(s)
	}
	return r
}

// lostReports are in place of those of subagents in the background that died with their
// process.
func (h *history) lostReports() (out []event.Body) {
	for _, id := range slices.Sorted(maps.Keys(h.behind)) {
		s := h.behind[id]
		out = append(out, event.Report{CallID: id, ChatID: s.ChatID, Agent: s.Agent, Text: lostReport(s), Failed: true})
	}
	return out
}

// reportText frames a report so that the model can tell it from what the user said.
func reportText(r event.Report) string {
	return fmt.Sprintf("<subagent-report agent=%q chat=%q>\n%s\n</subagent-report>", r.Agent, r.ChatID, strings.TrimSpace(r.Text))
}

// uniqueID returns an id for a call or a block of reasoning that the provider named id:
// ids must be unique within a chat, and providers repeat them in later responses. Where
// free is false, somebody else has the id.
func (h *history) uniqueID(id string, fresh func() string, free func(string) bool) string {
	if id == "" {
		return fresh()
	}
	unique := id
	for n := 2; h.ids[unique] || !free(unique); n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	return unique
}

// joinContext adds what hooks tell the model to a result.
func joinContext(text string, more []string) string {
	if len(more) == 0 {
		return text
	}
	return text + wrapped(more) + "\n"
}

// lines joins outputs, each of them with the end of its last line.
func lines(outputs []string) string {
	var b strings.Builder
	for _, o := range outputs {
		b.WriteString(o)
		if o != "" && !strings.HasSuffix(o, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func images(list []event.Image) []llm.Image {
	var out []llm.Image
	for _, i := range list {
		out = append(out, llm.Image(i))
	}
	return out
}

// modelName is the name by which the model called a tool.
func modelName(t event.Tool) string {
	if t.Origin == "unknown" {
		return t.Name
	}
	return tools.FullName(t.Server, t.Name)
}

func userMessage(m event.UserMessage) llm.Message {
	text := m.Text
	if m.Prompt != "" {
		text = m.Prompt
	}
	msg := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
	for _, b := range m.Context {
		msg.Parts = append(msg.Parts, llm.Text{Text: contextText(b)})
		if len(b.Data) > 0 {
			msg.Parts = append(msg.Parts, llm.Image{MediaType: b.MediaType, Data: b.Data})
		}
	}
	return msg
}

// contextText frames a block so that the model can tell it from what the user said.
func contextText(b event.Block) string {
	label, _ := json.Marshal(b.Label)
	return fmt.Sprintf("<context label=%s>\n%s\n</context>", label, strings.TrimRight(b.Text, "\n"))
}

// rejection is what the model is told about a call that did not run.
func rejection(r event.ToolRejected) string {
	var text string
	switch r.Reason {
	case event.RejectedByHook:
		text = cmp.Or(r.Message, "A hook rejected this call. It did not run.")
	case event.StoppedByHook:
		text = "This call did not run."
	case event.RejectedByUser:
		text = cmp.Or(r.Message, "The user rejected this call. It did not run.")
	case event.RejectedByConfig:
		text = cmp.Or(r.Message, "The user's configuration denies this call. It did not run.")
	case event.RejectedByStop:
		text = strings.TrimSpace("The user stopped this call. It may have taken effect in part. " + r.Message)
	default:
		text = strings.TrimSpace("This call was interrupted. It may have taken effect in part. " + r.Message)
	}
	return text
}

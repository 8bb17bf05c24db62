package history

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// addFinished adds the result of a call, and notes the tasks, rules and instructions that came with it.
func (h *History) addFinished(b event.ToolFinished) {
	if at := h.placeholder(b.CallID); at >= 0 {
		if call, _ := h.parts[at].(llm.ToolCall); call.API != "" {
			h.addProviderResult(at, call, b)
			return
		}
	}
	if s, ok := h.running[b.CallID]; ok && s.Background && !b.Failed {
		h.background[b.CallID] = s
	}
	h.addResult(llm.ToolResult{ID: b.CallID, Text: joinInstructions(joinContext(joinOutputs(b.Outputs), b.Context), b.Instructions), Failed: b.Failed, Images: llmImages(b.Images)})
	for _, i := range b.Instructions {
		h.instructedFiles[b.CallID] = append(h.instructedFiles[b.CallID], i.Path)
	}
	if b.Details != nil && b.Details.Tasks != nil {
		h.tasks = b.Details.Tasks
	}
	if b.Details != nil && b.Details.Rule != nil {
		h.rules[b.CallID] = b.Details.Rule.ID
	}
}

// addProviderResult replaces the placeholder of a call that the provider has run. A call without data
// to send back is left out, unless it generated an image.
func (h *History) addProviderResult(at int, call llm.ToolCall, b event.ToolFinished) {
	h.openCalls = slices.DeleteFunc(h.openCalls, func(id string) bool { return id == b.CallID })
	if len(b.Opaque) > 0 || len(b.Images) > 0 {
		h.parts[at] = llm.ServerCall{ID: b.CallID, Name: call.Name, API: call.API, Opaque: b.Opaque, Images: llmImages(b.Images)}
	}
}

func (h *History) addResult(r llm.ToolResult) {
	h.results[r.ID] = r
	delete(h.running, r.ID)
	h.openCalls = slices.DeleteFunc(h.openCalls, func(id string) bool { return id == r.ID })
}

// OpenCalls returns the calls that have no result yet, in the order in which the model made them.
func (h *History) OpenCalls() []string { return slices.Clone(h.openCalls) }

// noteStarted notes that a call has begun to run, and its subagent, if it has one.
func (h *History) noteStarted(id string) {
	h.startedCalls[id] = true
	for _, c := range h.calls {
		if c.CallID == id && c.Details != nil && c.Details.Subagent != nil {
			h.running[id] = *c.Details.Subagent
		}
	}
}

// Reject returns the event that ends a call without a result. For a subagent's call, the message
// explains to the model how to resume the subagent.
func (h *History) Reject(id string, reason event.RejectReason) event.ToolRejected {
	r := event.ToolRejected{CallID: id, Reason: reason}
	if s, ok := h.running[id]; ok {
		r.Message = ResumeHint(s)
	}
	return r
}

// InterruptedReports returns reports for the background subagents that ended with their process, before
// they could report.
func (h *History) InterruptedReports() (out []event.Body) {
	for _, id := range slices.Sorted(maps.Keys(h.background)) {
		s := h.background[id]
		out = append(out, event.Report{CallID: id, ChatID: s.ChatID, Agent: s.Agent, Text: InterruptedReport(s), Failed: true})
	}
	return out
}

// reportText marks a report, so that the model can tell it from the user's text.
func reportText(r event.Report) string {
	return fmt.Sprintf("<subagent-report agent=%q chat=%q>\n%s\n</subagent-report>", r.Agent, r.ChatID, strings.TrimSpace(r.Text))
}

// joinContext appends the context of hooks to the text of a result.
func joinContext(text string, more []string) string {
	if len(more) == 0 {
		return text
	}
	return text + FromHooks(more) + "\n"
}

// joinOutputs joins outputs and ends each with a newline.
func joinOutputs(outputs []string) string {
	var b strings.Builder
	for _, o := range outputs {
		b.WriteString(o)
		if o != "" && !strings.HasSuffix(o, "\n") {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func llmImages(list []event.Image) []llm.Image {
	var out []llm.Image
	for _, i := range list {
		out = append(out, llm.Image(i))
	}
	return out
}

// rejectionText returns the result that the model gets for a call that was rejected or interrupted.
// began reports whether the call had begun to run.
func rejectionText(r event.ToolRejected, began bool) string {
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
		text = "The user stopped the turn before this call ran. It did not run."
		if began {
			text = strings.TrimSpace("The user stopped this call. It may have taken effect in part. " + r.Message)
		}
	default:
		text = "The turn was interrupted before this call ran. It did not run."
		if began {
			text = strings.TrimSpace("This call was interrupted. It may have taken effect in part. " + r.Message)
		}
	}
	return text
}

// ResumeHint tells the model how to resume a subagent.
func ResumeHint(s event.Subagent) string {
	return fmt.Sprintf("It can continue where it ended, with everything it knows: call the tool again with agent %q and resume %q.", s.Agent, s.ChatID)
}

// InterruptedReport returns the report of a subagent that was interrupted.
func InterruptedReport(s event.Subagent) string {
	return fmt.Sprintf("The subagent %s was interrupted. %s", s.Agent, ResumeHint(s))
}

// FromHooks marks texts of hooks as such for the model.
func FromHooks(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("<additionalContext>\n" + strings.TrimRight(text, "\n") + "\n</additionalContext>\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// instructionsIntroduction precedes the instructions that are added to a result.
const instructionsIntroduction = "The project's instructions for the folders that this call is about, from files in them. Where they contradict other instructions, the file nearer to the files you work on takes precedence.\n"

// joinInstructions appends instructions to the text of a result.
func joinInstructions(text string, list []event.Instructions) string {
	if len(list) == 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text)
	if text != "" && !strings.HasSuffix(text, "\n") {
		b.WriteByte('\n')
	}
	b.WriteString("\n" + instructionsIntroduction)
	for _, i := range list {
		b.WriteString(strings.TrimRight(i.Text, "\n") + "\n")
	}
	return b.String()
}

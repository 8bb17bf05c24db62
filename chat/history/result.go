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

// finished adds the result of a call, and keeps what later turns need of it.
func (h *History) finished(b event.ToolFinished) {
	if at := h.placeOf(b.CallID); at >= 0 {
		if call, _ := h.parts[at].(llm.ToolCall); call.API != "" {
			h.providerFinished(at, call, b)
			return
		}
	}
	if s, ok := h.running[b.CallID]; ok && s.Background && !b.Failed {
		h.background[b.CallID] = s
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

// providerFinished puts a call that the provider has run in its place in the answer. One of which
// the provider wants nothing back stays only if it made an image.
func (h *History) providerFinished(at int, call llm.ToolCall, b event.ToolFinished) {
	h.open = slices.DeleteFunc(h.open, func(id string) bool { return id == b.CallID })
	if len(b.Opaque) > 0 || len(b.Images) > 0 {
		h.parts[at] = llm.ServerCall{ID: b.CallID, Name: call.Name, API: call.API, Opaque: b.Opaque, Images: images(b.Images)}
	}
}

func (h *History) result(r llm.ToolResult) {
	h.results[r.ID] = r
	delete(h.running, r.ID)
	h.open = slices.DeleteFunc(h.open, func(id string) bool { return id == r.ID })
}

// OpenCalls returns the calls that have no result, in the order the model made them.
func (h *History) OpenCalls() []string { return slices.Clone(h.open) }

// started notes that a call runs, and which subagent runs for it.
func (h *History) started(id string) {
	h.began[id] = true
	for _, c := range h.calls {
		if c.CallID == id && c.Details != nil && c.Details.Subagent != nil {
			h.running[id] = *c.Details.Subagent
		}
	}
}

// Reject ends a call that has no result. For a subagent's call the model learns how it can go on.
func (h *History) Reject(id string, reason event.RejectReason) event.ToolRejected {
	r := event.ToolRejected{CallID: id, Reason: reason}
	if s, ok := h.running[id]; ok {
		r.Message = Resumption(s)
	}
	return r
}

// LostReports are in place of those of subagents in the background that died with their
// process.
func (h *History) LostReports() (out []event.Body) {
	for _, id := range slices.Sorted(maps.Keys(h.background)) {
		s := h.background[id]
		out = append(out, event.Report{CallID: id, ChatID: s.ChatID, Agent: s.Agent, Text: LostReport(s), Failed: true})
	}
	return out
}

// reportText frames a report so that the model can tell it from what the user said.
func reportText(r event.Report) string {
	return fmt.Sprintf("<subagent-report agent=%q chat=%q>\n%s\n</subagent-report>", r.Agent, r.ChatID, strings.TrimSpace(r.Text))
}

// joinContext adds what hooks tell the model to a result.
func joinContext(text string, more []string) string {
	if len(more) == 0 {
		return text
	}
	return text + FromHooks(more) + "\n"
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

// rejection is the result of a call that did not run, or did not end.
func rejection(r event.ToolRejected, began bool) string {
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

// Resumption tells the model how a subagent goes on.
func Resumption(s event.Subagent) string {
	return fmt.Sprintf("It can go on where it ended, with all it knows: call the tool again with agent %q and resume %q.", s.Agent, s.ChatID)
}

// LostReport is the report of a subagent whose process died.
func LostReport(s event.Subagent) string {
	return fmt.Sprintf("The subagent %s was interrupted. %s", s.Agent, Resumption(s))
}

// FromHooks marks what hooks tell the model as such.
func FromHooks(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("<additionalContext>\n" + strings.TrimRight(text, "\n") + "\n</additionalContext>\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// instructionsIntroduction introduces the instructions that come with a result.
const instructionsIntroduction = "The project's instructions for the folders that this call is about, from files in them. Where they contradict other instructions, the file nearer to the files you work on takes precedence.\n"

// joinInstructions adds instructions to a result.
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

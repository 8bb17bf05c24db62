package transcript

import (
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// unknownTool is the server and origin of a call that was not announced.
const unknownTool = "unknown"

// openCall is a call of a running turn.
type openCall struct {
	openItem[Call]
	written strings.Builder // the arguments so far
}

// addCallEvent adds an event of a tool call.
func (f *Fold) addCallEvent(e event.Event) (event.Seq, Item) {
	var c *openCall
	switch b := e.Body.(type) {
	case event.ToolProposed:
		c = f.findOrAddCall(b.CallID, e.Seq)
		*c = openCall{openItem: openItem[Call]{e.Seq, Call{Tool: b.Tool, Stage: Announced, Summary: b.Summary}}}
	case event.ToolArgsDelta:
		c = f.findOrAddCall(b.CallID, e.Seq)
		c.written.WriteString(b.Text)
		c.value.Stage, c.value.Written = max(c.value.Stage, Announced), c.written.String()
		current := c.value
		current.Piece = b.Text
		return c.id, current
	case event.ToolJudged:
		c = f.findOrAddCall(b.CallID, e.Seq)
		if b.Name != "" {
			c.value.Tool = b.Tool
		}
		c.value.Stage, c.value.Judgment, c.value.Details = Judged, b, b.Details
	case event.ToolStarted:
		c = f.findOrAddCall(b.CallID, e.Seq)
		c.value.Stage, c.value.Started = Running, true
	case event.ToolUpdated:
		c = f.findOrAddCall(b.CallID, e.Seq)
		c.value.Stage, c.value.Details, c.value.Updated = max(c.value.Stage, Running), b.Details, b.Details
	case event.ToolFinished:
		c = f.findOrAddCall(b.CallID, e.Seq)
		c.value.Stage, c.value.Result = Finished, b
	case event.ToolRejected:
		c = f.findOrAddCall(b.CallID, e.Seq)
		c.value.Stage, c.value.Rejection = Rejected, b
	default:
		return 0, nil
	}
	return c.id, c.value
}

// findOrAddCall returns the call with an id. If the call was not announced, findOrAddCall adds it with an
// unknown tool.
func (f *Fold) findOrAddCall(id string, seq event.Seq) *openCall {
	c := f.calls[id]
	if c == nil {
		c = &openCall{openItem: openItem[Call]{seq, Call{Tool: event.Tool{CallID: id, Server: unknownTool, Origin: unknownTool}}}}
		f.calls[id] = c
		f.order = append(f.order, id)
	}
	return c
}

// Call returns a call of a running turn; ok is false if it was not announced.
func (f *Fold) Call(id string) (c Call, ok bool) {
	known := f.calls[id]
	if known == nil {
		return Call{}, false
	}
	return known.value, true
}

// Calls returns the calls of the running turns, in the order in which they began.
func (f *Fold) Calls() []Call {
	var out []Call
	for _, id := range f.order {
		out = append(out, f.calls[id].value)
	}
	return out
}

// Adopt adds a call whose first event, began, precedes the events given to Add.
func (f *Fold) Adopt(c Call, began event.Seq) { f.findOrAddCall(c.CallID, began).value = c }

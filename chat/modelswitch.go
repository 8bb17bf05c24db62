package chat

import (
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
	"github.com/seed-dec29ce4/eca/llm"
)

// A chat can continue with another model. That model is sent the history without the parts that only
// earlier models can read, such as their reasoning. The user is notified when the model changes
// (eca-features.md 7).

// noteModelSwitch notifies the user, if the model has changed, of the parts of the history that the new
// model is not sent.
func (t *turn) noteModelSwitch() {
	if previous := read(t.rec, (*history.History).PreviousModel); previous == "" || previous == t.model.ID {
		return
	}
	if withheld := t.model.describeWithheld(read(t.rec, (*history.History).Messages)); withheld != "" {
		t.rec.emit(event.Notice{Text: fmt.Sprintf("This chat continues with %s. It %s. It gets the rest of the conversation unchanged.\n\n", t.model.displayName(), withheld)})
	}
}

// describeWithheld returns the rest of a sentence that begins with the model's name and describes which parts
// of a history it is not sent; empty if it is sent everything.
func (m Model) describeWithheld(messages []llm.Message) string {
	reasoning, images := false, 0
	for _, msg := range messages {
		for _, p := range msg.Parts {
			switch p := p.(type) {
			case llm.Reasoning:
				reasoning = reasoning || m.ReadsReasoning != nil && p.API != "" && !m.ReadsReasoning(p.API)
			case llm.Image:
				images++
			case llm.ToolResult:
				images += len(p.Images)
			case llm.ServerCall:
				images += len(p.Images)
			}
		}
	}
	var out []string
	if reasoning {
		out = append(out, "is not sent the reasoning of the models before it, which only they can read")
	}
	if m.NoImages && images > 0 {
		out = append(out, fmt.Sprintf("cannot see %s", countImages(images)))
	}
	return strings.Join(out, ", and ")
}

func countImages(n int) string {
	if n == 1 {
		return "the image in it"
	}
	return fmt.Sprintf("the %d images in it", n)
}

// chooseModel returns the first of these that is set: the prompt's model, the chat's last model, the
// agent's model, the default model.
func (t *turn) chooseModel() (Model, error) {
	last := t.session.log.Meta().Model
	name := t.prompt.Model
	if name == "" {
		name = last
	}
	if name == "" {
		name = t.Config.Agents[t.agent].DefaultModel
	}
	model, err := t.Models.Resolve(name, last)
	if err != nil && t.prompt.Model == "" && name != "" {
		// The chat's last model is gone; a default is better than nothing.
		model, err = t.Models.Resolve("", "")
	}
	return model, err
}

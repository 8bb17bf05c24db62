package chat

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// assignment connects a child turn with the call of the parent turn that started it. It counts the
// child's steps and collects the text for the result of that call. The prompt of the child turn
// contains the task itself.
type assignment struct {
	parentTurn *turnContext
	callID     string         // id of the parent's tool call; the child turn has the same id
	subagent   event.Subagent // agent, model and limits of the subagent

	mu           sync.Mutex      // guards the fields below
	steps        int             // batches of tool calls so far
	text         strings.Builder // the subagent's text since its last tool call
	previousText string          // its last nonempty text before a tool call
}

// observe handles an event of the child turn: it collects text for the subagent's result,
// and reports its usage in the parent's chat.
func (a *assignment) observe(b event.Body) {
	switch b := b.(type) {
	case event.TextDelta:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.text.WriteString(b.Text)
	case event.ToolProposed:
		a.mu.Lock()
		defer a.mu.Unlock()
		if text := strings.TrimSpace(a.text.String()); text != "" {
			a.previousText = text
		}
		a.text.Reset()
	case event.UsageReported:
		usage := b // its limits and share describe the subagent's context, not the parent's
		usage.Purpose, usage.ContextLimit, usage.OutputLimit, usage.Share = PurposeSubagent, 0, 0, nil
		if b.Cost != nil {
			total := a.parentTurn.session.cost.add(*b.Cost)
			usage.TotalCost = &total
		}
		a.parentTurn.rec.emit(usage)
	default:
	}
}

// countStep counts a batch of tool calls and shows the count in the parent's call. It returns an
// error if the limit is exceeded. It does nothing for a nil assignment.
func (a *assignment) countStep() error {
	if a == nil {
		return nil
	}
	subagent := a.subagent
	a.mu.Lock()
	exceeded := subagent.MaxSteps > 0 && a.steps >= subagent.MaxSteps
	if !exceeded {
		a.steps++
	}
	subagent.Step = a.steps
	a.mu.Unlock()
	if exceeded {
		return fmt.Errorf("the limit of %d steps (maxSteps) is reached", subagent.MaxSteps)
	}
	if !subagent.Background { // the call of a background subagent has already ended
		a.parentTurn.rec.emit(event.ToolUpdated{CallID: a.callID, Details: &event.Details{Subagent: &subagent}})
	}
	return nil
}

// outcome returns the subagent's last text and the number of its steps.
func (a *assignment) outcome() (text string, steps int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.TrimSpace(cmp.Or(strings.TrimSpace(a.text.String()), a.previousText)), a.steps
}

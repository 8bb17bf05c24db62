package chat

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// assignment is the task of a child turn: what it was started as, and the turn that started it.
type assignment struct {
	parentTurn *setting       // that of the parent turn
	call       string         // id of the parent's call, and of the child turn
	sub        event.Subagent // what it was started as

	mu         sync.Mutex      // guards what follows
	steps      int             // batches of tool calls
	said       strings.Builder // since its last call
	saidBefore string          // its last text before calls
}

// mirrorToParent keeps what the result of the subagent is made of, and adds its costs to the
// parent's chat.
func (a *assignment) mirrorToParent(b event.Body) {
	switch b := b.(type) {
	case event.TextDelta:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.said.WriteString(b.Text)
	case event.ToolProposed:
		a.mu.Lock()
		defer a.mu.Unlock()
		if said := strings.TrimSpace(a.said.String()); said != "" {
			a.saidBefore = said
		}
		a.said.Reset()
	case event.UsageReported:
		cost := b
		cost.Purpose, cost.ContextLimit, cost.OutputLimit, cost.Share = PurposeSubagent, 0, 0, nil
		if b.Cost != nil {
			total := a.parentTurn.s.cost.add(*b.Cost)
			cost.TotalCost = &total
		}
		a.parentTurn.rec.emit(cost)
	default:
	}
}

// countStep counts a batch of tool calls and shows the count with the parent's call. It fails when
// the limit is reached. A nil assignment counts nothing.
func (a *assignment) countStep() error {
	if a == nil {
		return nil
	}
	sub := a.sub
	a.mu.Lock()
	enough := sub.MaxSteps > 0 && a.steps >= sub.MaxSteps
	if !enough {
		a.steps++
	}
	sub.Step = a.steps
	a.mu.Unlock()
	if enough {
		return fmt.Errorf("the limit of %d steps (maxSteps) is reached", sub.MaxSteps)
	}
	if !sub.Background { // whose call has ended
		a.parentTurn.rec.emit(event.ToolUpdated{CallID: a.call, Details: &event.Details{Subagent: &sub}})
	}
	return nil
}

// outcome returns the last that the subagent said, and how many steps it took.
func (a *assignment) outcome() (said string, steps int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.TrimSpace(cmp.Or(strings.TrimSpace(a.said.String()), a.saidBefore)), a.steps
}

package chat

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
)

// Budget counts what turns, chats and days spend, and knows their limits; package chat/budget
// implements it. A subagent's chat has no budget of its own: its parent's counts.
type Budget interface {
	// Begin counts for a turn of a chat until end is called.
	Begin(chatID, turnID string, limits config.Budget) (end func())
	// Check compares what is spent with the limits of a chat and of its running turn.
	Check(ctx context.Context, chatID string) BudgetState
	// Extend lets the running turn spend each limit that is reached once more.
	Extend(ctx context.Context, chatID string)
	// Pause stops the clock of the running turn until resume is called.
	Pause(chatID string) (resume func())
}

// BudgetState says how a chat stands.
type BudgetState struct {
	Warnings []string // what the user is to be notified of, each once
	Reached  string   // the limit that is reached, as a sentence; or empty
	Remedy   string   // what the user can do then
	// TimeLeft is how long the turn may still take; 0 if no limit in time applies.
	TimeLeft time.Duration
}

// ErrBudget is the error of requests that are not made because a limit is reached.
var ErrBudget = errors.New("the budget is spent")

// errBudget ends a turn whose budget is spent.
type errBudget struct {
	BudgetState
	answered bool // the user was asked and does not want to go on
}

func (e errBudget) Error() string { return e.Reached }

func (errBudget) Unwrap() error { return ErrBudget }

// notice is what the end of the turn shows.
func (e errBudget) notice() string {
	if e.answered {
		return fmt.Sprintf("\n\n%s\n", e.Reached)
	}
	return fmt.Sprintf("\n\n%s The turn stops here. %s\n", e.Reached, e.Remedy)
}

// budgetNotice is what the end of a turn shows whose budget is spent.
func budgetNotice(err error) event.Body {
	var spent errBudget
	if errors.As(err, &spent) {
		return event.Notice{Text: spent.notice()}
	}
	return event.Notice{Text: "\n\n" + err.Error() + "\n"} // of a request beside the conversation
}

// Choices of the user when a budget is spent.
const (
	choiceGoOn = "Go on"
	choiceStop = "Stop"
)

// turnBudget keeps a turn within its budget. A subagent's is that of its parent turn.
type turnBudget struct {
	*setting
	end func() // of counting
}

// payer returns the setting of the turn that pays.
func (b *turnBudget) payer() *setting {
	if b.assignment != nil {
		return b.assignment.parentTurn
	}
	return b.setting
}

// begin begins to count, until end is called.
func (b *turnBudget) begin() {
	if keeper := b.s.eng.deps.Budget; keeper != nil && b.assignment == nil {
		b.end = keeper.Begin(b.s.id, b.id, b.Config.Budget)
	}
}

// pauseBudget stops the clock while the user is asked.
func (t *setting) pauseBudget() (resume func()) {
	keeper := t.s.eng.deps.Budget
	if keeper == nil {
		return func() {}
	}
	return keeper.Pause((&turnBudget{setting: t}).payer().s.id)
}

// warn notifies the user of limits that are nearly reached.
func (b *turnBudget) warn() BudgetState {
	keeper := b.s.eng.deps.Budget
	if keeper == nil {
		return BudgetState{}
	}
	of := b.payer()
	state := keeper.Check(b.ctx, of.s.id)
	for _, text := range state.Warnings {
		of.rec.say("\n" + text + "\n")
	}
	return state
}

// sayAtEnd notifies the user of limits after the last request, which may have exceeded one.
func (b *turnBudget) sayAtEnd() {
	if state := b.warn(); state.Reached != "" && b.assignment == nil {
		b.rec.say("\n" + state.Reached + "\n")
	}
}

// silence is how long an answer must have paused for a limit in time to end its request.
const silence = 5 * time.Second

// errOutOfTime is the cause that ends a request at a limit in time.
var errOutOfTime = errors.New("the time is spent")

// timed returns a context for a request that ends at a limit in time, unless an answer is arriving:
// a provider that is silent, or fails again and again, must not hold the turn. heard is called for
// each part of the answer, stop at its end.
func (b *turnBudget) timed() (ctx context.Context, heard, stop func()) {
	left := b.warn().TimeLeft
	if left <= 0 {
		return b.ctx, func() {}, func() {}
	}
	ctx, cancel := context.WithCancelCause(b.ctx)
	var arriving atomic.Bool
	go func() {
		timer := time.NewTimer(left)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-timer.C:
			}
			if !arriving.Swap(false) {
				cancel(errOutOfTime)
				return
			}
			timer.Reset(silence)
		}
	}()
	return ctx, func() { arriving.Store(true) }, func() { cancel(nil) }
}

// admit returns nil if the turn may make another request. At a limit it asks the user.
func (b *turnBudget) admit() error {
	for {
		state := b.warn()
		if state.Reached == "" {
			return nil
		}
		ask := b.s.eng.deps.AskUser
		if b.assignment != nil || ask == nil {
			return errBudget{state, false}
		}
		resume := b.pauseBudget()
		answer, asked := ask(b.ctx, b.s.id, state.Reached+" Go on, and spend as much again in this turn?", []string{choiceGoOn, choiceStop})
		resume()
		switch {
		case b.ctx.Err() != nil:
			return context.Cause(b.ctx)
		case !asked || answer != choiceGoOn:
			return errBudget{state, asked}
		}
		b.s.eng.deps.Budget.Extend(b.ctx, b.s.id)
		b.rec.enter(progressWaiting)
	}
}

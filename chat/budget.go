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

// Budget tracks what turns, chats and days spend against their limits; package chat/budget implements
// it. The chat of a subagent uses the budget of its parent.
type Budget interface {
	// Begin starts to track a turn of a chat; end stops it.
	Begin(chatID, turnID string, limits config.Budget) (end func())
	// Check compares what was spent with the limits of a chat and its running turn.
	Check(ctx context.Context, chatID string) BudgetState
	// Extend lets the running turn spend the configured amount again for each limit that is reached.
	Extend(ctx context.Context, chatID string)
	// Pause stops the clock of the running turn until resume is called.
	Pause(chatID string) (resume func())
}

// BudgetState is the state of a chat's budget.
type BudgetState struct {
	Warnings []string // new warnings for the user
	Reached  string   // a sentence about the limit that is reached; empty if no limit is
	Remedy   string   // what the user can do about it
	// TimeLeft is how long the turn may still take; 0 if no time limit applies.
	TimeLeft time.Duration
}

// ErrBudget is returned for requests that are not made because a limit is reached.
var ErrBudget = errors.New("the budget is spent")

// budgetError ends a turn whose budget is spent.
type budgetError struct {
	BudgetState
	userStopped bool // the user was asked and chose to stop
}

func (e budgetError) Error() string { return e.Reached }

func (budgetError) Unwrap() error { return ErrBudget }

// notice returns the notice at the end of the turn.
func (e budgetError) notice() string {
	if e.userStopped {
		return fmt.Sprintf("\n\n%s\n", e.Reached)
	}
	return fmt.Sprintf("\n\n%s The turn stops here. %s\n", e.Reached, e.Remedy)
}

// budgetNotice returns the notice at the end of a turn whose budget is spent.
func budgetNotice(err error) event.Body {
	var spent budgetError
	if errors.As(err, &spent) {
		return event.Notice{Text: spent.notice()}
	}
	return event.Notice{Text: "\n\n" + err.Error() + "\n"} // from a side request
}

// Choices of the user if a budget is spent.
const (
	choiceGoOn = "Go on"
	choiceStop = "Stop"
)

// turnBudget keeps a turn within its budget. A subagent uses the budget of its parent turn.
type turnBudget struct {
	*turnContext
	end func() // stops tracking the turn
}

// payer returns the turn whose budget is used.
func (b *turnBudget) payer() *turnContext {
	if b.assignment != nil {
		return b.assignment.parentTurn
	}
	return b.turnContext
}

// begin starts to track the turn, until end is called.
func (b *turnBudget) begin() {
	if keeper := b.session.eng.deps.Budget; keeper != nil && b.assignment == nil {
		b.end = keeper.Begin(b.session.id, b.id, b.Config.Budget)
	}
}

// pauseBudget stops the clock of the budget, for example while the user is asked, until resume is
// called.
func (t *turnContext) pauseBudget() (resume func()) {
	keeper := t.session.eng.deps.Budget
	if keeper == nil {
		return func() {}
	}
	return keeper.Pause((&turnBudget{turnContext: t}).payer().session.id)
}

// warn checks the budget, and notifies the user of limits that are nearly reached.
func (b *turnBudget) warn() BudgetState {
	keeper := b.session.eng.deps.Budget
	if keeper == nil {
		return BudgetState{}
	}
	payer := b.payer()
	state := keeper.Check(b.ctx, payer.session.id)
	for _, text := range state.Warnings {
		payer.rec.showNotice("\n" + text + "\n")
	}
	return state
}

// warnIfSpent notifies the user if the last request of the turn reached a limit.
func (b *turnBudget) warnIfSpent() {
	if state := b.warn(); state.Reached != "" && b.assignment == nil {
		b.rec.showNotice("\n" + state.Reached + "\n")
	}
}

// maxSilence limits the pauses within an answer that is arriving when the time limit is reached. A
// longer pause ends the request.
const maxSilence = 5 * time.Second

// errTimeLimit is the cancellation cause of a request that reached a time limit.
var errTimeLimit = errors.New("the time limit is reached")

// withTimeLimit returns a context that ends a request at a time limit, so that a provider that is
// silent or fails repeatedly does not hold up the turn. It does not end a request while an answer is
// arriving. The caller calls noteArrival for each part of the answer, and stop at its end.
func (b *turnBudget) withTimeLimit() (ctx context.Context, noteArrival, stop func()) {
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
				cancel(errTimeLimit)
				return
			}
			timer.Reset(maxSilence)
		}
	}()
	return ctx, func() { arriving.Store(true) }, func() { cancel(nil) }
}

// admit returns nil if the turn may make another request. If a limit is reached, it asks the user.
func (b *turnBudget) admit() error {
	for {
		state := b.warn()
		if state.Reached == "" {
			return nil
		}
		ask := b.session.eng.deps.AskUser
		if b.assignment != nil || ask == nil {
			return budgetError{state, false}
		}
		resume := b.pauseBudget()
		answer, asked := ask(b.ctx, b.session.id, state.Reached+" Go on, and spend as much again in this turn?", []string{choiceGoOn, choiceStop})
		resume()
		switch {
		case b.ctx.Err() != nil:
			return context.Cause(b.ctx)
		case !asked || answer != choiceGoOn:
			return budgetError{state, asked}
		}
		b.session.eng.deps.Budget.Extend(b.ctx, b.session.id)
		b.rec.showProgress(progressWaiting)
	}
}

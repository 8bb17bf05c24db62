// Package budget tracks the usage of requests to models, and compares it with limits.
//
// A Keeper wraps models and counts every request to them, regardless of its purpose (turns, subagents,
// titles, compaction, rewrites, completions, sampling requests of MCP servers). The sums of chats and
// days are stored in spending.db, a file that all daemons of the user share.
//
// It guarantees that counting a request never waits for the file, and that a request that is not part
// of a turn is refused once a limit is reached. A turn calls Check before each of its requests, so a
// limit is exceeded by at most the requests that are running. If the file cannot be used, the usage of
// this process is still counted.
//
// It does not stop running requests, ask the user, or depend on the content of chats.
//
// Entry point: New.
package budget

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// Options of a Keeper. All fields are required.
type Options struct {
	Dir    string               // eca's state folder
	Config func() config.Budget // the configured limits
	// Source returns where a limit is configured: a flag, or a key with its file as one text.
	Source func(scope string, limit config.Amount) (flag, key string)
	Now    func() time.Time
	Log    *slog.Logger
}

// Keeper implements chat.Budget.
type Keeper struct {
	opts   Options
	ledger *spending.Ledger

	mu     sync.Mutex       // guards the fields below
	turns  map[string]*turn // running turns, by chat
	warned map[string]bool  // warnings that were returned, by key
}

var _ chat.Budget = (*Keeper)(nil)

// turn is a running turn with its spending.
type turn struct {
	id           string
	limits       config.Budget
	spent        config.Amount
	countedUntil time.Time          // spent includes its time up to this moment
	pauses       int                // number of Pause calls without a resume; time does not count while it is above 0
	extended     map[string]float64 // limits after Extend, by scope and kind
	unpriced     []string           // models without a price that it has used
	ownLimits    spending.OwnLimits // own limits of its chat; nil until they are read
}

// New returns a keeper. Close must be called.
func New(o Options) *Keeper {
	return &Keeper{opts: o, ledger: spending.New(o.Dir, o.Now, o.Log), turns: map[string]*turn{}, warned: map[string]bool{}}
}

// Move sets the folder of a keeper that has not been used yet.
func (k *Keeper) Move(dir string) { k.ledger.Move(dir) }

// Close writes pending usage to the file and closes it.
func (k *Keeper) Close() { k.ledger.Close() }

// Forget deletes a chat's recorded spending and its limits.
func (k *Keeper) Forget(ctx context.Context, chatID string) {
	if err := k.ledger.Forget(ctx, chatID); err != nil {
		k.opts.Log.Warn("cannot remove the spending of a deleted chat", "chat", chatID, "err", err)
	}
}

// Begin implements chat.Budget.
func (k *Keeper) Begin(chatID, turnID string, limits config.Budget) (end func()) {
	t := &turn{id: turnID, limits: limits, countedUntil: k.opts.Now(), extended: map[string]float64{}}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turns[chatID] = t
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.tick(chatID, t)
		if k.turns[chatID] == t {
			delete(k.turns, chatID)
		}
	}
}

// tick adds the time of a turn since the last tick. The caller holds mu.
func (k *Keeper) tick(chatID string, t *turn) {
	now := k.opts.Now()
	passed := now.Sub(t.countedUntil)
	t.countedUntil = now
	if t.pauses > 0 || passed <= 0 {
		return
	}
	t.spent.Time += passed
	if passed = passed.Round(time.Millisecond); passed > 0 {
		k.ledger.Add(chatID, "", spending.Usage{Amount: config.Amount{Time: passed}})
	}
}

// Pause implements chat.Budget.
func (k *Keeper) Pause(chatID string) (resume func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.turns[chatID]
	if t == nil {
		return func() {}
	}
	k.tick(chatID, t)
	t.pauses++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.tick(chatID, t)
		t.pauses--
	}
}

// charge adds the usage of a request. The usage of a subagent is added to its parent chat.
func (k *Keeper) charge(o llm.Origin, model string, u spending.Usage) {
	chatID := chargedChat(o)
	k.mu.Lock()
	if t := k.turns[chatID]; t != nil && (o.Parent != "" || o.Turn == "" || o.Turn == t.id) {
		t.spent = t.spent.Plus(u.Amount)
		if u.Priced == 0 && !slices.Contains(t.unpriced, model) {
			t.unpriced = append(t.unpriced, model)
		}
	}
	k.mu.Unlock()
	k.ledger.Add(chatID, model, u)
}

// chargedChat returns the chat to which a request is charged; empty if the request is not from a chat.
func chargedChat(o llm.Origin) string {
	if o.Parent != "" {
		return o.Parent
	}
	return o.Chat
}

// Check implements chat.Budget.
func (k *Keeper) Check(ctx context.Context, chatID string) (out chat.BudgetState) {
	return k.check(ctx, chatID, true)
}

// check implements Check. If notify is false, it leaves new warnings to the next Check.
func (k *Keeper) check(ctx context.Context, chatID string, notify bool) (out chat.BudgetState) {
	limits, unreadable := k.currentLimits(ctx, chatID)
	if len(limits) == 0 || ctx.Err() != nil {
		return out
	}
	warn := func(key, format string, args ...any) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if notify && !k.warned[key] {
			k.warned[key] = true
			out.Warnings = append(out.Warnings, fmt.Sprintf(format, args...))
		}
	}
	if unreadable != nil && slices.ContainsFunc(limits, func(l Limit) bool { return l.Scope != scopeTurn }) {
		warn("file", "eca cannot read the spending of its other processes (%s: %v), so the budgets of the chat and the day count only this process. If the file is damaged, move it away.", k.ledger.Path(), unreadable)
	}
	for _, l := range limits {
		if l.kind == kindCost {
			for _, model := range k.unpriced(chatID) {
				warn("price "+chatID+" "+model, PriceUnknown, model)
			}
		}
		if left := time.Duration((l.Limit - l.Spent) * float64(time.Second)); l.kind == kindTime && left > 0 && (out.TimeLeft == 0 || left < out.TimeLeft) {
			out.TimeLeft = left
		}
		switch share := l.Spent/l.Limit + rounding; {
		case share >= 1 && out.Reached == "":
			out.Reached, out.Remedy = fmt.Sprintf("%s budget is used up: %s.", strings.ToUpper(l.possessive()[:1])+l.possessive()[1:], l.Text()), k.remedy(l)
		case share >= 1:
		case share >= warnAt:
			warn(l.key, "%d%% of %s budget is spent: %s.", int(share*100), l.possessive(), l.Text())
		}
	}
	return out
}

// rounding compensates for floating-point errors, so that 4 of 5 cents count as 80%.
const rounding = 1e-9

// warnAt is the share of a limit from which the user is warned.
const warnAt = 0.8

func (k *Keeper) unpriced(chatID string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.turns[chatID]; t != nil {
		return slices.Clone(t.unpriced)
	}
	return nil
}

// Extend implements chat.Budget.
func (k *Keeper) Extend(ctx context.Context, chatID string) {
	limits, _ := k.currentLimits(ctx, chatID)
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.turns[chatID]
	if t == nil {
		return
	}
	for _, l := range limits {
		if l.Spent/l.Limit+rounding >= 1 {
			t.extended[l.Scope+l.kind] = l.Spent + l.configured
		}
	}
}

// admit returns an error if a limit is reached. It is for requests outside turns; turns call
// Check.
func (k *Keeper) admit(ctx context.Context, o llm.Origin) error {
	if state := k.check(ctx, chargedChat(o), false); state.Reached != "" {
		return fmt.Errorf("%w: %s %s", chat.ErrBudget, state.Reached, state.Remedy)
	}
	return nil
}

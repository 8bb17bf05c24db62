package budget

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// The scopes and kinds of limits.
const (
	scopeTurn = "turn"
	scopeChat = "chat"
	scopeDay  = "day"

	kindCost   = "cost"
	kindTokens = "tokens"
	kindTime   = "time"
)

// Limit is a limit and the amount spent, in dollars, tokens or seconds.
type Limit struct {
	Scope        string // turn, chat or day
	Limit, Spent float64
	Own          bool // /budget set it for this chat

	kind       string
	key        string  // identifies the limit among those of all chats and days
	configured float64 // Limit before it was extended
}

// possessive returns the scope of the limit as a possessive, as in "this chat's budget".
func (l Limit) possessive() string {
	switch l.Scope {
	case scopeDay:
		return "today's"
	case scopeChat:
		return "this chat's"
	}
	return "this turn's"
}

// remedy describes what the user can do once a limit is reached.
func (k *Keeper) remedy(l Limit) string {
	out := fmt.Sprintf("To change it for this chat, use `/budget %s` with a higher limit or `off`.", l.Scope)
	if !l.Own && k.opts.Source != nil {
		switch flag, key := k.opts.Source(l.Scope, l.amount()); {
		case flag != "":
			out = fmt.Sprintf("%s sets this limit: raise it, or leave it out.", flag)
		case key != "":
			out = fmt.Sprintf("%s sets this limit. %s", key, out)
		}
	}
	if l.Scope == scopeTurn {
		out = "The next prompt has the full budget again. " + out
	}
	return out
}

// amount returns the limit as it was configured.
func (l Limit) amount() config.Amount {
	switch l.kind {
	case kindCost:
		return config.Amount{Cost: l.configured}
	case kindTokens:
		return config.Amount{Tokens: int64(l.configured)}
	}
	return config.Amount{Time: time.Duration(l.configured * float64(time.Second))}
}

// PriceUnknown is the format of the warning about a model without a price.
const PriceUnknown = "eca does not know the price of %s, so budgets in money do not count it: set the model's `cost` in the configuration, or a token budget."

// IsMoney reports whether the limit is an amount of money, which needs the prices of models.
func (l Limit) IsMoney() bool { return l.kind == kindCost }

// Text describes how much of the limit is spent.
func (l Limit) Text() string { return format(l.kind, l.Spent) + " of " + format(l.kind, l.Limit) }

// format formats an amount of a kind.
func format(kind string, n float64) string {
	switch kind {
	case kindTokens:
		return fmt.Sprintf("%.0f tokens", n)
	case kindTime:
		return time.Duration(n * float64(time.Second)).Round(time.Second).String()
	}
	return Dollars(n)
}

// Dollars formats an amount of money, with enough digits to tell it from zero.
func Dollars(n float64) string {
	switch {
	case n >= 1 || n == 0:
		return fmt.Sprintf("$%.2f", n)
	case n < 0.0001:
		return "$" + strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprintf("$%.4f", n)
}

// currentLimits returns the limits that apply to a chat and its running turn, with the amounts spent. For an
// empty chatID it returns the limits of the day. If it returns an error, the amounts include only the
// usage of this process. It does not read the amounts of scopes without a limit.
func (k *Keeper) currentLimits(ctx context.Context, chatID string) ([]Limit, error) {
	own, err := k.chatLimits(ctx, chatID)
	limits, running, spent, extended := k.turnLimits(chatID)
	var out []Limit
	for _, scope := range []string{scopeTurn, scopeChat, scopeDay} {
		texts, isOwn := own[scope]
		if !isOwn {
			texts = *limits.Of(scope)
		}
		limit, parseErr := config.ParseBudget(texts)
		if parseErr != nil || limit == (config.Amount{}) || scope == scopeChat && chatID == "" {
			continue
		}
		id := cmp.Or(map[string]string{scopeTurn: running, scopeChat: chatID}[scope], k.today().Format(time.DateOnly))
		var readErr error
		switch scope {
		case scopeChat:
			spent[scope], readErr = k.ledger.Chat(ctx, chatID)
		case scopeDay:
			var today map[string]spending.Usage
			today, readErr = k.ledger.Since(ctx, k.today())
			spent[scope] = total(today).Amount
		}
		err = cmp.Or(err, readErr) // the errors have the same cause
		for _, kind := range []string{kindCost, kindTokens, kindTime} {
			if n := amountOf(kind, limit); n > 0 {
				l := Limit{Scope: scope, Limit: n, Spent: amountOf(kind, spent[scope]), Own: isOwn, kind: kind, configured: n}
				l.Limit = max(n, extended[scope+kind])
				l.key = fmt.Sprint(scope, kind, id, l.Limit)
				out = append(out, l)
			}
		}
	}
	return out, err
}

// chatLimits returns the limits that /budget set for a chat. They are read once per turn.
func (k *Keeper) chatLimits(ctx context.Context, chatID string) (spending.OwnLimits, error) {
	if chatID == "" {
		return nil, nil
	}
	k.mu.Lock()
	t := k.turns[chatID]
	if t != nil && t.ownLimits != nil {
		defer k.mu.Unlock()
		return t.ownLimits, nil
	}
	k.mu.Unlock()
	own, err := k.ledger.Limits(ctx, chatID)
	if own == nil {
		own = spending.OwnLimits{}
	}
	if t == nil || err != nil {
		return own, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if t.ownLimits == nil { // SetLimits may have set them in the meantime
		t.ownLimits = own
	}
	return t.ownLimits, nil
}

// turnLimits returns the configured limits for a chat and, if a turn runs in it, the turn's id (running),
// its usage and the limits that Extend has raised.
func (k *Keeper) turnLimits(chatID string) (limits config.Budget, running string, spent map[string]config.Amount, extended map[string]float64) {
	spent, extended = map[string]config.Amount{}, map[string]float64{}
	k.mu.Lock()
	defer k.mu.Unlock()
	t := k.turns[chatID]
	if t == nil {
		return k.opts.Config(), "", spent, extended
	}
	k.tick(chatID, t)
	spent[scopeTurn] = t.spent
	for key, n := range t.extended {
		extended[key] = n
	}
	return t.limits, t.id, spent, extended
}

// amountOf returns the part of an amount that a kind of limit applies to.
func amountOf(kind string, a config.Amount) float64 {
	switch kind {
	case kindCost:
		return a.Cost
	case kindTokens:
		return float64(a.Tokens)
	}
	return a.Time.Seconds()
}

func total(by map[string]spending.Usage) (sum spending.Usage) {
	for _, u := range by {
		sum = sum.Plus(u)
	}
	return sum
}

// today returns the beginning of the current day in local time.
func (k *Keeper) today() time.Time {
	y, m, d := k.opts.Now().Local().Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.Local)
}

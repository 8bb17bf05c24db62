package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Budget is the budget section: the limits of a turn, a chat and a day. All limits of a list apply.
type Budget struct {
	Turn Strings `json:"turn,omitempty" trust:"stricter" doc:"The limit of one turn with its subagents: $2, 200k tokens, 30 minutes, or a list of them." each:"A limit."`
	Chat Strings `json:"chat,omitempty" trust:"stricter" doc:"The limit of one chat." each:"A limit."`
	Day  Strings `json:"day,omitempty" trust:"stricter" doc:"Your limit for a day, in all chats of all daemons." each:"A limit."`
}

// budgetScopes returns the keys of Budget.
func budgetScopes() []string { return []string{"turn", "chat", "day"} }

// Of returns the limits of a scope (turn, chat or day); nil for another scope.
func (b *Budget) Of(scope string) *Strings {
	switch scope {
	case "turn":
		return &b.Turn
	case "chat":
		return &b.Chat
	case "day":
		return &b.Day
	}
	return nil
}

// Amount is an amount of money in dollars, of tokens, and of time. In a limit, 0 means unlimited.
type Amount struct {
	Cost   float64
	Tokens int64
	Time   time.Duration
}

// Plus returns the sum of two amounts.
func (a Amount) Plus(b Amount) Amount {
	return Amount{a.Cost + b.Cost, a.Tokens + b.Tokens, a.Time + b.Time}
}

// BudgetForm explains the notation of limits in messages.
const BudgetForm = "write money as $2.50, tokens as 200k tokens, time as 30 minutes"

// maxLimit keeps limits far from the ends of the number types.
const maxLimit = 1e12

// ParseBudget returns the smallest limit of each kind in a list.
func ParseBudget(limits []string) (Amount, error) {
	var out Amount
	for _, text := range limits {
		a, err := parseLimit(text)
		if err != nil {
			return Amount{}, err
		}
		out.Cost = stricterOf(out.Cost, a.Cost)
		out.Tokens = stricterOf(out.Tokens, a.Tokens)
		out.Time = stricterOf(out.Time, a.Time)
	}
	return out, nil
}

// stricterOf returns the smaller of two limits; 0 means unlimited.
func stricterOf[T float64 | int64 | time.Duration](a, b T) T {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// parseLimit reads one limit.
func parseLimit(text string) (Amount, error) {
	number, unit, dollars := splitLimit(text)
	n, err := strconv.ParseFloat(strings.ReplaceAll(number, "_", ""), 64)
	fail := func(why string) (Amount, error) {
		return Amount{}, fmt.Errorf("%q %s; %s", text, why, BudgetForm)
	}
	for _, scale := range []struct {
		prefix string
		factor float64
	}{{"k", 1e3}, {"M", 1e6}} {
		rest, ok := strings.CutPrefix(unit, scale.prefix)
		if ok && (rest == "" || rest[0] == ' ' || rest == "tokens") {
			n, unit = n*scale.factor, cmp.Or(strings.TrimSpace(rest), "tokens")
			break
		}
	}
	switch {
	case err == nil && len(unit) > 1 && (unit[0] == 'e' || unit[0] == 'E') && strings.Trim(unit[1:], "+-0123456789") == "":
		return fail("has an exponent; write the number out")
	case number == "" || err != nil || math.IsNaN(n) || math.IsInf(n, 0):
		return fail("is not a limit")
	case n <= 0:
		return fail("is not more than 0")
	case n > maxLimit:
		return fail("is too large")
	}
	unit = strings.ToLower(unit)
	switch {
	case dollars && unit == "", !dollars && slices.Contains([]string{"$", "usd", "dollar", "dollars"}, unit):
		return Amount{Cost: n}, nil
	case dollars:
		return fail("has two units")
	case unit == "token" || unit == "tokens":
		return Amount{Tokens: max(1, int64(n))}, nil
	case unit == "":
		return fail("has no unit")
	}
	seconds := map[string]float64{
		"s": 1, "second": 1, "seconds": 1, "m": 60, "min": 60, "minute": 60, "minutes": 60, "h": 3600, "hour": 3600, "hours": 3600,
	}[unit]
	switch {
	case seconds == 0:
		return fail(fmt.Sprintf("has an unknown unit or currency, %s", unit))
	case n*seconds > math.MaxInt32:
		return fail("is too large")
	}
	return Amount{Time: max(1, time.Duration(n*seconds*float64(time.Second)))}, nil
}

// splitLimit separates the number of a limit from its unit. dollars means that it begins with $.
func splitLimit(text string) (number, unit string, dollars bool) {
	text = strings.TrimSpace(text)
	sign := ""
	if rest, negative := strings.CutPrefix(text, "-"); negative {
		sign, text = "-", rest
	}
	text, dollars = strings.CutPrefix(text, "$")
	end := strings.IndexFunc(text, func(r rune) bool { return !strings.ContainsRune("0123456789._-+", r) })
	if end < 0 {
		end = len(text)
	}
	if text == "" {
		return "", "", dollars
	}
	return sign + text[:end], strings.TrimSpace(text[end:]), dollars
}

// checkBudget removes limits that cannot be read, and reports them.
func (b *builder) checkBudget() {
	for _, scope := range budgetScopes() {
		limits, at := b.Budget.Of(scope), []string{"budget", scope}
		*limits = slices.DeleteFunc(*limits, func(text string) bool {
			_, err := parseLimit(text)
			if err != nil {
				b.problemAt(at, "%s: %v; it is ignored", KeyPath(at), err)
			}
			return err != nil
		})
	}
}

// withholdBudget removes the budget from a workspace's file, whether it is trusted or not: its
// limits are added to the user's.
func (b *builder) withholdBudget(l *layer) {
	value, found := l.content["budget"]
	if !found {
		return
	}
	section, ok := value.(map[string]any)
	if !ok { // null would remove the user's
		delete(l.content, "budget")
		b.problem(l.origin([]string{"budget"}), "budget: a workspace's file can only add limits; it is ignored")
	}
	for _, scope := range budgetScopes() {
		v, found := section[scope]
		if !found {
			continue
		}
		delete(section, scope)
		t := tightening{l, []string{"budget", scope}, v}
		if !tightens(t.path, v) {
			b.problem(l.origin(t.path), "%s: a workspace's file can only set valid limits, %s; it is ignored", KeyPath(t.path), BudgetForm)
			continue
		}
		b.stricter = append(b.stricter, t)
	}
}

// tightensBudget reports whether a value is a list of limits.
func tightensBudget(v any) bool {
	limits := texts(v)
	_, err := ParseBudget(limits)
	list, isList := v.([]any)
	return err == nil && len(limits) > 0 && (!isList || len(limits) == len(list))
}

// BudgetSource returns the flag of `eca exec` that set a limit of budget.<scope>, or else the key
// with its file. limit must have only one kind: money, tokens or time.
func (l *Loaded) BudgetSource(scope string, limit Amount) (flag, key string) {
	origin, ok := l.Origin("budget", scope)
	switch flags := l.turnBudget; {
	case !ok:
		return "", ""
	case scope != "turn":
	case limit.Cost > 0 && limit.Cost == flags.Cost:
		return "--max-cost", ""
	case limit.Tokens > 0 && limit.Tokens == flags.Tokens:
		return "--max-tokens", ""
	case limit.Time > 0 && limit.Time.Round(time.Millisecond) == flags.Time.Round(time.Millisecond): // it was converted to seconds and back
		return "--max-time", ""
	}
	return "", fmt.Sprintf("budget.%s (%s)", scope, l.limitOrigin(scope, limit, origin))
}

// limitOrigin returns where a limit of budget.<scope> is set: the user's last file that sets it. If no
// file sets it, limitOrigin returns last, the origin of the key's current value.
func (l *Loaded) limitOrigin(scope string, limit Amount, last Origin) Origin {
	for _, layer := range slices.Backward(l.layers) {
		section, _ := layer.content["budget"].(map[string]any)
		for _, text := range texts(section[scope]) {
			a, err := parseLimit(text)
			if err == nil && (limit.Cost > 0 && a.Cost == limit.Cost || limit.Tokens > 0 && a.Tokens == limit.Tokens || limit.Time > 0 && a.Time == limit.Time) {
				return layer.origin([]string{"budget", scope})
			}
		}
	}
	return last
}

// applyBudgetFlags replaces the user's limits of a turn with the limits of the same kind from the
// command line. A workspace's limits are added later.
func (b *builder) applyBudgetFlags() {
	flags, err := ParseBudget(b.in.TurnBudget)
	if len(b.in.TurnBudget) == 0 || err != nil { // the command refuses invalid limits
		return
	}
	in := b.objectAt([]string{"budget"})
	if in == nil { // its type is wrong; it is dropped with a message
		b.merged["budget"] = map[string]any{}
		in = b.objectAt([]string{"budget"})
	}
	limits := slices.Clone(texts(in["turn"]))
	limits = slices.DeleteFunc(limits, func(text string) bool {
		a, err := parseLimit(text)
		return err == nil && (a.Cost > 0 && flags.Cost > 0 || a.Tokens > 0 && flags.Tokens > 0 || a.Time > 0 && flags.Time > 0)
	})
	in["turn"] = anyList(append(limits, b.in.TurnBudget...))
	b.turnBudget = flags
	b.origins[join([]string{"budget", "turn"})] = Origin{Source: "the command line"}
}

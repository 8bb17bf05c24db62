package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseBudget(t *testing.T) {
	for text, want := range map[string]Amount{
		"$2": {Cost: 2}, "$0.50": {Cost: 0.5}, "2.5 USD": {Cost: 2.5}, "3 dollars": {Cost: 3}, "4$": {Cost: 4}, " $1 ": {Cost: 1},
		"200k tokens": {Tokens: 200_000}, "200000 tokens": {Tokens: 200_000}, "1.5M tokens": {Tokens: 1_500_000}, "200k": {Tokens: 200_000}, "1 token": {Tokens: 1}, "1_000 tokens": {Tokens: 1000},
		"30 minutes": {Time: 30 * time.Minute}, "30m": {Time: 30 * time.Minute}, "2h": {Time: 2 * time.Hour}, "90 s": {Time: 90 * time.Second}, "1.5 hours": {Time: 90 * time.Minute},
	} {
		if got, err := ParseBudget([]string{text}); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"0": "not more than 0", "$0": "not more than 0", "-1": "not more than 0", "$-5": "not more than 0", "-$5": "not more than 0", "0 tokens": "not more than 0", "-3 minutes": "not more than 0",
		"5 EUR": "unknown unit or currency, eur", "€5": "not a limit", "5": "no unit", "5 parsecs": "unknown unit", "£3": "not a limit", "": "not a limit", "$": "not a limit", "tokens": "not a limit", "NaN": "not a limit",
		"1e300 tokens": "unknown unit", "99999999999999 tokens": "too large", "99999999 hours": "too large", "$5 EUR": "two units", "1.2.3 tokens": "not a limit", "--5 USD": "not a limit",
	} {
		if _, err := ParseBudget([]string{text}); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), BudgetForm) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	got, err := ParseBudget([]string{"$5", "$2", "1k tokens", "$3", "10k tokens", "5m"})
	if want := (Amount{2, 1000, 5 * time.Minute}); err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

// loadBudget loads the user's text and that of a workspace, which is trusted or not.
func loadBudget(t *testing.T, users, workspaces string, trusted bool, flags ...string) *Loaded {
	t.Helper()
	home, root := t.TempDir(), t.TempDir()
	for path, text := range map[string]string{filepath.Join(home, "config.json"): users, filepath.Join(root, ".eca", "config.json"): workspaces} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(Inputs{
		Getenv: func(string) string { return "" }, ConfigHome: home, Roots: []string{root}, TurnBudget: flags,
		Trusts: func(Unit) bool { return trusted },
	})
}

// The file that sets a limit is named, not the one that sets another limit of the same key.
func TestBudgetSource(t *testing.T) {
	cfg := loadBudget(t, `{"budget": {"turn": "$0.05"}}`, `{"budget": {"turn": ["$100", "1k tokens"]}}`, true)
	for _, limit := range []Amount{{Tokens: 1000}, {Cost: 0.05}} {
		_, key := cfg.BudgetSource("turn", limit)
		if workspace := strings.Contains(key, ".eca"); workspace != (limit.Tokens > 0) || !strings.HasPrefix(key, "budget.turn (") {
			t.Errorf("%+v: %s", limit, key)
		}
	}
}

func TestBudgetOfWorkspaces(t *testing.T) {
	const users = `{"budget": {"turn": "$2", "day": ["$20", "8 hours"]}}`
	for name, c := range map[string]struct {
		workspaces string
		flags      []string
		turn       Amount
		problem    string
	}{
		"looser":         {`{"budget": {"turn": "$50"}}`, nil, Amount{Cost: 2}, ""},
		"stricter":       {`{"budget": {"turn": "$1"}}`, nil, Amount{Cost: 1}, ""},
		"other kind":     {`{"budget": {"turn": ["1k tokens"]}}`, nil, Amount{Cost: 2, Tokens: 1000}, ""},
		"removed":        {`{"budget": {"turn": null}}`, nil, Amount{Cost: 2}, "budget.turn"},
		"emptied":        {`{"budget": {"turn": []}}`, nil, Amount{Cost: 2}, "budget.turn"},
		"section gone":   {`{"budget": null}`, nil, Amount{Cost: 2}, "budget"},
		"other case":     {`{"Budget": {"Turn": "$50"}}`, nil, Amount{Cost: 2}, ""},
		"invalid":        {`{"budget": {"turn": "5 EUR"}}`, nil, Amount{Cost: 2}, "budget.turn"},
		"flag":           {`{}`, []string{"$7"}, Amount{Cost: 7}, ""},
		"flag, stricter": {`{"budget": {"turn": "$1"}}`, []string{"$7", "5k tokens"}, Amount{Cost: 1, Tokens: 5000}, ""},
	} {
		for _, trusted := range []bool{false, true} {
			cfg := loadBudget(t, users, c.workspaces, trusted, c.flags...)
			turn, err := ParseBudget(cfg.Budget.Turn)
			if day, dayErr := ParseBudget(cfg.Budget.Day); err != nil || dayErr != nil || turn != c.turn || day != (Amount{Cost: 20, Time: 8 * time.Hour}) {
				t.Errorf("%s, trusted %v: %+v, %v; %+v, %v", name, trusted, turn, err, day, dayErr)
			}
			if wrong := cfg.MistakesBelow("budget"); c.problem == "" && len(wrong) > 0 {
				t.Errorf("%s, trusted %v: %v", name, trusted, wrong)
			} else if c.problem != "" && len(cfg.Problems) != 1 {
				t.Errorf("%s, trusted %v: %v", name, trusted, cfg.Problems)
			}
		}
	}
}

func TestInvalidBudgetsAreReported(t *testing.T) {
	for text, want := range map[string]string{
		`{"budget": {"chat": ["$0", "$3"]}}`:     `budget.chat: "$0" is not more than 0`,
		`{"budget": {"chat": ["-1 USD", "$3"]}}`: `budget.chat: "-1 USD" is not more than 0`,
		`{"budget": {"chat": ["3 CHF", "$3"]}}`:  `budget.chat: "3 CHF" has an unknown unit or currency, chf`,
	} {
		cfg := loadBudget(t, text, "{}", true)
		got, err := ParseBudget(cfg.Budget.Chat)
		if err != nil || got != (Amount{Cost: 3}) || len(cfg.Problems) != 1 || !strings.Contains(cfg.Problems[0].Cause, want) {
			t.Errorf("%s: %+v, %v, %v", text, got, err, cfg.Problems)
		}
	}
	for _, text := range []string{`{"budget": {"chat": 5}}`, `{"budget": "$5"}`, `{"budget": {"week": "$5"}}`} {
		cfg := loadBudget(t, text, "{}", true)
		if len(cfg.Budget.Chat) > 0 || len(cfg.MistakesAt("budget")) != 1 {
			t.Errorf("%s: %v, %v", text, cfg.Budget, cfg.MistakesAt("budget"))
		}
	}
}

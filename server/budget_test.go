package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/editors/fake"
	"github.com/seed-dec29ce4/eca/llm/spending"
)

// fourCents is a script of which each answer costs $0.04 and uses 300 tokens.
func fourCents(answers int) string {
	return "cassette: 1\ndefault:\n  steps: [{text: A title, usage: {input: 200, output: 100}}]\nturns:\n" +
		strings.Repeat("  - steps: [{text: Answered., usage: {input: 200, output: 100}}]\n", answers)
}

func budgetConfig(scope string, limits ...string) map[string]any {
	return map[string]any{"budget": map[string]any{scope: limits}}
}

// requestCount is how many requests the provider has had.
func (r *rig) requestCount() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.requests)
}

func expect(t *testing.T, text string, pieces ...string) {
	t.Helper()
	for _, p := range pieces {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in %q", p, text)
		}
	}
}

// A daemon counts the spending of the user's other daemons.
func TestTheBudgetOfADayCountsAllDaemons(t *testing.T) {
	t.Parallel()
	state, root := tempDir(t), tempDir(t)
	first := newRig(t, options{model: fourCents(3), state: state, root: root, config: budgetConfig("day", "$0.06")})
	second := newRig(t, options{model: fourCents(3), state: state, root: root, config: budgetConfig("day", "$0.06")})
	expect(t, ask(t, first, "a", "hello"), "Answered.")
	expect(t, ask(t, second, "b", "hello"), "Answered.")
	for _, r := range []*rig{first, second} {
		before := r.requestCount()
		expect(t, ask(t, r, "c", "hello"), "Today's budget is used up: $0.0800 of $0.0600.", "/budget day")
		if r.requestCount() != before {
			t.Error("eca sent a request although today's budget is used up")
		}
	}
	expect(t, ask(t, second, "b", "/costs"), "| today | mock/m | 2 | 600 | $0.0800 |", "| this month | all | 2 | 600 | $0.0800 |", "**$0.0800 per hour**", "This chat has cost **$0.0400**")
}

// The costs of a chat include requests that a rollback took back.
func TestCostsAfterARollback(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: fourCents(3)})
	expect(t, ask(t, r, "c", "hello"), "Answered.")
	first := ""
	for _, m := range r.Since(0) {
		var p struct {
			Role    string
			Content struct{ ContentID string }
		}
		if m.Method == "chat/contentReceived" && json.Unmarshal(m.Params, &p) == nil && p.Role == "user" {
			first = p.Content.ContentID
		}
	}
	expect(t, ask(t, r, "c", "again"), "Answered.")
	expect(t, ask(t, r, "c", "/costs"), "| mock/m | 2 |", "This chat has cost **$0.0800**")
	r.Call("chat/rollback", map[string]any{"chatId": "c", "contentId": first})
	expect(t, ask(t, r, "c", "/costs"), "No request is left in this chat", "This chat has cost **$0.0800**")
}

// The limits of a chat are kept, include its earlier spending, and are shown apart from those of the
// configuration. An invalid limit changes nothing.
func TestBudgetCommand(t *testing.T) {
	t.Parallel()
	state, root := tempDir(t), tempDir(t)
	r := newRig(t, options{model: fourCents(9), state: state, root: root})
	expect(t, ask(t, r, "c", "/budget"), "This chat has no budget")
	expect(t, ask(t, r, "c", "hello"), "Answered.")
	expect(t, ask(t, r, "c", "/budget chat $0.05, 10k tokens"), "| chat | $0.0400 of $0.0500 | /budget |", "| chat | 300 tokens of 10000 tokens | /budget |")
	for line, want := range map[string]string{
		"chat 0": "not more than 0", "chat -$1": "not more than 0", "chat 5 EUR": "unknown unit or currency, eur", "chat": "needs limits", "caht $1": "did you mean chat?",
		"turn 5": "has no unit", "chat $1,": "is not a limit", "reset now": "it must be", "day 1 fortnight": "unknown unit",
	} {
		expect(t, ask(t, r, "c", "/budget "+line), want)
	}
	again := newRig(t, options{model: fourCents(9), state: state, root: root})
	expect(t, ask(t, again, "c", "hello"), "80% of this chat's budget is spent: $0.0400 of $0.0500.", "Answered.")
	expect(t, ask(t, again, "c", "hello"), "This chat's budget is used up: $0.0800 of $0.0500.")
	expect(t, ask(t, again, "other", "hello"), "Answered.")
	expect(t, ask(t, again, "c", "/budget chat off"), "This chat has no budget")
	expect(t, ask(t, again, "c", "hello"), "Answered.")
	expect(t, ask(t, again, "c", "/budget turn 1 token"), "| turn | 0 tokens of 1 tokens | /budget |")
	expect(t, ask(t, again, "c", "/budget reset"), "This chat has no budget")
}

// The chat shows the notice about 80% of a budget once, when this share is reached.
func TestTheUserIsToldOnceOfABudget(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: fourCents(9), config: budgetConfig("chat", "$0.14")})
	for i, want := range []int{0, 0, 1, 0} {
		if got := strings.Count(ask(t, r, "c", "hello"), "% of this chat's budget is spent"); got != want {
			t.Errorf("turn %d: %d notices, want %d", i+1, got, want)
		}
	}
	expect(t, ask(t, r, "c", "hello"), "This chat's budget is used up: $0.1600 of $0.1400.")
}

// A limit of each scope and kind is exceeded by no more than the request that reaches it, however
// many requests the turn would need.
func TestABudgetIsExceededByOneRequest(t *testing.T) {
	t.Parallel()
	glob := func(n int) string {
		return fmt.Sprintf("      - {calls: [{id: g%d, tool: eca__glob, arguments: {pattern: \"%d*\"}}], usage: {input: 200, output: 100}}\n", n, n)
	}
	model := "cassette: 1\nturns:\n  - steps:\n"
	for n := range 9 {
		model += glob(n)
	}
	for _, scope := range []string{"turn", "chat", "day"} {
		for limit, requests := range map[string]int{
			"$0.01": 1, "$0.04": 1, "$0.05": 2, "$0.11": 3, "1 token": 1, "300 tokens": 1, "301 tokens": 2, "1000 tokens": 4,
		} {
			t.Run(scope+" "+limit, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, options{model: model, config: budgetConfig(scope, limit)})
				expect(t, ask(t, r, "c", "hello"), "budget is used up")
				if got := r.requestCount(); got != requests {
					t.Errorf("%d requests of $0.04 and 300 tokens each, want %d", got, requests)
				}
			})
		}
	}
}

// The requests of a subagent count for the budget of the parent turn. At its limit, the subagent ends,
// and then the parent turn.
func TestSubagentsSpendTheBudgetOfTheirParent(t *testing.T) {
	t.Parallel()
	const glob = "      - {calls: [{id: g%d, tool: eca__glob, arguments: {pattern: \"%d*\"}}], usage: {input: 200, output: 100}}\n"
	model := "cassette: 1\nturns:\n  - user: part one\n    steps:\n" + fmt.Sprintf(glob, 1, 1) + fmt.Sprintf(glob, 2, 2) + fmt.Sprintf(glob, 3, 3) + fmt.Sprintf(glob, 4, 4) +
		"  - user: work\n    steps:\n      - {calls: [" + spawn("call_1", "explorer", "part one", "") + "], usage: {input: 200, output: 100}}\n      - {text: Done., usage: {input: 200, output: 100}}\n"
	r := newRig(t, options{model: model, config: budgetConfig("turn", "$0.11")})
	mark := r.Mark()
	text := ask(t, r, "c", "work")
	expect(t, text, "This turn's budget is used up: $0.1200 of $0.1100.")
	if got := r.requestCount(); got != 3 {
		t.Errorf("%d requests, want 3: one of the parent, two of the subagent", got)
	}
	r.Await(mark, "the result of the subagent", fake.Content("toolCalled", "was stopped: This turn's budget is used up"))
	expect(t, ask(t, r, "c", "/budget chat $1"), "| chat | $0.1200 of $1.00 | /budget |")
}

// Requests for titles, summaries and rewrites count, and eca does not send them when the budget is used
// up.
func TestRequestsBesideTheConversationCount(t *testing.T) {
	t.Parallel()
	state, root := tempDir(t), tempDir(t)
	model := strings.Replace(fourCents(1), "turns:", "title: A title\nturns:", 1)
	rewrite := func(r *rig) string {
		mark := r.Mark()
		r.Call("rewrite/prompt", rewriteParams("1", "plain", nil))
		r.Await(mark, "the end of the rewrite", rewriteEnded())
		return renderRewrite(t, r, mark)
	}
	r := newInlineRig(t, options{model: model, state: state, root: root, config: map[string]any{"chat": map[string]any{"title": true}}})
	mark := r.Mark()
	expect(t, ask(t, r, "c", "hello"), "Answered.")
	r.Await(mark, "the title", fake.Content("metadata", "A title"))
	expect(t, ask(t, r, "c", "/costs"), "| today | mock/m | 2 |")
	ask(t, r, "c", "/compact")
	expect(t, ask(t, r, "c", "/costs"), "| today | mock/m | 3 |")
	rewrite(r)
	expect(t, ask(t, r, "c", "/costs"), "| today | mock/m | 4 |")

	poor := newInlineRig(t, options{model: model, state: state, root: root, config: map[string]any{"chat": map[string]any{"title": true}, "budget": map[string]any{"day": "1 token"}}})
	expect(t, rewrite(poor), "Today's budget is used up")
	ask(t, poor, "c", "/compact")
	expect(t, ask(t, poor, "d", "hello"), "Today's budget is used up")
	expect(t, ask(t, poor, "c", "/costs"), "| today | mock/m | 4 |")
	if n := poor.requestCount(); n != 0 {
		t.Errorf("eca sent %d requests although the budget is used up", n)
	}
}

// A limit in money does not count a model without a price. The chat says so once.
func TestBudgetInMoneyForAModelWithoutAPrice(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: fourCents(9), config: map[string]any{
		"budget":    map[string]any{"chat": []string{"$0.01", "500 tokens"}},
		"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"m": map[string]any{"cost": nil}}}},
	}})
	expect(t, ask(t, r, "c", "hello"), "eca does not know the price of mock/m, so budgets in money do not count it", "Answered.")
	if text := ask(t, r, "c", "hello"); strings.Contains(text, "price") || !strings.Contains(text, "Answered.") {
		t.Errorf("the second turn: %s", text)
	}
	expect(t, ask(t, r, "c", "hello"), "This chat's budget is used up: 600 tokens of 500 tokens.")
}

// The command /budget says immediately that a limit in money does not count the chat's model, if the
// model has no price.
func TestBudgetCommandForAModelWithoutAPrice(t *testing.T) {
	t.Parallel()
	r := newRig(t, options{model: fourCents(9), config: map[string]any{
		"providers": map[string]any{"mock": map[string]any{"models": map[string]any{"m": map[string]any{"cost": nil}}}},
	}})
	expect(t, ask(t, r, "c", "/budget chat $5"), "| chat | $0.00 of $5.00 | /budget |", "eca does not know the price of mock/m, so budgets in money do not count it")
	if text := ask(t, r, "c", "/budget chat 500 tokens"); strings.Contains(text, "price") {
		t.Errorf("a limit in tokens gets the notice about prices: %s", text)
	}
}

// If the record of spending cannot be read, turns continue, and limits count what this process spends.
func TestBudgetWithADamagedRecord(t *testing.T) {
	t.Parallel()
	state := tempDir(t)
	if err := os.WriteFile(filepath.Join(state, spending.File), []byte(strings.Repeat("no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, options{model: fourCents(9), state: state, config: budgetConfig("day", "$0.06")})
	expect(t, ask(t, r, "c", "hello"), "count only this process", "Answered.")
	if text := ask(t, r, "c", "hello"); strings.Contains(text, "count only") || !strings.Contains(text, "Answered.") {
		t.Errorf("the second turn: %s", text)
	}
	expect(t, ask(t, r, "c", "hello"), "Today's budget is used up: $0.0800 of $0.0600.")
	expect(t, ask(t, r, "c", "/budget"), "Only this process is counted")
}

// The turn ends if the user says no, or closes the question.
func TestTheUserStopsAtABudget(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"Stop", ""} {
		r := newRig(t, options{model: fourCents(9), config: budgetConfig("chat", "$0.02"), closed: true})
		r.Answer("chat/askQuestion", func(context.Context, json.RawMessage) (any, error) {
			return map[string]any{"answer": answer, "cancelled": answer == ""}, nil
		})
		r.Open(r.root, map[string]any{"capabilities": map[string]any{"codeAssistant": map[string]any{"chat": true, "chatCapabilities": map[string]any{"askQuestion": true}}}})
		expect(t, ask(t, r, "c", "hello"), "Answered.")
		mark := r.Mark()
		expect(t, ask(t, r, "c", "hello"), "This chat's budget is used up: $0.0400 of $0.0200.")
		r.Await(mark, "the question", fake.Contains("chat/askQuestion", "spend as much again"))
		r.Await(mark, "the reason", fake.Contains("chat/contentReceived", `"reason":"budget"`))
		if r.requestCount() != 1 {
			t.Errorf("%q: %d requests", answer, r.requestCount())
		}
	}
}

package chat

import (
	"fmt"
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

// rounds plays rounds of one call each until the guard stops them, 40 at most.
func rounds(round func(i int) (arguments, output string)) int {
	var g loopGuard
	const most = 40
	for i := range most {
		arguments, output := round(i)
		c := call{Tool: event.Tool{CallID: fmt.Sprint(i), Server: "eca", Name: "x"}, arguments: arguments}
		g.addResult(event.ToolFinished{CallID: c.CallID, Outputs: []string{output}})
		if g.addRound([]call{c}) {
			return i + 1
		}
	}
	return most
}

func TestLoopGuard(t *testing.T) {
	for name, c := range map[string]struct {
		round   func(i int) (string, string)
		within  int
		endless bool // the guard never stops these rounds, because they are not a loop
	}{
		"the same":          {func(int) (string, string) { return `{"a":1}`, "r" }, 20, false},
		"two take turns":    {func(i int) (string, string) { return fmt.Sprintf(`{"a":%d}`, i%2), "r" }, 20, false},
		"three take turns":  {func(i int) (string, string) { return fmt.Sprintf(`{"a":%d}`, i%3), "r" }, 20, false},
		"after some others": {func(i int) (string, string) { return fmt.Sprintf(`{"a":%d}`, min(i, 5)), "r" }, 20, false},
		"written otherwise": {func(i int) (string, string) {
			return []string{`{"a":1,"b":2}`, `{ "b": 2, "a": 1 }`, `{"b":2,"a":1}`, `{"a": 1,"b":2}`, "{\n\"a\":1,\"b\":2}"}[i%5], "r"
		}, 20, false},
		"cut, in other files":  {func(i int) (string, string) { return "{}", "r" + tools.CutMark + fmt.Sprint(i) }, 20, false},
		"other results":        {func(i int) (string, string) { return "{}", fmt.Sprint(i) }, 0, true},
		"other arguments":      {func(i int) (string, string) { return fmt.Sprintf(`{"a":%d}`, i), "r" }, 0, true},
		"new results at times": {func(i int) (string, string) { return "{}", fmt.Sprint(i / 6) }, 0, true},
	} {
		if n := rounds(c.round); c.endless != (n == 40) || !c.endless && n > c.within {
			t.Errorf("%s: stopped after %d rounds", name, n)
		}
	}
}

package chat

import (
	"testing"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/history"
)

func TestNewID(t *testing.T) {
	of := func(work *assignment, n *idRegistry) *turnContext {
		e := &Engine{deps: Deps{NewID: func() string { return "new" }}}
		return &turnContext{session: &Session{chatReader: chatReader{eng: e}}, rec: &turnRecord{history: history.New()}, ids: n, assignment: work}
	}
	family := &idRegistry{owners: map[string]*turnRecord{}}
	parent := of(nil, family)
	parent.rec.history.Add(event.ReasoningStarted{ID: "earlier"})
	one, two := of(&assignment{parentTurn: parent}, family), of(&assignment{parentTurn: parent}, family)
	for i, c := range []struct {
		of   *turnContext
		from string
		want string
	}{
		{parent, "a", "a"},
		{parent, "a", "a"}, // the parent has no call with this id yet
		{one, "a", "a-2"},  // the parent may still use the id
		{two, "a", "a-3"},
		{one, "earlier", "earlier-2"},
		{one, "", "new"},
	} {
		if got := c.of.newID(c.from); got != c.want {
			t.Errorf("%d: %q became %q, want %q", i, c.from, got, c.want)
		}
	}
	one.rec.history.Add(event.ToolProposed{Tool: event.Tool{CallID: "a-2"}})
	if got := one.newID("a-2"); got != "a-2-2" {
		t.Errorf("an id that the chat already uses became %q, want a-2-2", got)
	}
}

package cache

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
)

// countingJudge answers with the number of its calls.
type countingJudge struct {
	asked int
	err   error
}

func (a *countingJudge) Ask(_ context.Context, _, _, question string) (string, error) {
	a.asked++
	return fmt.Sprintf("%s %d", question, a.asked), a.err
}

// Each repetition of a question has its own answer, and another process gets the same answer for
// the same repetition. Other judges, models and questions have other answers, and errors are not
// kept.
func TestJudge(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	real := &countingJudge{}
	first := Judge(real, s, "one")
	second := Judge(real, s, "one")
	for i, c := range []struct {
		by interface {
			AskCached(context.Context, string, string, string) (string, bool, error)
		}
		model, question, want string
		cached                bool
	}{
		{first, "m", "q", "q 1", false},
		{first, "m", "q", "q 2", false},
		{second, "m", "q", "q 1", true},
		{second, "m", "q", "q 2", true},
		{second, "m", "q", "q 3", false},
		{second, "n", "q", "q 4", false},
		{second, "m", "r", "r 5", false},
		{Judge(real, s, "two"), "m", "q", "q 6", false},
	} {
		if got, cached, err := c.by.AskCached(t.Context(), c.model, "system", c.question); got != c.want || cached != c.cached || err != nil {
			t.Errorf("%d: %q, %v, %v", i, got, cached, err)
		}
	}
	failing := Judge(&countingJudge{err: errors.New("busy")}, s, "three")
	if _, err := failing.Ask(t.Context(), "m", "", "q"); err == nil {
		t.Error("there is no error")
	}
	if got, cached, err := Judge(real, s, "three").AskCached(t.Context(), "m", "", "q"); cached || err != nil {
		t.Errorf("%q, %v, %v", got, cached, err)
	}
}

// An incomplete file counts as missing.
func TestDamagedEntry(t *testing.T) {
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s.Put("key", "value")
	var got string
	if !s.Get("key", &got) || got != "value" {
		t.Fatalf("%q", got)
	}
	if err := os.WriteFile(s.path("key"), []byte(`"val`), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Get("key", &got) {
		t.Errorf("%q", got)
	}
}

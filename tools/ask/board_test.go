package ask_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed-dec29ce4/eca/tools/ask"
)

// scripted is a client that answers with what it is given.
type scripted struct {
	asked   chan ask.Question
	answers chan any // ask.Answer or error
	ended   chan error
}

func newScripted() *scripted {
	return &scripted{make(chan ask.Question, 1), make(chan any, 1), make(chan error, 1)}
}

func (s *scripted) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
	s.asked <- q
	select {
	case a := <-s.answers:
		if err, bad := a.(error); bad {
			return ask.Answer{}, err
		}
		return a.(ask.Answer), nil
	case <-ctx.Done():
		s.ended <- ctx.Err()
		return ask.Answer{}, ctx.Err()
	}
}

// The first answer counts, the other clients' requests end, and a client that joins while a
// question is open gets it with the same id.
func TestBoardFirstAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		b := ask.NewBoard(func() string { n++; return fmt.Sprint("q", n) })
		if _, err := b.Ask(t.Context(), ask.Question{}); err == nil || !b.Empty() {
			t.Fatal("asked without a client")
		}
		first, late := newScripted(), newScripted()
		leave := b.Join(first)
		got := make(chan ask.Answer, 1)
		go func() {
			a, err := b.Ask(t.Context(), ask.Question{Text: "?"})
			if err != nil {
				t.Error(err)
			}
			got <- a
		}()
		q := <-first.asked
		defer b.Join(late)()
		if other := <-late.asked; other.ID != q.ID || other.ID == "" {
			t.Errorf("ids %q and %q", q.ID, other.ID)
		}
		late.answers <- ask.Answer{Text: "yes"}
		if a := <-got; a.Text != "yes" {
			t.Error(a)
		}
		if err := <-first.ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		leave()
	})
}

// A question fails when every client has refused it, but a client that leaves does not fail it.
func TestBoardFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := ask.NewBoard(func() string { return "q" })
		one, two := newScripted(), newScripted()
		leave := b.Join(one)
		failed := make(chan error, 1)
		go func() {
			_, err := b.Ask(t.Context(), ask.Question{})
			failed <- err
		}()
		<-one.asked
		one.answers <- fmt.Errorf("closed: %w", ask.ErrGone)
		leave()
		synctest.Wait()
		select {
		case err := <-failed:
			t.Fatal("failed with the client that left:", err)
		default:
		}
		defer b.Join(two)()
		<-two.asked
		refusal := errors.New("no")
		two.answers <- refusal
		if err := <-failed; !errors.Is(err, refusal) {
			t.Error(err)
		}
	})
}

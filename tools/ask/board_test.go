package ask_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/seed-dec29ce4/eca/tools/ask"
)

// scriptedClient is a client that answers with what it is given.
type scriptedClient struct {
	asked   chan ask.Question
	answers chan any // ask.Answer or error
	ended   chan error
}

func newScripted() *scriptedClient {
	return &scriptedClient{make(chan ask.Question, 1), make(chan any, 1), make(chan error, 1)}
}

func (s *scriptedClient) Ask(ctx context.Context, q ask.Question) (ask.Answer, error) {
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

// A question fails when every client that was asked has returned an error. If one of the clients
// has left instead, the question stays open until another client answers or the chat is stopped.
// The order of the errors does not matter.
func TestBoardFailures(t *testing.T) {
	refusal, gone := errors.New("no"), fmt.Errorf("closed: %w", ask.ErrGone)
	for name, c := range map[string]struct {
		first, later []error // the errors of the clients that are there, and of those that join later
		fails        bool
	}{
		"one fails":                    {first: []error{refusal}, fails: true},
		"all fail":                     {first: []error{refusal, refusal, refusal}, fails: true},
		"one leaves":                   {first: []error{gone}},
		"all leave":                    {first: []error{gone, gone}},
		"one leaves, then one fails":   {first: []error{gone, refusal}},
		"one fails, then one leaves":   {first: []error{refusal, gone}},
		"one leaves between failures":  {first: []error{refusal, gone, refusal}},
		"one leaves, a new one fails":  {first: []error{gone}, later: []error{refusal}},
		"one leaves, a new one leaves": {first: []error{gone}, later: []error{gone, refusal}},
		"all left before":              {},
		"all left before, one fails":   {later: []error{refusal}},
	} {
		for _, stopped := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				b := ask.NewBoard(func() string { return "q" })
				b.Join(newScripted())()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				clients := make([]*scriptedClient, len(c.first))
				leaves := make([]func(), len(c.first))
				for i := range clients {
					clients[i] = newScripted()
					leaves[i] = b.Join(clients[i])
				}
				ended := make(chan error, 1)
				var got ask.Answer
				go func() {
					answer, err := b.Ask(ctx, ask.Question{})
					got = answer
					ended <- err
				}()
				synctest.Wait()
				for i, err := range c.first {
					clients[i].answers <- err
					synctest.Wait()
					if errors.Is(err, ask.ErrGone) {
						leaves[i]()
					}
				}
				for _, err := range c.later {
					late := newScripted()
					defer b.Join(late)()
					<-late.asked
					late.answers <- err
					synctest.Wait()
				}
				select {
				case err := <-ended:
					if !c.fails || !errors.Is(err, refusal) {
						t.Errorf("%s: %v", name, err)
					}
					return
				default:
				}
				last := newScripted()
				defer b.Join(last)()
				synctest.Wait()
				switch {
				case c.fails || len(last.asked) == 0:
					t.Errorf("%s: it is open: %v; the next client is asked: %d", name, !c.fails, len(last.asked))
					stop()
					<-ended
				case stopped:
					stop()
					if err := <-ended; !errors.Is(err, context.Canceled) {
						t.Errorf("%s: stopped: %v", name, err)
					}
				default:
					last.answers <- ask.Answer{Text: "yes"}
					if err := <-ended; err != nil || got.Text != "yes" {
						t.Errorf("%s: %v, %v", name, got, err)
					}
				}
			})
		}
	}
}

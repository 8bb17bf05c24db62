package chat_test

import (
	"context"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/llm"
)

// busy is a listener that fails the first time.
type busy struct {
	listener
	asked int
}

// Stream implements llm.Model.
func (b *busy) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if b.asked++; b.asked > 1 {
		return b.listener.Stream(ctx, req)
	}
	return func(yield func(llm.Delta, error) bool) {
		yield(llm.Delta{}, &llm.Error{Kind: llm.ErrOverloaded, Status: http.StatusServiceUnavailable, Message: "busy"})
	}
}

// Resolve implements chat.Models.
func (b *busy) Resolve(string, string) (chat.Model, error) {
	return chat.Model{ID: "p/m", Name: "m", Client: llm.WithRetry(b, llm.RetryPolicy{MaxRetries: 1, Multiplier: 1})}, nil
}

// Before a retry, a chat shows the reason. When it has sent the request again, it shows "Waiting model".
func TestProgressOfARepetition(t *testing.T) {
	e := newEngine(t, &busy{})
	s, _, err := e.Open(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	acc, err := s.Submit(chat.Prompt{Text: "Hi."}).Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	<-acc.Done
	var got []string
	for e, err := range s.Events(t.Context(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if p, ok := e.Body.(event.Progress); ok {
			got = append(got, strings.SplitN(p.Text, ".", 2)[0])
		}
		if _, ok := e.Body.(event.TurnFinished); ok {
			break
		}
	}
	if want := []string{"Waiting model", "⏳ Provider overloaded", "Waiting model", "Generating"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

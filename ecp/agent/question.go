package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-dec29ce4/eca/tools/ask"
)

// question is a question of the model to the user.
type question struct {
	ask.Question
	answer chan string // buffered, for one answer
}

// questions is an ask.Client. A question of the model ends the step with the status paused, and the
// input of the next step is the answer.
type questions struct{ a *Agent }

var _ ask.Client = questions{}

// Ask implements ask.Client.
func (q questions) Ask(ctx context.Context, request ask.Question) (ask.Answer, error) {
	r, _ := q.a.gate.currentRun()
	if r == nil || r.session.ID() != request.ChatID {
		return ask.Answer{}, errors.New("no step is running")
	}
	// The events before the question must be recorded first, and only one question can be open.
	r.waitForReader(ctx)
	open := &question{request, make(chan string, 1)}
	for added := false; !added; {
		if !r.await(ctx, func() bool { return r.question == nil }) {
			return ask.Answer{}, context.Cause(ctx)
		}
		r.update(func() {
			if added = r.question == nil; added {
				r.question = open
			}
		})
	}
	select {
	case text := <-open.answer:
		if strings.TrimSpace(text) == "" {
			return ask.Answer{Cancelled: true}, nil
		}
		return ask.Answer{Text: text}, nil
	case <-ctx.Done():
		return ask.Answer{}, context.Cause(ctx)
	}
}

// text returns the question with its options as text.
func (q *question) text() string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(q.Text))
	for _, o := range q.Options {
		b.WriteString("\n- " + o.Label)
		if o.Description != "" {
			b.WriteString(": " + o.Description)
		}
	}
	return b.String()
}

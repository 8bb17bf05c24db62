package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// questions asks the user through the client (eca-protocol.md, section 6).
type questions struct {
	*connection
	views *views
}

// Ask implements ask.Client. It first waits until the client has been sent all earlier events of the
// chat, and until the chat's previous question is answered, because clients can only show one.
func (q questions) Ask(ctx context.Context, question ask.Question) (ask.Answer, error) {
	switch v, ok := q.views.viewOf(question.ChatID); {
	case ok:
		select {
		case v.questionSlot <- struct{}{}:
			defer func() { <-v.questionSlot }()
		case <-ctx.Done():
			return ask.Answer{}, ctx.Err()
		}
		if err := v.showUntil(ctx, v.session.FlushedSeq()); err != nil {
			return ask.Answer{}, err
		}
	case q.followPeriod == nil: // only a following client (follow.go) gets questions of chats that it does not show
		return ask.Answer{}, errors.New("the client does not show this chat")
	}
	params := protocol.QuestionParams{
		ChatID: question.ChatID, ToolCallID: question.CallID, RequestID: question.ID,
		Question: question.Text, AllowFreeform: question.Freeform, Options: []protocol.QuestionOption{},
	}
	for _, o := range question.Options {
		params.Options = append(params.Options, protocol.QuestionOption(o))
	}
	var res protocol.QuestionResult
	err := q.request(ctx, "chat/askQuestion", params, &res)
	if err == nil {
		err = failure(res.Outcome)
	}
	var refused *jsonrpc.Error
	switch {
	case errors.Is(err, errUnreachable):
		return ask.Answer{}, fmt.Errorf("%w: %w", ask.ErrGone, err)
	case errors.As(err, &refused) && refused.Code == jsonrpc.CodeRequestCancelled:
		return ask.Answer{Cancelled: true}, nil
	case err != nil:
		return ask.Answer{}, err
	case res.Answer == "" || res.Cancelled.Value != nil && *res.Cancelled.Value:
		return ask.Answer{Cancelled: true}, nil
	}
	return ask.Answer{Text: string(res.Answer)}, nil
}

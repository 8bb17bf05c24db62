package tools

import "context"

// WithNews decorates a tool so that its results also tell a chat what has happened beside
// it, such as that a background job ended. news returns that for a chat, once.
func WithNews(t Tool, news func(chatID string) []string) Tool { return &newsy{t, news} }

type newsy struct {
	Tool
	takeNews func(chatID string) []string
}

func (t *newsy) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	res, err := t.Tool.Run(ctx, call, out)
	if err != nil || ctx.Err() != nil {
		return res, err // what is not shown must not be lost
	}
	res.Outputs = append(res.Outputs, t.takeNews(call.ChatID)...)
	return res, nil
}

package tools

import "context"

// WithNews wraps a tool so that its results also report other events to a chat, such as the end of
// a background job. news returns each event of a chat once.
func WithNews(t Tool, news func(chatID string) []string) Tool { return &withNews{t, news} }

type withNews struct {
	Tool
	takeNews func(chatID string) []string
}

func (t *withNews) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	res, err := t.Tool.Run(ctx, call, out)
	if err != nil || ctx.Err() != nil {
		return res, err // do not take the events: they would be lost, because this result is not shown
	}
	res.Outputs = append(res.Outputs, t.takeNews(call.ChatID)...)
	return res, nil
}

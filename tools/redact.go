package tools

import (
	"context"
	"errors"
)

// Redact decorates a tool so that its outputs have no secrets: a command that prints its
// environment would put them into the chat, its store and the provider's logs.
func Redact(t Tool, clean func(string) string) Tool { return &redacted{t, clean} }

type redacted struct {
	Tool
	clean func(string) string
}

func (t *redacted) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	sink := out
	if out != nil {
		sink = func(chunk string) { out(t.clean(chunk)) }
	}
	res, err := t.Tool.Run(ctx, call, sink)
	for i, text := range res.Outputs {
		res.Outputs[i] = t.clean(text)
	}
	if err != nil {
		if shown := t.clean(err.Error()); shown != err.Error() {
			err = errors.New(shown)
		}
	}
	return res, err
}

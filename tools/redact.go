package tools

import (
	"context"
	"errors"
	"strings"
	"sync"
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
		sink = byLine(func(lines string) { out(t.clean(lines)) })
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

// byLine passes on whole lines: a secret can come in two pieces.
func byLine(out Sink) Sink {
	const most = 64 << 10 // a longer line is not shown while it grows
	var mu sync.Mutex
	var open string
	return func(chunk string) {
		mu.Lock()
		defer mu.Unlock()
		i := strings.LastIndexByte(chunk, '\n')
		if i < 0 {
			if open += chunk; len(open) > most {
				open = ""
			}
			return
		}
		lines := open + chunk[:i+1]
		open = chunk[i+1:]
		out(lines)
	}
}

package tools

import (
	"context"
	"errors"
	"strings"
	"sync"
)

// Redact wraps a tool so that its outputs contain no secrets: the output of a command that prints
// its environment would otherwise reach the chat, its store and the provider's logs.
func Redact(t Tool, clean func(string) string) Tool { return &redacted{t, clean} }

type redacted struct {
	Tool
	clean func(string) string
}

func (t *redacted) Run(ctx context.Context, call Call, out Sink) (Result, error) {
	sink := out
	if out != nil {
		sink = wholeLines(func(lines string) { out(t.clean(lines)) })
	}
	res, err := t.Tool.Run(ctx, call, sink)
	for i, text := range res.Outputs {
		res.Outputs[i] = t.clean(text)
	}
	for i := range res.Stops {
		s := &res.Stops[i]
		s.Text, s.Folder = t.clean(s.Text), t.clean(s.Folder)
		for k, host := range s.Hosts {
			s.Hosts[k] = t.clean(host)
		}
	}
	if err != nil {
		if shown := t.clean(err.Error()); shown != err.Error() {
			err = errors.New(shown)
		}
	}
	return res, err
}

// wholeLines returns a Sink that passes on only whole lines, because a secret can be split between two
// chunks. It omits lines of more than maxLine bytes.
func wholeLines(out Sink) Sink {
	const maxLine = 64 << 10
	var mu sync.Mutex
	var partial strings.Builder // the incomplete last line
	discarding := false         // the incomplete line is too long and was discarded
	return func(chunk string) {
		mu.Lock()
		defer mu.Unlock()
		end := strings.LastIndexByte(chunk, '\n') + 1
		if end == 0 {
			if partial.WriteString(chunk); partial.Len() > maxLine {
				partial.Reset()
				discarding = true
			}
			return
		}
		lines, rest := partial.String()+chunk[:end], chunk[end:]
		if discarding {
			_, lines, _ = strings.Cut(lines, "\n")
		}
		partial.Reset()
		partial.WriteString(rest)
		if discarding = partial.Len() > maxLine; discarding {
			partial.Reset()
		}
		if lines != "" {
			out(lines)
		}
	}
}

package cassette

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/llm"
)

var _ llm.Model = (*Player)(nil)

// Stream implements llm.Model.
func (p *Player) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		s, v, err := p.step(req)
		if err != nil {
			yield(llm.Delta{}, err)
			return
		}
		fault := p.nextError(s)
		if fault != nil && !fault.Late {
			yield(llm.Delta{}, fault.providerError())
			return
		}
		due := pace(s)
		for d := range deltas(s, v) {
			if err := due(ctx); err != nil {
				yield(llm.Delta{}, err)
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		switch {
		case fault != nil:
			yield(llm.Delta{}, fault.providerError())
		case s.Hang:
			<-ctx.Done()
			yield(llm.Delta{}, ctx.Err())
		case s.Raw != "":
			yield(llm.Delta{}, &llm.Error{Kind: llm.ErrMalformed, Message: "The cassette sent invalid JSON in its stream"})
		case s.Cut:
			yield(llm.Delta{}, &llm.Error{Kind: llm.ErrPrematureStop, Message: "The cassette ended the answer before it was complete"})
		default:
			if yield(llm.Delta{Kind: llm.UsageDelta, Usage: s.usage()}, nil) {
				yield(llm.Delta{Kind: llm.StopDelta, Stop: s.stop()}, nil)
			}
		}
	}
}

// providerError returns the error as a provider would have sent it.
func (e *Error) providerError() *llm.Error {
	resp := &http.Response{StatusCode: e.Status, Header: http.Header{}}
	if e.RetryAfter > 0 {
		resp.Header.Set("Retry-After", fmt.Sprint(e.RetryAfter))
	}
	return llm.StatusError("The cassette", resp, e.Message, time.Time{})
}

// pace returns a function that waits until the next delta of a step is due. A late delta does not
// delay those after it, so that a step with a delay of 1 ms sends 1,000 deltas a second.
func pace(s *Step) func(context.Context) error {
	if s.Delay <= 0 {
		return func(ctx context.Context) error { return ctx.Err() }
	}
	ticks := time.NewTicker(s.Delay).C
	var began time.Time
	sent, due := 0, 0
	return func(ctx context.Context) error {
		for sent == due {
			select {
			case now := <-ticks: // the ticker drops ticks that are not received, so they cannot be counted
				if began.IsZero() {
					began = now.Add(-s.Delay)
				}
				due = int((now.Sub(began) + s.Delay/2) / s.Delay)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		sent++
		return nil
	}
}

// deltas returns the deltas of a step before its usage.
func deltas(s *Step, v vars) iter.Seq[llm.Delta] {
	return func(yield func(llm.Delta) bool) {
		more := true
		emit := func(d llm.Delta) { more = more && yield(d) }
		if s.Reasoning != "" {
			const id = "reasoning_1"
			emit(llm.Delta{Kind: llm.ReasoningStart, ID: id})
			for _, piece := range pieces(v.expand(s.Reasoning)) {
				emit(llm.Delta{Kind: llm.ReasoningDelta, ID: id, Text: piece})
			}
			emit(llm.Delta{Kind: llm.ReasoningEnd, ID: id})
		}
		text := v.expand(s.Text)
		for i := 0; i < s.Repeat && more; i++ {
			emit(llm.Delta{Kind: llm.TextDelta, Text: text})
		}
		if s.Repeat == 0 {
			for _, piece := range pieces(text) {
				emit(llm.Delta{Kind: llm.TextDelta, Text: piece})
			}
		}
		for i, c := range s.Calls {
			id := cmp.Or(c.ID, fmt.Sprintf("call_%d_%d", v.step+1, i+1))
			args := c.write(v)
			emit(llm.Delta{Kind: llm.ToolStart, ID: id, Name: c.Tool})
			for half := range halves(args) {
				emit(llm.Delta{Kind: llm.ToolArgs, ID: id, Text: half})
			}
			emit(llm.Delta{Kind: llm.ToolEnd, ID: id, Text: args})
		}
	}
}

// write returns the arguments as the model writes them.
func (c Call) write(v vars) string {
	switch {
	case c.RawArguments != "":
		return c.RawArguments
	case c.Arguments == nil:
		return "{}"
	}
	raw, _ := json.Marshal(v.expandAny(c.Arguments)) // YAML values always encode
	return string(raw)
}

// pieces splits a text after each word, as models stream it.
func pieces(s string) []string {
	var out []string
	for s != "" {
		i := strings.IndexAny(s, " \n")
		if i < 0 || i == len(s)-1 {
			return append(out, s)
		}
		out = append(out, s[:i+1])
		s = s[i+1:]
	}
	return out
}

// halves yields arguments in two pieces, so that they arrive as deltas.
func halves(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		mid := len(s) / 2
		for mid > 0 && mid < len(s) && s[mid]&0xC0 == 0x80 {
			mid--
		}
		if mid > 0 && !yield(s[:mid]) {
			return
		}
		if mid < len(s) {
			yield(s[mid:])
		}
	}
}

// usage returns the usage of a step, or a small one if the cassette has none.
func (s *Step) usage() llm.Usage {
	if s.Usage == nil {
		return llm.Usage{Input: 10, Output: 5}
	}
	return llm.Usage(*s.Usage)
}

func (s *Step) stop() llm.StopReason {
	switch {
	case s.Stop != "":
		return llm.StopReason(s.Stop)
	case len(s.Calls) > 0:
		return llm.StopToolCalls
	}
	return llm.StopEnd
}

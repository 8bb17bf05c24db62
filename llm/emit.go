package llm

import (
	"encoding/json"
	"iter"
	"strconv"
)

// Answer returns a stream of deltas. ask sends the request and passes the deltas of the answer to
// yield. Its error is dropped if the consumer has stopped.
func Answer(ask func(yield func(Delta, error) bool) error) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		c := &consumer{yield: yield}
		if err := ask(c.deliver); err != nil && !c.stopped {
			yield(Delta{}, err)
		}
	}
}

// consumer remembers whether the consumer of an answer has stopped.
type consumer struct {
	yield   func(Delta, error) bool
	stopped bool
}

func (c *consumer) deliver(d Delta, err error) bool {
	c.stopped = c.stopped || !c.yield(d, err)
	return !c.stopped
}

// EncodeError returns the error for a request that a wire format cannot express.
func EncodeError(err error) *Error {
	return &Error{Kind: ErrBadRequest, Message: "The request could not be encoded: " + err.Error(), Cause: err}
}

// Emitter passes on the deltas of one answer, and numbers reasoning blocks for formats in which
// they have no ids. Like a bufio.Writer, it remembers a failure: after the consumer has
// stopped, it does nothing, and Err returns ErrStopped.
type Emitter struct {
	Yield  func(Delta, error) bool
	Origin string // the value of Reasoning.API

	stopped  bool
	thinking string // id of the open block
	blocks   int
}

// Emit passes on a delta.
func (e *Emitter) Emit(d Delta) { e.stopped = e.stopped || !e.Yield(d, nil) }

// Err returns ErrStopped if the consumer has stopped.
func (e *Emitter) Err() error {
	if e.stopped {
		return ErrStopped
	}
	return nil
}

// Thinking reports whether a reasoning block is open.
func (e *Emitter) Thinking() bool { return e.thinking != "" }

// Think continues the open reasoning block, or opens one.
func (e *Emitter) Think(text string) {
	if e.thinking == "" {
		e.blocks++
		e.thinking = "reasoning_" + strconv.Itoa(e.blocks)
		e.Emit(Delta{Kind: ReasoningStart, ID: e.thinking})
	}
	if text != "" {
		e.Emit(Delta{Kind: ReasoningDelta, ID: e.thinking, Text: text})
	}
}

// EndThinking ends the open reasoning block, if there is one. opaque becomes the block's Opaque.
func (e *Emitter) EndThinking(opaque json.RawMessage) {
	if e.thinking != "" {
		e.Emit(Delta{Kind: ReasoningEnd, ID: e.thinking, API: e.Origin, Opaque: opaque})
		e.thinking = ""
	}
}

// EmitServerCall passes on a call that the provider has run itself. started means that the caller has
// already emitted its ServerStart. end contains the result, and the data that later requests must send
// back to the API.
func (e *Emitter) EmitServerCall(started bool, arguments any, end Delta) {
	args, _ := json.Marshal(arguments) // strings and decoded JSON always encode
	if !started {
		e.Emit(Delta{Kind: ServerStart, ID: end.ID, Name: end.Name})
	}
	e.Emit(Delta{Kind: ServerRun, ID: end.ID, Text: string(args), API: e.Origin})
	end.Kind = ServerEnd
	e.Emit(end)
}

// Stop ends the answer with the model's stop reason.
func (e *Emitter) Stop(reason StopReason) error {
	e.Emit(Delta{Kind: StopDelta, Stop: reason})
	return e.Err()
}

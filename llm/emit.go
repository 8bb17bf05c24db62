package llm

import (
	"encoding/json"
	"errors"
	"iter"
	"strconv"
)

// Answer returns a stream of deltas. ask sends the request and passes the deltas of the answer to
// yield.
func Answer(ask func(yield func(Delta, error) bool) error) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := ask(yield); err != nil && !errors.Is(err, ErrStopped) {
			yield(Delta{}, err)
		}
	}
}

// EncodeError returns the error for a request that a wire format cannot express.
func EncodeError(err error) *Error {
	return &Error{Kind: ErrBadRequest, Message: "The request could not be encoded: " + err.Error(), Cause: err}
}

// Emitter passes on the deltas of one answer, and numbers reasoning blocks for formats in which
// they have no ids.
type Emitter struct {
	Yield  func(Delta, error) bool
	Origin string // the value of Reasoning.API

	thinking string // id of the open block
	blocks   int
}

// Emit passes on a delta. It returns ErrStopped if the consumer has stopped.
func (e *Emitter) Emit(d Delta) error {
	if !e.Yield(d, nil) {
		return ErrStopped
	}
	return nil
}

// Thinking reports whether a reasoning block is open.
func (e *Emitter) Thinking() bool { return e.thinking != "" }

// Think continues the open reasoning block, or opens one.
func (e *Emitter) Think(text string) error {
	if e.thinking == "" {
		e.blocks++
		e.thinking = "reasoning_" + strconv.Itoa(e.blocks)
		if err := e.Emit(Delta{Kind: ReasoningStart, ID: e.thinking}); err != nil {
			return err
		}
	}
	if text == "" {
		return nil
	}
	return e.Emit(Delta{Kind: ReasoningDelta, ID: e.thinking, Text: text})
}

// EndThinking ends the open reasoning block, if there is one, with opaque as its Opaque.
func (e *Emitter) EndThinking(opaque json.RawMessage) error {
	if e.thinking == "" {
		return nil
	}
	id := e.thinking
	e.thinking = ""
	return e.Emit(Delta{Kind: ReasoningEnd, ID: id, API: e.Origin, Opaque: opaque})
}

// EmitServerCall passes on a call that the provider has run. started means that ServerStart has been passed
// on. end has the result, and the data that must be sent back to the API.
func (e *Emitter) EmitServerCall(started bool, arguments any, end Delta) error {
	args, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	end.Kind = ServerEnd
	deltas := []Delta{{Kind: ServerStart, ID: end.ID, Name: end.Name}, {Kind: ServerRun, ID: end.ID, Text: string(args), API: e.Origin}, end}
	if started {
		deltas = deltas[1:]
	}
	for _, d := range deltas {
		if err := e.Emit(d); err != nil {
			return err
		}
	}
	return nil
}

package llm

import (
	"encoding/json"
	"errors"
	"iter"
	"strconv"
)

// Answer returns the deltas of a request that ask sends and whose answer it passes on.
func Answer(ask func(yield func(Delta, error) bool) error) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		if err := ask(yield); err != nil && !errors.Is(err, ErrStopped) {
			yield(Delta{}, err)
		}
	}
}

// EncodeError is the error of a request that a wire format cannot express.
func EncodeError(err error) *Error {
	return &Error{Kind: ErrBadRequest, Message: "The request could not be encoded: " + err.Error(), Cause: err}
}

// Emitter passes the deltas of one answer on, and numbers the blocks of reasoning of formats
// that do not name them.
type Emitter struct {
	Yield  func(Delta, error) bool
	Origin string // that marks reasoning; see Reasoning.API

	thinking string // id of the open block
	blocks   int
}

// Emit passes a delta on. The error is ErrStopped.
func (e *Emitter) Emit(d Delta) error {
	if !e.Yield(d, nil) {
		return ErrStopped
	}
	return nil
}

// Thinking says whether a block of reasoning is open.
func (e *Emitter) Thinking() bool { return e.thinking != "" }

// Think continues the open block of reasoning, or opens one.
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

// EndThinking ends the open block of reasoning, if there is one; opaque goes with it.
func (e *Emitter) EndThinking(opaque json.RawMessage) error {
	if e.thinking == "" {
		return nil
	}
	id := e.thinking
	e.thinking = ""
	return e.Emit(Delta{Kind: ReasoningEnd, ID: id, API: e.Origin, Opaque: opaque})
}

// Served passes on a call that the provider has run. started says that ServerStart was passed on;
// the result, and what the API wants back, are in end.
func (e *Emitter) Served(started bool, arguments any, end Delta) error {
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

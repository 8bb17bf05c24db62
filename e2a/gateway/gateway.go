// Package gateway answers E2A envelopes with frames: the adapter between E2A and e2a/turn.
//
// It owns the methods (docs/contracts/e2a.md, section 10; methods.go), the frames that show the
// items of a turn (frames.go), and the two transports: lines of JSON (lines.go) and WebSocket
// (socket.go). Guarantees: the frames of one envelope have the invariants of e2a.Stream. Each
// envelope gets exactly one final frame if the caller keeps reading. The package does not listen or
// start an engine: its callers do both.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// Options configure a Gateway.
type Options struct {
	Turns *turn.Service
	// CloseGrace is how long the caller may take to read the last answers when eca shuts down; default:
	// three seconds.
	CloseGrace time.Duration
	Now        func() time.Time
	NewID      func() string
	Log        *slog.Logger
}

// Gateway answers envelopes.
type Gateway struct{ opts Options }

// New returns a gateway.
func New(o Options) *Gateway {
	o.Log, o.CloseGrace = cmp.Or(o.Log, slog.Default()), cmp.Or(o.CloseGrace, defaultCloseGrace)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	return &Gateway{o}
}

// Send sends a frame. An error means that the caller has stopped reading frames.
type Send func(e2a.Response) error

// Run answers an envelope. It returns when the final frame has been sent, or with the error of send
// or ctx. If ctx ends or send fails during a turn, the turn is stopped, because no caller would
// answer its questions.
//
// Run calls send for one frame at a time; several calls of Run may be concurrent. It calls accepted,
// which may be nil, when the session has accepted a prompt: turns of later prompts then follow its
// turn.
func (g *Gateway) Run(ctx context.Context, e e2a.Envelope, send Send, accepted func()) error {
	ctx, cancel := g.opts.Turns.Bind(ctx)
	defer cancel()
	if e.RequestID == nil || *e.RequestID == "" {
		id := g.opts.NewID()
		e.RequestID = &id
	}
	x := &exchange{Stream: e2a.NewStream(e, g.opts.NewID, g.opts.Now), g: g, envelope: e, send: send, accepted: accepted}
	if x.accepted == nil {
		x.accepted = func() {}
	}
	err := x.run(ctx)
	if errors.Is(err, errSend) {
		return err
	}
	if x.Ended() {
		return nil
	}
	failure := g.opts.Turns.Explain(ctx, err)
	if ctx.Err() != nil && failure.Code == turn.Failed {
		return ctx.Err()
	}
	return x.sendFrame(x.Fail(string(failure.Code), failure.Message, errorDetails{kindOf(failure.Code)}))
}

// errorDetails contain the machine-readable kind of an error.
type errorDetails struct {
	Kind string `json:"error_type"`
}

// The codes of errors that e2a/turn does not have.
const (
	codeBadJSON       turn.Code = "E2A.INVALID_JSON"
	codeBadEnvelope   turn.Code = "E2A.INVALID_ENVELOPE"
	codeUnknownMethod turn.Code = "E2A.UNKNOWN_METHOD"
)

func kindOf(code turn.Code) string {
	switch code {
	case codeUnknownMethod:
		return "UnknownMethod"
	case turn.BadParams:
		return "InvalidParams"
	case turn.NotFound:
		return "NotFound"
	case turn.Disconnected:
		return "Disconnected"
	default:
		return "AgentError"
	}
}

// exchange is an envelope that is being answered, and the state of its answer.
type exchange struct {
	*e2a.Stream
	g        *Gateway
	envelope e2a.Envelope
	params   params
	send     Send
	accepted func()
}

// errSend wraps the error of Send.
var errSend = errors.New("cannot send a frame")

// sendFrame sends a frame created by one of Stream's methods.
func (x *exchange) sendFrame(r e2a.Response, err error) error {
	if err != nil {
		return err
	}
	if err := x.send(r); err != nil {
		return errors.Join(errSend, err)
	}
	return nil
}

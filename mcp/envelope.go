package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	wire "github.com/mark3labs/mcp-go/mcp"
)

// envelope is one message of JSON-RPC: a request, a notification or an answer.
type envelope struct {
	JSONRPC string                    `json:"jsonrpc"`
	ID      json.RawMessage           `json:"id,omitempty"`
	Method  string                    `json:"method,omitempty"`
	Params  json.RawMessage           `json:"params,omitempty"`
	Result  json.RawMessage           `json:"result,omitempty"`
	Error   *wire.JSONRPCErrorDetails `json:"error,omitempty"`

	header map[string]string // that it has over HTTP
}

func (e envelope) hasID() bool          { return len(e.ID) > 0 && string(e.ID) != "null" }
func (e envelope) isRequest() bool      { return e.Method != "" && e.hasID() }
func (e envelope) isNotification() bool { return e.Method != "" && !e.hasID() }

// key is the id as it is looked up. Some servers send numbers back as texts.
func (e envelope) key() string { return idKey(e.ID) }

func idKey(id json.RawMessage) string {
	return string(bytes.Trim(bytes.TrimSpace(id), `"`))
}

var errNoMessage = errors.New("it is no message of JSON-RPC")

// readEnvelopes reads a message, or the list of messages that versions until 2025-03-26
// allow in its place.
func readEnvelopes(raw []byte) ([]envelope, error) {
	raw = bytes.TrimSpace(raw)
	list := []json.RawMessage{raw}
	if len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoMessage, err)
		}
	}
	var out []envelope
	for _, one := range list {
		var e envelope
		if len(one) == 0 || one[0] != '{' {
			return nil, errNoMessage
		}
		if err := json.Unmarshal(one, &e); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoMessage, err)
		}
		if e.Method == "" && (!e.hasID() || e.Result == nil && e.Error == nil) {
			return nil, errNoMessage
		}
		out = append(out, e)
	}
	return out, nil
}

// transport carries messages between a session and a server.
type transport interface {
	// start opens the way to the server, which lasts as long as life. What the server says
	// goes to hear, a message at a time where their order matters; hear does not wait. over
	// hears why nothing can be carried any more. A failed start needs a close all the same.
	start(life context.Context, hear func(envelope), over func(error)) error
	// agreed tells the version of the protocol that is spoken from now on.
	agreed(version string)
	// listen opens the way for what the server says unasked, if that is another one. The
	// channel is closed when it is open, or there is none; nil is at once.
	listen() <-chan struct{}
	// send carries a message. The answer of a request comes to hear; send returns before
	// that, or when no answer can come any more. The error is why.
	send(ctx context.Context, e envelope) error
	// close ends everything and returns when nothing is left.
	close()
}

// answerError is what a server answered instead of a result.
type answerError struct{ details wire.JSONRPCErrorDetails }

func (e *answerError) Error() string { return e.details.AsError().Error() }

// answered says whether an error is a server's answer, and not what became of a request.
func answered(err error) bool {
	var answer *answerError
	return errors.As(err, &answer)
}

var (
	// errUnauthorized is why a server that wants a login can not be used.
	errUnauthorized = errors.New("the server wants a login")
	// errForgotten is what requests get from a server that does not know the session any
	// more. It did not do anything.
	errForgotten = errors.New("the server ended the session")
	// errNotStarted is what requests get before the start.
	errNotStarted = errors.New("the server is not started")
)

// unauthorizedError is an errUnauthorized with what the server said about it.
type unauthorizedError struct{ challenges []string } // values of WWW-Authenticate

func (e *unauthorizedError) Error() string { return errUnauthorized.Error() }
func (e *unauthorizedError) Unwrap() error { return errUnauthorized }

// statusError is an answer over HTTP that is none of the protocol.
type statusError struct {
	status int
	text   string // the beginning of what came with it, in one line
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answered HTTP %d", e.status)
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

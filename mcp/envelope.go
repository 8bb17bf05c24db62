package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
	"github.com/seed-dec29ce4/eca/internal/sse"
)

// envelope is one JSON-RPC message: a request, a notification or an answer. eca reads the messages
// of servers leniently.
type envelope struct {
	jsonrpc.Message
	header map[string]string // headers of the request that carries the message over HTTP
}

func (e envelope) hasID() bool          { return len(e.ID) > 0 && string(e.ID) != "null" }
func (e envelope) isRequest() bool      { return e.Method != "" && e.hasID() }
func (e envelope) isNotification() bool { return e.Method != "" && !e.hasID() }

// key returns the id without quotes, for look-ups, because some servers return a number as a string.
func (e envelope) key() string { return idKey(e.ID) }

func idKey(id json.RawMessage) string {
	return string(bytes.Trim(bytes.TrimSpace(id), `"`))
}

var errNoMessage = errors.New("not a JSON-RPC message")

// readEnvelopes reads a message, or a list of messages, which versions up to 2025-03-26 allow.
func readEnvelopes(raw []byte) ([]envelope, error) {
	list, batch := jsonrpc.Split(raw)
	if batch && list == nil {
		return nil, errNoMessage
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

// eventEnvelopes returns the messages in an event of a stream. It skips other events and invalid
// messages.
func eventEnvelopes(e sse.Event, log *slog.Logger) []envelope {
	if len(e.Data) == 0 || e.Name != "" && e.Name != "message" {
		return nil
	}
	list, err := readEnvelopes(e.Data)
	if err != nil {
		log.Debug("MCP server sent an invalid message", "err", err)
	}
	return list
}

// transport carries messages between a session and a server.
type transport interface {
	// start connects to the server; the connection ends when the context life ends. The transport
	// passes each message of the server to receive, which does not block; messages whose order matters
	// are passed one at a time. When nothing can be sent or received any more, the transport calls lost
	// with the reason. The caller must call close, even after a failed start.
	start(life context.Context, receive func(envelope), lost func(error)) error
	// setVersion sets the protocol version to use from now on.
	setVersion(version string)
	// listen opens a separate stream for unsolicited messages of the server, if the transport needs
	// one. The channel is closed when the stream is open or not available. A nil channel means that
	// no stream is needed.
	listen() <-chan struct{}
	// send sends a message. The answer to a request arrives through receive. send can return before
	// the answer arrives; it returns an error if no answer can arrive any more.
	send(ctx context.Context, e envelope) error
	// endReason returns why the server ended the connection, or nil if it did not. The reason is
	// available before lost is called; endReason may block briefly if the server is just ending.
	endReason() error
	// close ends everything and returns when nothing is left running.
	close()
}

// answerError is an error with which a server answered a request.
type answerError struct{ details *jsonrpc.Error }

func (e *answerError) Error() string {
	return (&wire.JSONRPCErrorDetails{Code: e.details.Code, Message: e.details.Message, Data: e.details.Data}).AsError().Error()
}

// answered reports whether an error is a server's answer, as opposed to a failure of the transport.
func answered(err error) bool {
	var answer *answerError
	return errors.As(err, &answer)
}

// decode reads a server's JSON into v. Its errors name the member that does not follow MCP.
func decode(raw []byte, v any) error {
	if err := json.Unmarshal(raw, v); err != nil {
		return fmt.Errorf("the server's answer does not follow MCP: %w", jsonrpc.Explain(raw, err))
	}
	return nil
}

var (
	// errUnauthorized is the error of servers that require a login.
	errUnauthorized = errors.New("the server requires a login")
	// errSessionLost is the error of a request to a server that no longer knows the session. The server
	// has not executed the request.
	errSessionLost = errors.New("the server ended the session")
	// errNotStarted is the error of requests before the start.
	errNotStarted = errors.New("the server is not started")
)

// statusError is an HTTP answer that is not a message of the protocol.
type statusError struct {
	status int
	text   string // the beginning of the body, in one line
}

func (e *statusError) Error() string {
	text := fmt.Sprintf("the server answered HTTP %d", e.status)
	if e.text != "" {
		text += ": " + e.text
	}
	return text
}

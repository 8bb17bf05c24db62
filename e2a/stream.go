package e2a

import (
	"errors"
	"time"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// ErrFinal is the error for a frame after the final one.
var ErrFinal = errors.New("e2a: the answer already has its final frame")

// Stream creates the frames of one answer and ensures their invariants (e2a.md 6): they are
// numbered 0, 1, 2, ..., each has its own id and time, only the last one is final, and a failure is
// an e2a.error. It is not safe for concurrent use.
type Stream struct {
	to    Envelope
	newID func() string
	now   func() time.Time
	next  int64
	ended bool
}

// NewStream starts the answer to an envelope.
func NewStream(to Envelope, newID func() string, now func() time.Time) *Stream {
	return &Stream{to: to, newID: newID, now: now}
}

// Ended reports whether the final frame has been created.
func (s *Stream) Ended() bool { return s.ended }

// SetSession sets the session of the remaining frames. It is for requests that started a new session.
func (s *Stream) SetSession(id string) { s.to.SessionID = &id }

// Chunk creates a frame with a piece of the answer.
func (s *Stream) Chunk(body any) (Response, error) {
	return s.frame(KindChunk, body, InProgress, false)
}

// Complete creates the final frame of a successful answer.
func (s *Stream) Complete(result any) (Response, error) {
	return s.frame(KindComplete, completeBody{result}, Succeeded, true)
}

type completeBody struct {
	Result any `json:"result"`
}

// Fail creates the final frame of a failed answer.
func (s *Stream) Fail(code, message string, details any) (Response, error) {
	return s.frame(KindError, errorBody{code, details, message}, Failed, true)
}

type errorBody struct {
	Code    string `json:"code"`
	Details any    `json:"details"`
	Message string `json:"message"`
}

func (s *Stream) frame(kind ResponseKind, body any, status Status, final bool) (Response, error) {
	if s.ended {
		return Response{}, ErrFinal
	}
	content, err := jsonrpc.Marshal(body)
	if err != nil {
		return Response{}, err
	}
	s.ended = final
	e := s.to
	at := formatTime(s.now())
	r := Response{
		ProtocolVersion: ProtocolVersion, ResponseID: s.newID(), RequestID: e.RequestID, Sequence: s.next, IsFinal: final, Status: status,
		Kind: kind, Timestamp: &at, Provenance: Provenance{SourceProtocol: ProtocolE2A}, Body: content,
		JSONRPCID: e.JSONRPCID, CorrelationID: e.CorrelationID, TaskID: e.TaskID, ContextID: e.ContextID, SessionID: e.SessionID,
		MessageID: e.MessageID, IsStream: e.IsStream, IdentityOrigin: OriginAgent, Channel: e.Channel, UserID: e.UserID, AgentRef: e.AgentRef,
		SourceAgentID: e.SourceAgentID, Method: e.Method, ChannelContext: e.ChannelContext,
	}
	s.next++
	return r, nil
}

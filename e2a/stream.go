package e2a

import (
	"errors"
	"fmt"
	"time"
)

// ErrFinal is returned for a frame behind the final one.
var ErrFinal = errors.New("e2a: the answer is complete; nothing may follow")

// Stream makes the frames of one answer and keeps their invariants (contract 6): they are
// numbered 0, 1, 2, ..., each has an id and a time of its own, exactly one is final and it
// is the last, a failure is an e2a.error. It is not safe for use by several goroutines.
type Stream struct {
	to    Envelope
	newID func() string
	now   func() time.Time
	next  int64
	ended bool
}

// NewStream begins the answer to an envelope.
func NewStream(to Envelope, newID func() string, now func() time.Time) *Stream {
	return &Stream{to: to, newID: newID, now: now}
}

// Ended says whether the final frame was made.
func (s *Stream) Ended() bool { return s.ended }

// Session says which session the rest of the answer is about: one that the request did not
// name because it is new.
func (s *Stream) Session(id string) { s.to.SessionID = &id }

// Chunk makes a frame with a piece of the answer.
func (s *Stream) Chunk(kind DeltaKind, delta any, more map[string]any) (Response, error) {
	body := map[string]any{"delta_kind": string(kind), "delta": delta}
	for key, v := range more {
		if _, there := body[key]; !there {
			body[key] = v
		}
	}
	return s.Frame(KindChunk, body)
}

// Frame makes a frame that is not the last.
func (s *Stream) Frame(kind ResponseKind, body map[string]any) (Response, error) {
	return s.frame(kind, body, InProgress, false)
}

// Complete makes the final frame of an answer that succeeded.
func (s *Stream) Complete(result any) (Response, error) {
	return s.frame(KindComplete, map[string]any{"result": result}, Succeeded, true)
}

// Fail makes the final frame of an answer that failed. details may be nil.
func (s *Stream) Fail(code, message string, details map[string]any) (Response, error) {
	return s.frame(KindError, map[string]any{"code": code, "message": message, "details": filled(details)}, Failed, true)
}

func (s *Stream) frame(kind ResponseKind, body map[string]any, status Status, final bool) (Response, error) {
	if s.ended {
		return Response{}, ErrFinal
	}
	s.ended = final
	e := s.to
	at := stamp(s.now())
	r := Response{
		ProtocolVersion: ProtocolVersion, ResponseID: s.newID(), RequestID: e.RequestID, Sequence: s.next, IsFinal: final, Status: status,
		Kind: kind, Timestamp: &at, Provenance: Provenance{SourceProtocol: ProtocolE2A}, Body: body,
		JSONRPCID: e.JSONRPCID, CorrelationID: e.CorrelationID, TaskID: e.TaskID, ContextID: e.ContextID, SessionID: e.SessionID,
		MessageID: e.MessageID, IsStream: e.IsStream, IdentityOrigin: OriginAgent, Channel: e.Channel, UserID: e.UserID, AgentRef: e.AgentRef,
		SourceAgentID: e.SourceAgentID, Method: e.Method, ChannelContext: e.ChannelContext,
	}
	s.next++
	return r, nil
}

// Checker finds what breaks the invariants in frames as they come, of any number of
// requests. The zero value is ready.
type Checker struct {
	next  map[string]int64 // by request
	ended map[string]bool
	ids   map[string]bool
}

// Check looks at the next frame.
func (c *Checker) Check(r Response) error {
	if c.next == nil {
		c.next, c.ended, c.ids = map[string]int64{}, map[string]bool{}, map[string]bool{}
	}
	request := ""
	if r.RequestID != nil {
		request = *r.RequestID
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("frame %d of request %q: %s", r.Sequence, request, fmt.Sprintf(format, args...))
	}
	switch {
	case r.ProtocolVersion != ProtocolVersion:
		return fail("protocol_version is %q", r.ProtocolVersion)
	case request == "":
		return fail("request_id is missing")
	case r.ResponseID == "":
		return fail("response_id is missing")
	case c.ids[r.ResponseID]:
		return fail("response_id %s was there before", r.ResponseID)
	case c.ended[request]:
		return fail("it follows the final one")
	case r.Sequence != c.next[request]:
		return fail("the next one is %d", c.next[request])
	case r.Timestamp == nil:
		return fail("timestamp is missing")
	case r.Status == Failed && r.Kind != KindError && r.Kind != KindACPError:
		return fail("it failed, but is a %s", r.Kind)
	case r.IsFinal && r.Status == InProgress:
		return fail("it is final, but in progress")
	case !known(r.Kind):
		return fail("response_kind %q is unknown", r.Kind)
	}
	if _, err := time.Parse(time.RFC3339Nano, *r.Timestamp); err != nil {
		return fail("timestamp %q is no RFC 3339 time", *r.Timestamp)
	}
	c.next[request]++
	c.ended[request] = r.IsFinal
	c.ids[r.ResponseID] = true
	return nil
}

// Open lists the requests whose final frame has not come.
func (c *Checker) Open() []string {
	var open []string
	for request := range c.next {
		if !c.ended[request] {
			open = append(open, request)
		}
	}
	return open
}

func known(kind ResponseKind) bool {
	for _, k := range ResponseKinds() {
		if k == kind {
			return true
		}
	}
	return false
}

package jsonrpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"

	"go.lsp.dev/jsonrpc2"
)

// stream is the jsonrpc2.Stream of a Conn. It has ReadFrame and WriteFrame too,
// which the module uses for batches.
type stream struct {
	in    *frameReader
	src   io.Reader
	out   *writer
	trace func(bool, []byte)

	ended chan struct{} // closed at the end of input
	once  sync.Once

	mu      sync.Mutex // guards pending, and the members of its answers
	pending map[jsonrpc2.ID]*answer
}

// answer is a response that is owed to the peer.
type answer struct {
	queued  chan struct{}  // closed once the response is queued
	members map[string]any // see Error
}

var _ jsonrpc2.Stream = (*stream)(nil)

func (s *stream) markEOF() { s.once.Do(func() { close(s.ended) }) }

// expectAnswer registers a channel that closes when the response to id is queued.
func (s *stream) expectAnswer(id jsonrpc2.ID) chan struct{} {
	ch := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.pending[id]; old != nil {
		close(old.queued) // the peer uses an id twice; nobody shall wait for the first
	}
	s.pending[id] = &answer{queued: ch}
	return ch
}

// ReadFrame returns the next valid message; malformed ones are answered here.
func (s *stream) ReadFrame(ctx context.Context) ([]byte, int64, error) {
	for {
		if err := ctx.Err(); err != nil {
			s.markEOF()
			return nil, 0, err
		}
		body, err := s.in.next()
		var bad *frameError
		switch {
		case errors.As(err, &bad):
			if err := s.reject(ctx, bad); err != nil {
				s.markEOF()
				return nil, 0, err
			}
			continue
		case err != nil:
			s.markEOF()
			return nil, 0, err
		}
		if s.trace != nil {
			s.trace(true, body)
		}
		if body, err = s.admit(ctx, body); err != nil {
			s.markEOF()
			return nil, 0, err
		}
		if body != nil {
			return body, int64(len(body)), nil
		}
	}
}

// admit returns a message as the module accepts it, and nil for one that is dropped or
// was answered here: the module would end the connection over it.
func (s *stream) admit(ctx context.Context, body []byte) ([]byte, error) {
	if body[0] == '[' {
		return body, nil
	}
	if _, err := jsonrpc2.DecodeMessage(body); err == nil {
		return restoreID(body), nil
	}
	fixed, isResponse := repairResponse(body)
	switch {
	case !isResponse:
		return nil, s.reject(ctx, &frameError{codeInvalidRequest, "not a JSON-RPC 2.0 message"})
	case fixed == nil:
		return nil, nil // nobody answers a response
	}
	return restoreID(fixed), nil
}

// reject answers a malformed message with a null id.
func (s *stream) reject(ctx context.Context, bad *frameError) error {
	return s.write(ctx, jsonrpc2.AppendResponse(nil, jsonrpc2.ID{}, nil, &jsonrpc2.Error{
		Code: jsonrpc2.Code(bad.code), Message: bad.msg,
	}), true)
}

// Read is required by jsonrpc2.Stream; the module prefers ReadFrame.
func (s *stream) Read(ctx context.Context) (jsonrpc2.Message, int64, error) {
	body, n, err := s.ReadFrame(ctx)
	if err != nil {
		return nil, 0, err
	}
	msg, err := jsonrpc2.DecodeMessage(body)
	return msg, n, err
}

// Write queues a call or a response; notifications take Conn.Notify.
func (s *stream) Write(ctx context.Context, msg jsonrpc2.Message) (int64, error) {
	body := jsonrpc2.AppendMessage(nil, msg)
	view, err := jsonrpc2.ScanMessageView(body)
	if err != nil {
		return 0, fmt.Errorf("jsonrpc: own message unreadable: %w", err)
	}
	if view.Kind == jsonrpc2.MessageViewCall {
		return int64(len(body)), s.write(ctx, shiftID(body, view.IDRaw, firstID), false)
	}
	// A response is owed to the peer even when its own request was cancelled, and must
	// not hold up the reading of what comes next.
	id, known := view.ID.ID()
	if known {
		body = addMembers(body, s.membersOf(id))
	}
	err = s.write(context.Background(), body, true)
	if known {
		s.markAnswered(id)
	}
	return int64(len(body)), err
}

// keepMembers remembers, for the response to id, what the module can not write.
func (s *stream) keepMembers(id jsonrpc2.ID, err error) {
	var e *Error
	if !errors.As(err, &e) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.pending[id]; a != nil {
		a.members = e.Members
	}
}

func (s *stream) membersOf(id jsonrpc2.ID) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.pending[id]; a != nil {
		return a.members
	}
	return nil
}

// addMembers puts members into the error object of an encoded response, which the
// module writes last.
func addMembers(body []byte, members map[string]any) []byte {
	const end = "}}"
	if len(members) == 0 || !bytes.HasSuffix(body, []byte(end)) {
		return body
	}
	raw, err := marshal(members)
	if err != nil {
		return body // the error is worth more than what is said beside it
	}
	body = append(body[:len(body)-len(end)], ',')
	body = append(body, raw[1:len(raw)-1]...)
	return append(body, end...)
}

// WriteFrame queues a batch response.
func (s *stream) WriteFrame(_ context.Context, body []byte) (int64, error) {
	err := s.write(context.Background(), append([]byte(nil), body...), true)
	var answers []struct{ ID json.RawMessage }
	if json.Unmarshal(body, &answers) == nil {
		for _, a := range answers {
			var text string
			if n, err := strconv.ParseInt(string(a.ID), 10, 64); err == nil {
				s.markAnswered(jsonrpc2.NewNumberID(n))
			} else if json.Unmarshal(a.ID, &text) == nil {
				s.markAnswered(jsonrpc2.NewStringID(text))
			}
		}
	}
	return int64(len(body)), err
}

func (s *stream) markAnswered(id jsonrpc2.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a := s.pending[id]; a != nil {
		delete(s.pending, id)
		close(a.queued)
	}
}

func (s *stream) write(ctx context.Context, body []byte, urgent bool) error {
	if s.trace != nil {
		s.trace(false, body)
	}
	return s.out.send(ctx, body, urgent)
}

// Close implements jsonrpc2.Stream.
func (s *stream) Close() error {
	s.out.close()
	if c, ok := s.src.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

// repairResponse drops a null error or result next to the other, as some clients send
// them. It returns nil for a response that can not be read all the same.
func repairResponse(body []byte) (fixed []byte, isResponse bool) {
	var m map[string]json.RawMessage
	if json.Unmarshal(body, &m) != nil {
		return nil, false
	}
	_, hasMethod := m["method"]
	result, hasResult := m["result"]
	fault, hasFault := m["error"]
	if hasMethod || !hasResult && !hasFault {
		return nil, false
	}
	switch {
	case string(fault) == "null":
		delete(m, "error")
	case string(result) == "null":
		delete(m, "result")
	}
	fixed, err := json.Marshal(m)
	if err == nil {
		_, err = jsonrpc2.DecodeMessage(fixed)
	}
	if err != nil {
		return nil, true
	}
	return fixed, true
}

// restoreID undoes shiftID on a response to one of our requests.
func restoreID(body []byte) []byte {
	view, err := jsonrpc2.ScanMessageView(body)
	if err != nil || len(view.MethodRaw) > 0 {
		return body
	}
	return shiftID(body, view.IDRaw, -firstID)
}

// shiftID returns body with the numeric id in span, which is a part of body, changed by
// delta. Ids out of our range are left alone.
func shiftID(body, span []byte, delta int64) []byte {
	n, err := strconv.ParseInt(string(span), 10, 64)
	if err != nil || n+delta < 0 {
		return body
	}
	i := 0
	for &body[i] != &span[0] {
		i++
	}
	out := append([]byte(nil), body[:i]...)
	out = strconv.AppendInt(out, n+delta, 10)
	return append(out, body[i+len(span):]...)
}

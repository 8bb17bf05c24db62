package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// Kinds of errors, as reports name them.
const (
	kindStart       = "start"
	kindTimeout     = "timeout"
	kindExit        = "exit"
	kindProtocol    = "protocol"
	kindRPC         = "rpc"
	kindHTTP        = "http"
	kindJudge       = report.KindJudge
	kindGrader      = report.KindGrader
	kindWorkspace   = "workspace"
	kindEnvironment = "environment"
	kindBudget      = "budget"
	kindVersion     = "version"
	kindCapability  = "capability"
	kindInterrupted = "interrupted"
)

// CallError is the error of a call that an agent did not answer correctly.
type CallError struct {
	Kind    string
	Method  string
	Message string
	Code    int // of the error that the agent returned; 0 if it returned none
}

// exitReason returns the exit reason of this error for reports.
func (e *CallError) exitReason(ctx context.Context) string {
	switch e.Kind {
	case kindTimeout:
		return report.ReasonTimeout
	case kindStart, kindExit, kindHTTP:
		return report.ReasonTransport
	case kindProtocol, kindVersion, kindCapability:
		return report.ReasonProtocol
	case kindRPC:
		return report.ReasonAgent
	case kindInterrupted, kindBudget:
		if errors.Is(context.Cause(ctx), errDuration) {
			return report.ReasonDuration
		}
	}
	return report.ReasonError
}

func (e *CallError) Error() string { return e.Method + ": " + e.Message }

func callError(kind, method, format string, args ...any) *CallError {
	return &CallError{Kind: kind, Method: method, Message: fmt.Sprintf(format, args...)}
}

// asCallError returns err as a CallError, and wraps it if necessary.
func asCallError(err error, kind, method string) *CallError {
	var e *CallError
	if errors.As(err, &e) {
		return e
	}
	return callError(kind, method, "%v", err)
}

// conn is a connection to an agent. It is used by one goroutine.
type conn interface {
	// exchange sends one message. If id is not nil, it waits for the answer, at most until ctx
	// ends. An error is a *CallError.
	exchange(ctx context.Context, method string, message, id []byte) (ecp.Response, error)
	// close ends the connection and all processes that it started. If now is set, it does not wait for
	// the agent to end.
	close(now bool)
	// notes describes unexpected output of the agent.
	notes() []string
	// stderr returns the end of the agent's stderr.
	stderr() string
}

// ids gives each call of a run its own id, so that a late answer is not mistaken for another one.
type ids struct {
	mu   sync.Mutex // guards last
	last int64
}

func (i *ids) next() json.RawMessage {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.last++
	return fmt.Appendf(nil, "%d", i.last)
}

// matchAnswer reports whether an object from the agent answers the call with this id. If the object is
// not a response, or is a late or repeated response with the id of an earlier call, matchAnswer adds it
// to stray. Any other response must be meant for the only open call, so a wrong id is an error
// immediately, rather than after the time limit.
func matchAnswer(raw, id []byte, stray *strayOutput) (r ecp.Response, isAnswer bool, err error) {
	r, err = ecp.ParseResponse(raw)
	switch {
	case r.Answers(id):
		return r, true, err
	case !ecp.IsResponse(raw):
		stray.add("JSON that answers nothing", raw)
		return r, false, nil
	case isEarlier(r.ID, id):
		stray.add("answers with the id of an earlier call", raw)
		return r, false, nil
	case r.ID == nil:
		return r, true, fmt.Errorf("the answer has no id, the call has %s", id)
	}
	text := fmt.Sprintf("the answer has the id %s, the call has %s; the agent must send the id back unchanged", clip(string(r.ID), 40), id)
	if r.Err != nil {
		text += "; its error: " + clip(r.Err.Message, maxShown)
	}
	return r, true, errors.New(text)
}

// isEarlier reports whether an id belongs to an earlier call than another one. Ids count up, except
// the strings that the conformance checks use.
func isEarlier(id, call []byte) bool {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || n < 1 || strconv.FormatInt(n, 10) != string(id) {
		return false
	}
	now, err := strconv.ParseInt(string(call), 10, 64)
	return err != nil || n < now
}

// call calls a method and returns its result.
func call(ctx context.Context, c conn, ids *ids, method string, params any) (json.RawMessage, error) {
	id := ids.next()
	raw, err := ecp.Encode(params)
	var message []byte
	if err == nil {
		message, err = ecp.Encode(ecp.Request{ID: id, Method: method, Params: raw})
	}
	if err != nil {
		return nil, callError(kindProtocol, method, "cannot encode the request: %v", err)
	}
	r, err := c.exchange(ctx, method, message, id)
	if r.Err != nil && r.Err.Code == ecp.CodeVersionUnsupported {
		return nil, unsupported(method, "the agent refuses protocol version "+ecp.ProtocolVersion, r.Err.Message)
	}
	if err != nil {
		return nil, err
	}
	if r.Err != nil {
		text := fmt.Sprintf("the agent answered with error %d: %s", r.Err.Code, clip(r.Err.Message, maxShown))
		if len(r.Err.Data) > 0 {
			text += " (" + clip(string(r.Err.Data), maxShown) + ")"
		}
		return nil, &CallError{Kind: kindRPC, Method: method, Message: text, Code: r.Err.Code}
	}
	return r.Result, nil
}

// unsupported returns the error for a protocol version that is not supported. Its kind is kindVersion
// only for agent/initialize.
func unsupported(method, what, detail string) *CallError {
	kind := kindProtocol
	if method == ecp.MethodInitialize {
		kind = kindVersion
	}
	if detail != "" {
		detail = ": " + clip(detail, maxShown)
	}
	return &CallError{Kind: kind, Method: method, Code: ecp.CodeVersionUnsupported, Message: fmt.Sprintf("VERSION_UNSUPPORTED (%d): %s%s", ecp.CodeVersionUnsupported, what, detail)}
}

// maxShown limits how much of an agent's output a message quotes, in bytes.
const maxShown = 300

// clip shortens a text to n bytes and joins its lines.
func clip(text string, n int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "…"
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
}

// clipEnd is clip for a text whose end matters, such as the output of a build.
func clipEnd(text string, n int) string {
	text = strings.TrimSpace(text)
	if len(text) > n {
		text = "…" + strings.ToValidUTF8(text[len(text)-n:], "")
	}
	return clip(text, len(text))
}

// strayOutput counts the unexpected output of an agent by kind, and stores the first example of each.
type strayOutput struct {
	mu     sync.Mutex // guards the fields below
	kinds  []string
	counts map[string]int
	first  map[string]string
}

func (n *strayOutput) add(kind string, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts == nil {
		n.counts, n.first = map[string]int{}, map[string]string{}
	}
	if n.counts[kind] == 0 {
		n.kinds = append(n.kinds, kind)
		n.first[kind] = clip(string(data[:min(len(data), 2*maxShown)]), maxShown)
	}
	n.counts[kind]++
}

func (n *strayOutput) list() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.kinds {
		out = append(out, fmt.Sprintf("%s (%d), the first: %s", s, n.counts[s], n.first[s]))
	}
	return out
}

// suffix returns the end of an error message, which describes the unexpected output, or "".
func (n *strayOutput) suffix() string {
	if list := n.list(); len(list) > 0 {
		return "; it sent: " + strings.Join(list, "; ")
	}
	return ""
}

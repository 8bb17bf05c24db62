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

// CallError is a call that an agent did not answer as it should.
type CallError struct {
	Kind    string
	Method  string
	Message string
	Code    int // of an agent's own error
}

// reason is the exit reason of what failed like that, as reports have it.
func (e *CallError) reason(ctx context.Context) string {
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

// asCallError returns err as a CallError, wrapping what is none.
func asCallError(err error, kind, method string) *CallError {
	var e *CallError
	if errors.As(err, &e) {
		return e
	}
	return callError(kind, method, "%v", err)
}

// conn is a connection to an agent. It is used by one goroutine.
type conn interface {
	// exchange sends one message and, if id is not nil, waits for what answers it, at the
	// longest until ctx ends. An error is a *CallError.
	exchange(ctx context.Context, method string, message, id []byte) (ecp.Response, error)
	// close ends the connection and all that it started; at once if now says so.
	close(now bool)
	// notes says what was odd, stderr what the agent wrote there last.
	notes() []string
	stderr() string
}

// ids gives each call its own id, in the whole run: late answers are nobody else's.
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

// match says whether an object that the agent sent answers the call with this id. One that
// comes late, or once more, has the id of an earlier call and is skipped; so is what is no
// response. Any other response must be meant for the only call that is open: an error says
// so at once, instead of when the time is over.
func (n *noise) match(raw, id []byte) (r ecp.Response, mine bool, err error) {
	r, err = ecp.ParseResponse(raw)
	switch {
	case r.Answers(id):
		return r, true, err
	case !ecp.IsResponse(raw):
		n.add("JSON that answers nothing", raw)
		return r, false, nil
	case isEarlier(r.ID, id):
		n.add("answers with the id of an earlier call", raw)
		return r, false, nil
	case r.ID == nil:
		return r, true, fmt.Errorf("the answer has no id, the call has %s", id)
	}
	text := fmt.Sprintf("the answer has the id %s, the call has %s; the agent must send the id back as it came", clip(string(r.ID), 40), id)
	if r.Err != nil {
		text += "; its error: " + clip(r.Err.Message, maxShown)
	}
	return r, true, errors.New(text)
}

// isEarlier says whether an id is that of a call that was made before another: ids count
// up, except those of the checks of conformance, which are texts.
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
	raw, err := ecp.Encode(params)
	if err != nil {
		return nil, callError(kindProtocol, method, "the request can not be encoded: %v", err)
	}
	id := ids.next()
	message, err := ecp.Encode(ecp.Request{ID: id, Method: method, Params: raw})
	if err != nil {
		return nil, callError(kindProtocol, method, "the request can not be encoded: %v", err)
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

// unsupported is a version of the protocol that the other side does not speak. Only
// agent/initialize can find that out.
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

// maxShown bounds what messages repeat of what an agent sent, in bytes.
const maxShown = 300

// clip shortens a text to n bytes and makes it one line.
func clip(text string, n int) string {
	text = strings.TrimSpace(strings.ToValidUTF8(text, "\uFFFD"))
	if len(text) > n {
		text = strings.ToValidUTF8(text[:n], "") + "…"
	}
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(text)
}

// noise remembers, of what came beside the answers, how much and the first of each sort.
type noise struct {
	mu     sync.Mutex // guards what follows
	sorts  []string
	counts map[string]int
	first  map[string]string
}

func (n *noise) add(sort string, data []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts == nil {
		n.counts, n.first = map[string]int{}, map[string]string{}
	}
	if n.counts[sort] == 0 {
		n.sorts = append(n.sorts, sort)
		n.first[sort] = clip(string(data[:min(len(data), 2*maxShown)]), maxShown)
	}
	n.counts[sort]++
}

func (n *noise) list() (out []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.sorts {
		out = append(out, fmt.Sprintf("%s (%d), the first: %s", s, n.counts[s], n.first[s]))
	}
	return out
}

// said ends a message with what came instead.
func (n *noise) said() string {
	if list := n.list(); len(list) > 0 {
		return "; it sent: " + strings.Join(list, "; ")
	}
	return ""
}

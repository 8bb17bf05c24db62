package journal

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
)

// Names in records of model calls.
const (
	ServiceLLM    = "llm"
	OperationChat = "chat"
)

// Model wraps a model so that each call is recorded. id is the model's full name, provider/model. The
// retries of the wrapped model (llm.WithRetry) are part of one call.
func (j *Journal) Model(m llm.Model, id string) llm.Model { return model{m, id, j} }

type model struct {
	llm.Model
	id string
	j  *Journal
}

// Stream implements llm.Model.
func (m model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	if !m.j.o.Enabled() {
		return m.Model.Stream(ctx, req)
	}
	return func(yield func(llm.Delta, error) bool) {
		o := origin{id: m.j.id(), at: m.j.o.Now(), chat: req.Origin.Chat, parent: req.Origin.Parent, turn: req.Origin.Turn, agent: req.Origin.Agent}
		o.cause = m.j.chats.model(o.id, req)
		m.j.recordRequest(o, m.id, req)
		var answer answerRecorder
		failure := errStopped // until the stream ends normally
		defer func() { m.j.recordAnswer(o, answer.all(), failure) }()
		for d, err := range m.Model.Stream(ctx, req) {
			if err != nil {
				failure = err
			} else if answer.add(d); d.Kind == llm.StopDelta {
				failure = nil
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// errStopped means that the caller did not read the rest of an answer.
var errStopped = errors.New("the caller stopped reading the answer")

// answerRecorder collects the deltas of an answer, and joins adjacent pieces of text.
type answerRecorder struct {
	deltas []llm.Delta
	text   strings.Builder // the text of the last delta so far
}

func (s *answerRecorder) add(d llm.Delta) {
	switch d.Kind {
	case llm.ToolArgs, llm.RetryDelta, llm.AttemptDelta: // ToolEnd has the complete call
		return
	case llm.TextDelta, llm.ReasoningDelta:
		if n := len(s.deltas); n > 0 && s.deltas[n-1].Kind == d.Kind && s.deltas[n-1].ID == d.ID {
			s.text.WriteString(d.Text)
			return
		}
	}
	s.flush()
	s.deltas = append(s.deltas, d)
	s.text.WriteString(d.Text)
}

func (s *answerRecorder) flush() {
	if n := len(s.deltas); n > 0 {
		s.deltas[n-1].Text = s.text.String()
	}
	s.text.Reset()
}

func (s *answerRecorder) all() []llm.Delta {
	s.flush()
	return s.deltas
}

// recordRequest records a request.
func (j *Journal) recordRequest(o origin, id string, req llm.Request) {
	req.Messages = slices.Clone(req.Messages) // the engine continues to use its own slice
	r := o.request(esrp.Target{Service: ServiceLLM, Operation: OperationChat, Variant: &id})
	j.record(Requested, func(b *bodies) esrp.Value {
		known := b.lastRequest(o.chat + "/" + string(req.Purpose))
		inputs := esrp.Value{Kind: esrp.Array}
		add := func(name string, value any, store func() esrp.Body) {
			inputs.Items = append(inputs.Items, b.input(known.bodyOf(b, name, value, store)))
		}
		asText := func(name, text string) {
			if text != "" {
				add(name, text, func() esrp.Body { return b.text(name, "text/plain", text) })
			}
		}
		asJSON := func(name string, value any) {
			add(name, value, func() esrp.Body {
				data, err := json.Marshal(value)
				if err != nil && b.err == nil {
					b.err = err
				}
				return b.bytes(name, "application/json", cleanJSON(data, b.clean))
			})
		}
		asText("system", req.System)
		asText("system_tail", req.SystemTail)
		if len(req.Tools) > 0 {
			asJSON("tools", req.Tools)
		}
		if len(req.Extra) > 0 { // stored as a body, because records cannot contain floating-point numbers
			asJSON("options", req.Extra)
		}
		inputs.Items = append(inputs.Items, known.storeMessages(b, req.Messages)...)
		if len(inputs.Items) == 0 {
			inputs.Items = append(inputs.Items, b.input(esrp.Body{Name: "message", ContentType: "application/json", Encoding: esrp.UTF8}))
		}
		r.Params = params(map[string]string{"purpose": string(req.Purpose), "model": req.Model},
			map[string]int64{"max_output": req.MaxOutput, "context": req.Context})
		v, _ := r.SealedWith(inputs) // see toolRequest
		return v
	})
}

// recordAnswer records the outcome of a request.
func (j *Journal) recordAnswer(o origin, answer []llm.Delta, failure error) {
	r, event := o.response(j.o.Now()), Completed
	j.recordAs(func(b *bodies) (string, esrp.Value) {
		body := b.answer(answer)
		r.Outputs = append(r.Outputs, body)
		if failure != nil {
			event, r.Status, r.Error = Failed, esrp.Failed, asESRPError(failure)
			r.Outputs = append(r.Outputs, b.text("error", "text/plain", failure.Error()))
		}
		return event, r.Value()
	})
}

// modelFailed is the prefix of the message of a model's failure, before its kind.
const modelFailed = "the model failed: "

// asESRPError classifies an error. It leaves out the text of the error, which may quote the conversation;
// that is recorded as an output.
func asESRPError(err error) *esrp.Error {
	e := &esrp.Error{Code: esrp.Unknown, Message: "the call failed"}
	var typed *llm.Error
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, errStopped):
		e.Message, e.Details = "the call was cancelled", esrp.ObjectValue(esrp.Member{Key: "cancelled", Value: esrp.BoolValue(true)})
	case errors.Is(err, context.DeadlineExceeded):
		e.Code, e.Message = esrp.Timeout, "the call took too long"
	case errors.As(err, &typed):
		e.Message, e.Retryable = modelFailed+string(typed.Kind), typed.Retryable()
		switch typed.Kind {
		case llm.ErrTimeout, llm.ErrDeadline:
			e.Code = esrp.Timeout
		case llm.ErrRateLimited, llm.ErrOverloaded, llm.ErrNetwork, llm.ErrUnreachable, llm.ErrPrematureStop, llm.ErrMalformed, llm.ErrProtocol, llm.ErrAuth:
			e.Code = esrp.BackendUnavailable
		case llm.ErrContextOverflow:
			e.Code = esrp.InvalidInputSize
		case llm.ErrBadRequest, llm.ErrInvalidImage:
			e.Code = esrp.InvalidInputSemantic
		}
	}
	return e
}

// delta is llm.Delta in the form of a body.
type delta struct {
	Kind   string          `json:"kind"`
	ID     string          `json:"id,omitempty"`
	Name   string          `json:"name,omitempty"`
	Text   string          `json:"text,omitempty"`
	API    string          `json:"api,omitempty"`
	Opaque json.RawMessage `json:"opaque,omitempty"`
	Usage  *llm.Usage      `json:"usage,omitempty"`
	Stop   llm.StopReason  `json:"stop,omitempty"`

	Result *llm.ServerResult `json:"result,omitempty"` // of a call that the provider ran
}

// deltaKinds maps kinds of deltas to their names in bodies.
func deltaKinds() map[llm.DeltaKind]string {
	return map[llm.DeltaKind]string{
		llm.TextDelta: "text", llm.ReasoningStart: "reasoning_start", llm.ReasoningDelta: "reasoning", llm.ReasoningEnd: "reasoning_end",
		llm.ToolStart: "tool_start", llm.ToolEnd: "tool_call", llm.UsageDelta: "usage", llm.StopDelta: "stop",
		llm.ServerStart: "server_start", llm.ServerRun: "server_run", llm.ServerEnd: "server_end", llm.SourceDelta: "source",
	}
}

// answer stores an answer.
func (b *bodies) answer(deltas []llm.Delta) esrp.Body {
	out, names := []delta{}, deltaKinds()
	for _, d := range deltas {
		q := delta{Kind: names[d.Kind], ID: d.ID, Name: d.Name, Text: b.clean(d.Text), API: d.API, Stop: d.Stop}
		if len(d.Opaque) > 0 {
			q.Opaque = cleanJSON(d.Opaque, b.clean)
		}
		if r := d.Result; r != nil {
			q.Result = &llm.ServerResult{Images: r.Images, Failed: r.Failed}
			for _, text := range r.Outputs {
				q.Result.Outputs = append(q.Result.Outputs, b.clean(text))
			}
		}
		if (d.Kind == llm.ToolEnd || d.Kind == llm.ServerRun) && json.Valid([]byte(d.Text)) {
			q.Text = string(cleanJSON([]byte(d.Text), b.clean))
		}
		if d.Kind == llm.UsageDelta {
			q.Usage = &d.Usage
		}
		out = append(out, q)
	}
	data, err := json.Marshal(out)
	if err != nil && b.err == nil {
		b.err = err
	}
	return b.bytes("answer", "application/json", data)
}

// maxRemembered is the number of conversations whose last request is remembered.
const maxRemembered = 64

// lastRequest is the last recorded request of a conversation. Parts of the next request that are equal
// to it need not be stored again.
type lastRequest struct {
	messages []llm.Message
	bodies   [][]esrp.Body
	inputs   [][]esrp.Value         // bodies in canonical form
	stored   map[string]storedValue // system prompt, tools and so on, by name
}

// storedValue is a value with its body.
type storedValue struct {
	value any
	body  esrp.Body
}

// lastRequest returns the last request of a conversation, or an empty one.
func (b *bodies) lastRequest(key string) *lastRequest {
	known, ok := b.c.lastRequests[key]
	if !ok {
		if b.c.lastRequests == nil || len(b.c.lastRequests) >= maxRemembered {
			b.c.lastRequests = map[string]*lastRequest{}
		}
		known = &lastRequest{stored: map[string]storedValue{}}
		b.c.lastRequests[key] = known
	}
	return known
}

// bodyOf returns the body of a value. It calls store unless the last request had the same value and its
// body still exists.
func (r *lastRequest) bodyOf(b *bodies, name string, value any, store func() esrp.Body) esrp.Body {
	if last, ok := r.stored[name]; ok && reflect.DeepEqual(last.value, value) && b.has(last.body) {
		return last.body
	}
	body := store()
	r.stored[name] = storedValue{value, body}
	return body
}

// storeMessages stores the messages of a conversation. It reuses the bodies of messages that the last
// request had at the same index, if they still exist.
func (r *lastRequest) storeMessages(b *bodies, messages []llm.Message) []esrp.Value {
	bodies, inputs := make([][]esrp.Body, len(messages)), make([][]esrp.Value, len(messages))
	out := make([]esrp.Value, 0, len(r.messages)+len(messages)) // most messages have one body, calls with results have more
	for i, m := range messages {
		if i < len(r.messages) && reflect.DeepEqual(r.messages[i], m) && b.has(r.bodies[i]...) {
			bodies[i], inputs[i] = r.bodies[i], r.inputs[i]
		} else {
			bodies[i] = b.message(m)
			for _, body := range bodies[i] {
				inputs[i] = append(inputs[i], b.input(body))
			}
		}
		out = append(out, inputs[i]...)
	}
	r.messages, r.bodies, r.inputs = messages, bodies, inputs
	return out
}

// input returns a body in canonical form.
func (b *bodies) input(body esrp.Body) esrp.Value {
	v, err := body.Value().Canonicalized()
	if err != nil && b.err == nil {
		b.err = err
	}
	return v
}

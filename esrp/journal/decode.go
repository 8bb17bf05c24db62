package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
)

// decodeRequest decodes a model call, and adds the tools that it offered to the conversation.
func (r *conversationReader) decodeRequest(call Call) (*RecordedRequest, error) {
	out := &RecordedRequest{Seq: call.Seq, Model: deref(call.Request.Target.Variant)}
	out.Context, _ = strconv.ParseInt(param(call.Request, "context"), 10, 64) // 0 if absent, which means unknown
	for _, in := range call.Request.Inputs {
		if in.Name != "message" && in.Name != "tools" {
			continue
		}
		if in.Name == "tools" {
			var list []llm.ToolSpec
			if err := r.body(call, in, in.Name, &list); err != nil {
				return out, err
			}
			for _, t := range list {
				if !r.offered[t.Name] {
					r.offered[t.Name] = true
					r.out.Tools = append(r.out.Tools, t)
				}
			}
			continue
		}
		var m message
		if err := r.body(call, in, in.Name, &m); err != nil {
			return out, err
		}
		out.messages = append(out.messages, m)
	}
	kinds := map[string]llm.DeltaKind{}
	for kind, name := range deltaKinds() {
		kinds[name] = kind
	}
	for _, o := range call.Response.Outputs {
		if o.Name != "answer" {
			continue
		}
		var list []delta
		if err := r.body(call, o, "the answer", &list); err != nil {
			return out, err
		}
		for _, q := range list {
			d := llm.Delta{Kind: kinds[q.Kind], ID: q.ID, Name: q.Name, Text: q.Text, API: q.API, Opaque: q.Opaque, Stop: q.Stop, Result: q.Result}
			if q.Usage != nil {
				d.Usage = *q.Usage
			}
			out.Answer = append(out.Answer, d)
		}
	}
	return out, nil
}

// body decodes a body of a call.
func (r *conversationReader) body(call Call, b esrp.Body, name string, into any) error {
	data, err := r.c.Body(b)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return fmt.Errorf("line %d: %s: %w", call.Seq, name, err)
	}
	return nil
}

// toolCall decodes a tool call.
func (r *conversationReader) toolCall(call Call) (*toolCall, error) {
	out := &toolCall{id: param(call.Request, "call_id"), name: call.Request.Target.Operation}
	out.outcome.Result.Failed = call.Response.Status == esrp.Failed
	if call.Response.Error != nil {
		why, _ := call.Response.Error.Details.Get(Refused)
		out.outcome.Rejection = event.RejectReason(why.Text)
	}
	for _, b := range append(slices.Clone(call.Request.Inputs), call.Response.Outputs...) {
		switch b.Name {
		case "arguments", "output", "error", "image":
		default:
			continue
		}
		data, err := r.c.Body(b)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", call.Seq, b.Name, err)
		}
		switch b.Name {
		case "arguments":
			out.arguments = data
		case "image":
			out.outcome.Result.Images = append(out.outcome.Result.Images, event.Image{MediaType: b.ContentType, Data: data})
		default:
			out.outcome.Result.Outputs = append(out.outcome.Result.Outputs, string(data))
		}
	}
	return out, nil
}

// splitPrompt splits the message of a prompt into its text and its contexts.
func splitPrompt(c *Chain, m message) (text string, contexts []PromptContext, err error) {
	if m.Role != llm.User || len(m.Parts) == 0 || m.Parts[0].Type != "text" {
		return "", nil, errors.New("the turn does not begin with a prompt")
	}
	for _, p := range m.Parts[1:] {
		switch n := len(contexts) - 1; {
		case p.Type == "image" && n >= 0:
			data, err := c.body(p.SHA256)
			if err != nil {
				return "", nil, err
			}
			contexts[n].Image = llm.Image{MediaType: p.MediaType, Data: data}
		case p.Type == "text":
			label, rest, found := strings.Cut(strings.TrimPrefix(p.Text, "<context label="), ">\n")
			body, closed := strings.CutSuffix(rest, "\n</context>")
			var q PromptContext
			if !found || !closed || json.Unmarshal([]byte(label), &q.Label) != nil {
				return "", nil, errors.New("the prompt has a part that cannot be replayed")
			}
			q.Text = body
			contexts = append(contexts, q)
		default:
			return "", nil, errors.New("the prompt has a part that cannot be replayed")
		}
	}
	return m.Parts[0].Text, contexts, nil
}

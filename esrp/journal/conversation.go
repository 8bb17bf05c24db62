package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/tools"
)

// Conversation is what is on record of a chat, as far as it can be run again: up to the first
// turn in which something happened that models and tools did not say.
type Conversation struct {
	Turns     []Turn
	Tools     []llm.ToolSpec // all that were offered
	Reasoning bool           // reasoning of earlier turns was sent back
	Left      string         // why the rest can not be run again; empty: that is all
}

// Turn is a prompt with the requests that were made for it.
type Turn struct {
	Prompt   string
	Contexts []Pointed
	Model    string // full id
	Agent    string
	Requests []Asked
	calls    []*toolCall
}

// Pointed is what a prompt pointed at, as the model was shown it.
type Pointed struct {
	Label, Text string
	Image       llm.Image
}

// Asked is a request with its answer.
type Asked struct {
	Seq      uint64
	Answer   []llm.Delta
	messages []message
}

type toolCall struct {
	name      string
	arguments []byte
	result    tools.Result
	used      bool
}

// Conversation reads a chat. It is an error if there is no record of it, or if what is on
// record can not be read.
func (c *Chain) Conversation(chatID string) (Conversation, error) {
	calls, err := c.Calls(chatID)
	if err != nil {
		return Conversation{}, err
	}
	if len(calls) == 0 {
		return Conversation{}, fmt.Errorf("the chat %s is not on record", chatID)
	}
	r := conversing{c: c, offered: map[string]bool{}}
	for _, turn := range byTurn(calls) {
		if err := r.turn(turn); err != nil {
			var left leftError
			if !errors.As(err, &left) {
				return Conversation{}, err
			}
			r.out.Left = left.Error()
			break
		}
	}
	return r.out, nil
}

// byTurn groups the calls of the conversation itself; what was asked beside it is left out.
func byTurn(calls []Call) [][]Call {
	var out [][]Call
	at := map[string]int{}
	for _, c := range calls {
		turn := tag(c.Request, "turn")
		if purpose := param(c.Request, "purpose"); turn == "" || purpose == string(llm.PurposeTitle) || purpose == string(llm.PurposeSampling) {
			continue
		}
		n, ok := at[turn]
		if !ok {
			n = len(out)
			at[turn], out = n, append(out, nil)
		}
		out[n] = append(out[n], c)
	}
	return out
}

func tag(r esrp.Request, name string) string {
	if r.Context == nil {
		return ""
	}
	v, _ := r.Context.Tags.Get(name)
	return v.Text
}

func param(r esrp.Request, name string) string {
	v, _ := r.Params.Get(name)
	return v.Text
}

// leftError says why a turn can not be run again.
type leftError struct {
	seq    uint64
	reason string
}

func (e leftError) Error() string { return fmt.Sprintf("line %d of the journal: %s", e.seq, e.reason) }

// conversing reads turns.
type conversing struct {
	c       *Chain
	out     Conversation
	offered map[string]bool
	before  int // messages of the last request
}

func (r *conversing) turn(calls []Call) error {
	var t Turn
	said := map[string]string{} // results as models were told, by call
	open := 0                   // calls in answers
	for n, call := range calls {
		left := func(reason string) error { return leftError{call.Seq, reason} }
		if call.Response == nil {
			return left("the call has no answer: it was interrupted")
		}
		if call.Request.Target.Service == ServiceTool {
			if cancelled(call.Response) {
				return left("the call was cancelled")
			}
			tc, err := r.toolCall(call)
			if err != nil {
				return err
			}
			t.calls = append(t.calls, tc)
			continue
		}
		switch {
		case param(call.Request, "purpose") != string(llm.PurposeTurn):
			return left("the conversation was compacted")
		case call.Response.Status != esrp.Succeeded:
			return left("the model's answer failed or was stopped")
		}
		asked, err := r.asked(call)
		if err != nil {
			return err
		}
		if len(asked.messages) == 0 || len(asked.messages) < r.before {
			return left("the conversation was changed")
		}
		last := asked.messages[len(asked.messages)-1]
		if n == 0 {
			if t.Prompt, t.Contexts, err = prompt(r.c, last); err != nil {
				return left(err.Error())
			}
			t.Model, t.Agent = *call.Request.Target.Variant, deref(call.Request.Caller.AgentID)
			r.out.Reasoning = r.out.Reasoning || slices.ContainsFunc(asked.messages, func(m message) bool {
				return slices.ContainsFunc(m.Parts, func(p part) bool { return p.Type == "reasoning" })
			})
		} else if slices.ContainsFunc(last.Parts, func(p part) bool { return p.Type != "tool_result" }) || last.Role != llm.User {
			return left("the user or eca said something in the turn")
		}
		for _, p := range last.Parts {
			said[p.ID] = p.Text
		}
		for _, d := range asked.Answer {
			if d.Kind == llm.ToolStart {
				open++
			}
		}
		r.before = len(asked.messages)
		t.Requests = append(t.Requests, asked)
	}
	if len(t.Requests) == 0 {
		return nil
	}
	at := leftError{seq: t.Requests[0].Seq}
	if open != len(t.calls) {
		at.reason = fmt.Sprintf("%d calls were made in the turn, and %d ran: others were refused", open, len(t.calls))
		return at
	}
	if answer := t.Requests[len(t.Requests)-1].Answer; slices.ContainsFunc(answer, func(d llm.Delta) bool { return d.Kind == llm.ToolStart }) {
		at.reason = "the turn was ended after its last calls"
		return at
	}
	for n, call := range callsOf(calls) {
		// Instructions and hooks may have added to what the tool returned.
		joined := strings.TrimSuffix(strings.Join(t.calls[n].result.Outputs, "\n"), "\n")
		if text, ok := said[param(call.Request, "call_id")]; ok && strings.HasPrefix(text, joined) {
			t.calls[n].result.Outputs = []string{text}
		}
	}
	r.out.Turns = append(r.out.Turns, t)
	return nil
}

// callsOf returns the tool calls among calls.
func callsOf(calls []Call) []Call {
	return slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Request.Target.Service != ServiceTool })
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func cancelled(r *esrp.Response) bool {
	if r.Error == nil {
		return false
	}
	v, _ := r.Error.Details.Get("cancelled")
	return v.Bool
}

// asked reads a model call, and which tools it offered.
func (r *conversing) asked(call Call) (Asked, error) {
	out := Asked{Seq: call.Seq}
	for _, in := range call.Request.Inputs {
		if in.Name != "message" && in.Name != "tools" {
			continue
		}
		data, err := r.c.Body(in)
		if err != nil {
			return out, fmt.Errorf("line %d: %s: %w", call.Seq, in.Name, err)
		}
		if in.Name == "tools" {
			var list []llm.ToolSpec
			if err := json.Unmarshal(data, &list); err != nil {
				return out, fmt.Errorf("line %d: %s: %w", call.Seq, in.Name, err)
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
		if err := json.Unmarshal(data, &m); err != nil {
			return out, fmt.Errorf("line %d: %s: %w", call.Seq, in.Name, err)
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
		data, err := r.c.Body(o)
		var list []delta
		if err == nil {
			err = json.Unmarshal(data, &list)
		}
		if err != nil {
			return out, fmt.Errorf("line %d: the answer: %w", call.Seq, err)
		}
		for _, q := range list {
			d := llm.Delta{Kind: kinds[q.Kind], ID: q.ID, Name: q.Name, Text: q.Text, API: q.API, Opaque: q.Opaque, Stop: q.Stop}
			if q.Usage != nil {
				d.Usage = *q.Usage
			}
			out.Answer = append(out.Answer, d)
		}
	}
	return out, nil
}

func (r *conversing) toolCall(call Call) (*toolCall, error) {
	out := &toolCall{name: call.Request.Target.Operation}
	out.result.Failed = call.Response.Status == esrp.Failed
	for _, b := range append(slices.Clone(call.Request.Inputs), call.Response.Outputs...) {
		if strings.HasPrefix(b.Name, "file.") {
			continue
		}
		data, err := r.c.Body(b)
		if err != nil {
			return nil, fmt.Errorf("line %d: %s: %w", call.Seq, b.Name, err)
		}
		switch b.Name {
		case "arguments":
			out.arguments = data
		case "output", "error":
			out.result.Outputs = append(out.result.Outputs, string(data))
		case "image":
			out.result.Images = append(out.result.Images, event.Image{MediaType: b.ContentType, Data: data})
		}
	}
	return out, nil
}

// prompt takes the message of a prompt apart.
func prompt(c *Chain, m message) (text string, pointed []Pointed, err error) {
	if m.Role != llm.User || len(m.Parts) == 0 || m.Parts[0].Type != "text" {
		return "", nil, errors.New("the turn does not begin with a prompt")
	}
	for _, p := range m.Parts[1:] {
		switch n := len(pointed) - 1; {
		case p.Type == "image" && n >= 0:
			data, err := c.body(p.SHA256)
			if err != nil {
				return "", nil, err
			}
			pointed[n].Image = llm.Image{MediaType: p.MediaType, Data: data}
		case p.Type == "text":
			label, rest, found := strings.Cut(strings.TrimPrefix(p.Text, "<context label="), ">\n")
			body, closed := strings.CutSuffix(rest, "\n</context>")
			var q Pointed
			if !found || !closed || json.Unmarshal([]byte(label), &q.Label) != nil {
				return "", nil, errors.New("the prompt has parts of its own")
			}
			q.Text = body
			pointed = append(pointed, q)
		default:
			return "", nil, errors.New("the prompt has parts of its own")
		}
	}
	return m.Parts[0].Text, pointed, nil
}

// Call returns the result of a tool call of the turn, each once.
func (t *Turn) Call(name string, arguments json.RawMessage) (tools.Result, bool) {
	same := cleanJSON(arguments, func(s string) string { return s })
	for _, c := range t.calls {
		if !c.used && c.name == name && bytes.Equal(c.arguments, same) {
			c.used = true
			return c.result, true
		}
	}
	return tools.Result{}, false
}

// Compare returns the first message that is not as it was on record, and both; -1 if there is
// none. Ids count only by where they come again: providers and eca make new ones.
func (a Asked) Compare(messages []llm.Message) (at int, want, got string) {
	old, new := ids{}, ids{}
	for i := range max(len(messages), len(a.messages)) {
		want, got = "(none)", "(none)"
		if i < len(a.messages) {
			want = old.text(a.messages[i])
		}
		if i < len(messages) {
			got = new.text(messageOf(messages[i], func(s string) string { return s }, func(p llm.Image) part {
				return part{Type: "image", MediaType: p.MediaType, SHA256: esrp.HashBytes(p.Data)}
			}))
		}
		if want != got {
			return i, want, got
		}
	}
	return -1, "", ""
}

// ids numbers ids in the order in which they come.
type ids map[string]string

func (n ids) text(m message) string {
	m.Parts = slices.Clone(m.Parts)
	for i, p := range m.Parts {
		if p.ID == "" {
			continue
		}
		if n[p.ID] == "" {
			n[p.ID] = fmt.Sprint("#", len(n)+1)
		}
		m.Parts[i].ID = n[p.ID]
	}
	data, err := json.Marshal(m)
	if err != nil {
		return err.Error()
	}
	return string(data)
}

package journal

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/llm"
)

// system is the name of eca in records.
const system = "eca"

// maxChats is the number of chats whose calls are tracked; the least recently used one is dropped.
const maxChats = 256

// chats tracks which call caused which.
type chats struct {
	mu    sync.Mutex // guards the fields below
	byID  map[string]*chat
	clock uint64
}

// chat is the state of a chat's current turn.
type chat struct {
	turn        string
	lastRequest *esrp.UUID           // the last model call of the conversation
	calls       map[string]esrp.UUID // of tools, by their ids in the chat
	parent      string
	agent       string
	usedAt      uint64
}

// chat returns the state of a chat. The caller holds mu.
func (c *chats) chat(id string) *chat {
	s := c.byID[id]
	if s == nil {
		if len(c.byID) >= maxChats {
			delete(c.byID, slices.MinFunc(slices.Collect(maps.Keys(c.byID)), func(a, b string) int { return cmp.Compare(c.byID[a].usedAt, c.byID[b].usedAt) }))
		}
		s = &chat{calls: map[string]esrp.UUID{}}
		c.byID[id] = s
	}
	c.clock++
	s.usedAt = c.clock
	return s
}

// model tracks a model call and returns its cause: the tool call whose result it continues with, or
// otherwise the previous model call. The cause of the first call of a subagent is the tool call that
// started it. The first call for a user's prompt has no cause.
func (c *chats) model(id esrp.UUID, req llm.Request) (cause *esrp.UUID) {
	if req.Origin.Chat == "" || req.Origin.Turn == "" || req.Purpose == llm.PurposeTitle {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.chat(req.Origin.Chat)
	if s.turn != req.Origin.Turn {
		*s = chat{turn: req.Origin.Turn, calls: map[string]esrp.UUID{}, usedAt: s.usedAt}
		if parent := c.byID[req.Origin.Parent]; parent != nil && req.Origin.Parent != "" {
			if call, ok := parent.calls[req.Origin.Turn]; ok {
				cause = &call
			}
		}
	} else if cause = s.lastRequest; len(req.Messages) > 0 {
		for _, p := range req.Messages[len(req.Messages)-1].Parts {
			if r, ok := p.(llm.ToolResult); ok {
				if call, ok := s.calls[r.ID]; ok {
					cause = &call
				}
			}
		}
	}
	s.lastRequest, s.parent, s.agent = &id, req.Origin.Parent, req.Origin.Agent
	return cause
}

// tool tracks a tool call and returns the model call that caused it, and the turn.
func (c *chats) tool(id esrp.UUID, chatID, callID string) (cause *esrp.UUID, turn, parent string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.chat(chatID)
	s.calls[callID] = id
	return s.lastRequest, s.turn, s.parent
}

// agent returns the agent of the last request in a chat, or "" if there was no request.
func (c *chats) agent(chatID string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.byID[chatID]; s != nil {
		return s.agent
	}
	return ""
}

func (c *chats) forget(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byID, id)
}

// origin is the context of a call besides its target.
type origin struct {
	id                        esrp.UUID
	cause                     *esrp.UUID
	at                        time.Time
	chat, parent, turn, agent string
}

// request creates a record. The caller adds inputs and parameters.
func (o origin) request(target esrp.Target) esrp.Request {
	r := esrp.Request{
		Version: esrp.Version, ID: o.id, Timestamp: esrp.At(o.at.Truncate(time.Millisecond)), CausationID: o.cause,
		Caller: esrp.Caller{System: system}, Target: target,
		Mode: esrp.Mode{Type: esrp.Sync, TimeoutMS: uint64(esrp.DefaultTimeout.Milliseconds())},
	}
	trace := o.id
	if o.chat != "" {
		scope := esrp.DerivedUUID(o.chat)
		r.ScopeID, r.Caller.RunID = &scope, &o.chat
		if trace = scope; o.turn != "" {
			trace = esrp.DerivedUUID(o.chat + "/" + o.turn)
		}
	}
	if o.agent != "" {
		r.Caller.AgentID = &o.agent
	}
	tags := []esrp.Member{}
	for _, t := range [][2]string{{"turn", o.turn}, {"parent", o.parent}} {
		if t[1] != "" {
			tags = append(tags, esrp.Member{Key: t[0], Value: esrp.StringValue(t[1])})
		}
	}
	r.Context = &esrp.Context{TraceID: trace, SpanID: o.id, ParentSpanID: o.cause, Tags: esrp.ObjectValue(tags...)}
	return r
}

// response creates the answer to a call.
func (o origin) response(end time.Time) esrp.Response {
	started, finished := esrp.At(o.at.Truncate(time.Millisecond)), esrp.At(end.Truncate(time.Millisecond))
	t := &esrp.Timing{StartedAt: &started, FinishedAt: &finished}
	t.Millis(max(0, end.Sub(o.at)))
	return esrp.Response{Version: esrp.Version, RequestID: o.id, Status: esrp.Succeeded, Timing: t}
}

// cleanJSON removes secrets from a JSON text: from its strings, and where the name of a member
// indicates a secret. Invalid JSON is treated as text.
func cleanJSON(text []byte, clean func(string) string) []byte {
	var v any
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil || dec.More() {
		out, _ := json.Marshal(clean(string(text))) // a string always encodes
		return out
	}
	out, err := json.Marshal(redact.Value(v, clean))
	if err != nil {
		return []byte(`null`)
	}
	return out
}

// part is llm.Part in the form of a body.
type part struct {
	Type      string          `json:"type"` // text, image, reasoning, tool_call, tool_result or server_call
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Text      string          `json:"text,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	API       string          `json:"api,omitempty"`
	Opaque    json.RawMessage `json:"opaque,omitempty"`
	Failed    bool            `json:"failed,omitempty"`
	MediaType string          `json:"mediaType,omitempty"`
	SHA256    string          `json:"sha256,omitempty"` // of an image, which is a separate body
	Images    []part          `json:"images,omitempty"`
}

// message is llm.Message in the form of a body.
type message struct {
	Role  llm.Role `json:"role"`
	Parts []part   `json:"parts"`
}

// messageOf converts a message into the form of a body. image returns the reference to an image.
func messageOf(m llm.Message, clean func(string) string, image func(llm.Image) part) message {
	out := message{Role: m.Role, Parts: []part{}}
	for _, p := range m.Parts {
		var q part
		switch p := p.(type) {
		case llm.Text:
			q = part{Type: "text", Text: clean(p.Text)}
		case llm.Image:
			q = image(p)
		case llm.Reasoning:
			q = part{Type: "reasoning", ID: p.ID, Text: clean(p.Text), API: p.API}
			if len(p.Opaque) > 0 {
				q.Opaque = cleanJSON(p.Opaque, clean)
			}
		case llm.ToolCall:
			q = part{Type: "tool_call", ID: p.ID, Name: p.Name, Arguments: cleanJSON(p.Arguments, clean)}
		case llm.ServerCall:
			q = part{Type: "server_call", ID: p.ID, Name: p.Name, API: p.API}
			if len(p.Opaque) > 0 {
				q.Opaque = cleanJSON(p.Opaque, clean)
			}
			for _, i := range p.Images {
				q.Images = append(q.Images, image(i))
			}
		case llm.ToolResult:
			q = part{Type: "tool_result", ID: p.ID, Text: clean(p.Text), Failed: p.Failed}
			for _, i := range p.Images {
				q.Images = append(q.Images, image(i))
			}
		}
		out.Parts = append(out.Parts, q)
	}
	return out
}

// message stores a message and its images, and returns the references to them.
func (b *bodies) message(m llm.Message) []esrp.Body {
	var images []esrp.Body
	data, err := json.Marshal(messageOf(m, b.clean, func(i llm.Image) part {
		body := b.bytes("image", i.MediaType, i.Data)
		images = append(images, body)
		return part{Type: "image", MediaType: i.MediaType, SHA256: strings.TrimPrefix(body.Data, uriPrefix)}
	}))
	if err != nil && b.err == nil {
		b.err = err
	}
	return append([]esrp.Body{b.bytes("message", "application/json", data)}, images...)
}

// params creates parameters from nonzero numbers and nonempty texts.
func params(texts map[string]string, numbers map[string]int64) esrp.Value {
	var members []esrp.Member
	for key, text := range texts {
		if text != "" {
			members = append(members, esrp.Member{Key: key, Value: esrp.StringValue(text)})
		}
	}
	for key, n := range numbers {
		if n != 0 {
			members = append(members, esrp.Member{Key: key, Value: esrp.IntValue(n)})
		}
	}
	slices.SortFunc(members, func(a, b esrp.Member) int { return strings.Compare(a.Key, b.Key) })
	return esrp.ObjectValue(members...)
}

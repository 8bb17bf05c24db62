package importer

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/internal/shorten"
)

// converted is a chat as metadata and events.
type converted struct {
	meta    chat.Meta
	events  []event.Event
	omitted map[string]int // parts that events cannot represent, by kind
}

// convert converts a chat to events. Each user message begins a turn. The reference does
// not store how turns end, so each turn ends as done, and a call without output is
// rejected as interrupted.
func convert(p storedChat, roots []string, modified time.Time) (converted, error) {
	messages, err := p.messages()
	if err != nil {
		return converted{}, err
	}
	f := p.fields
	cache, _ := f.Get("prompt-cache").(transitMap)
	meta := chat.Meta{
		ID: p.id, Title: text(f.Get("title")), Named: f.Get("title-custom?") == true, Model: text(f.Get("model")),
		Agent: text(cache.Get("agent")), Variant: text(f.Get("variant")), Trust: f.Get("trust") == true, Roots: roots,
	}
	var ok bool
	if meta.Created, ok = moment(f.Get("created-at")); !ok {
		meta.Created = modified.UTC()
	}
	if meta.Updated, ok = moment(f.Get("updated-at")); !ok {
		meta.Updated = meta.Created
	}
	c := &converter{converted: converted{meta: meta, omitted: map[string]int{}}, at: meta.Created, ids: map[string]bool{}, outputs: pairOutputs(messages)}
	for i, m := range messages {
		c.previousAt = c.at
		if at, ok := m.Created(); ok {
			c.at = at
		}
		c.message(i, m)
	}
	c.usage(f)
	c.endTurn()
	if meta.Title != "" {
		c.at = meta.Updated
		c.emit(event.TitleChanged{Title: meta.Title})
	}
	return c.converted, nil
}

// converter is the state of a conversion.
type converter struct {
	converted
	outputs    outputs
	turn       string // id of the current turn; empty outside turns
	turns      int
	at         time.Time // of the current message
	previousAt time.Time // of the previous message
	ids        map[string]bool

	previous    event.Kind // see event.Begins
	lastMessage event.Seq  // the event that begins the last message that is not a flag
}

func (c *converter) emit(bodies ...event.Body) {
	for _, b := range bodies {
		e := event.Event{Seq: event.Seq(len(c.events) + 1), Turn: c.turn, Time: c.at, Body: b, Begins: event.Begins(c.previous, b)}
		if _, flag := b.(event.Flag); e.Begins && !flag {
			c.lastMessage = e.Seq
		}
		if !event.InterleavesText(b) {
			c.previous = event.KindOf(b)
		}
		c.events = append(c.events, e)
	}
}

// message converts one message (roles: eca-features.md 13.5).
func (c *converter) message(i int, m Record) {
	content := m.fields.Get("content")
	fields, _ := content.(transitMap)
	switch role := m.Role(); role {
	case "user":
		c.user(text(m.fields.Get("content-id")), c.parts(content))
	case "assistant":
		for _, p := range c.parts(content) {
			if p.text != "" {
				c.emit(event.TextDelta{Text: p.text})
			}
		}
	case "reason":
		c.reason(fields)
	case "tool_call":
		c.call(fields, c.outputs.byCall[i])
	case "server_tool_use":
		c.serverCall(fields, c.outputs.byCall[i])
	case "tool_call_output":
		if !c.outputs.matched[i] { // its call is missing, but the output contains the call's fields
			c.call(fields, &m)
		}
	case "server_tool_result":
		if !c.outputs.matched[i] {
			c.serverCall(transitMap{{Key: "id", Value: fields.Get("tool-use-id")}}, &m)
		}
	case "system":
		for _, p := range c.parts(content) {
			c.notice(p.text)
		}
	case "image_generation_call":
		c.notice(c.image(fields))
	case "compact_marker":
		auto, _ := fields.Get("auto?").(bool)
		c.emit(event.Compacted{Auto: auto}) // the summary is the next message
	case "flag":
		c.flag(text(m.fields.Get("content-id")), text(fields.Get("text")))
	default:
		c.omit("message with the role " + role)
	}
}

// omit counts a part that events cannot represent.
func (c *converter) omit(kind string) {
	c.omitted[shorten.Bytes(kind, 60)]++
}

func (c *converter) notice(s string) { c.emit(event.Notice{Text: "\n" + s + "\n"}) }

func (c *converter) user(contentID string, parts []part) {
	msg := event.UserMessage{}
	for _, p := range parts {
		if msg.Text == "" && !p.image {
			msg.Text = strings.TrimSpace(p.text)
		} else {
			msg.Context = append(msg.Context, event.Block{Label: "context", Text: p.text})
		}
	}
	if msg.Text == "" && len(msg.Context) > 0 { // a message needs a text
		msg.Text, msg.Context = msg.Context[0].Text, msg.Context[1:]
	}
	if msg.Text == "" {
		c.omit("empty message of the user")
		return
	}
	at := c.at
	c.at = c.previousAt
	c.endTurn()
	c.at = at
	c.turns++
	c.turn = fmt.Sprintf("imported-%d", c.turns)
	msg.ContentID = cmp.Or(contentID, c.turn)
	c.emit(msg, event.TurnStarted{Model: c.meta.Model, Agent: c.meta.Agent, Variant: c.meta.Variant, Trust: c.meta.Trust})
}

func (c *converter) endTurn() {
	if c.turn != "" {
		c.emit(event.TurnFinished{Reason: event.FinishedDone})
		c.turn = ""
	}
}

// flag converts a flag. It omits a flag before the first message.
func (c *converter) flag(contentID, s string) {
	if c.lastMessage == 0 {
		c.omit("flag before the first message")
		return
	}
	turn := c.turn
	c.turn = "" // flags are set outside turns
	c.emit(event.Flag{ContentID: cmp.Or(contentID, c.unique("", "flag")), Text: s, After: c.lastMessage})
	c.turn, c.at = turn, c.previousAt
}

// reason converts reasoning. Provider data is kept in Opaque without an API, because it is in the
// reference's format, which eca cannot send.
func (c *converter) reason(fields transitMap) {
	id := c.unique(text(fields.Get("id")), "reason")
	end := event.ReasoningFinished{ID: id, ElapsedMS: max(0, integer(fields.Get("total-time-ms")))}
	var opaque transitMap
	for _, f := range fields {
		if f.Key != "id" && f.Key != "text" && f.Key != "total-time-ms" && f.Value != nil {
			opaque = append(opaque, f)
		}
	}
	if raw, err := opaque.MarshalJSON(); err == nil && len(opaque) > 0 {
		end.Opaque = raw
	}
	c.emit(event.ReasoningStarted{ID: id})
	if s := text(fields.Get("text")); s != "" {
		c.emit(event.ReasoningDelta{ID: id, Text: s})
	}
	c.emit(end)
}

// usage adds the usage of the last response to the last turn.
func (c *converter) usage(fields transitMap) {
	u, ok := fields.Get("usage").(transitMap)
	if !ok || c.turn == "" {
		return
	}
	c.emit(event.UsageReported{
		InputTokens: integer(u.Get("last-input-tokens")), OutputTokens: integer(u.Get("last-output-tokens")),
		CacheReadTokens:  integer(u.Get("last-input-cache-read-tokens")),
		CacheWriteTokens: integer(u.Get("last-input-cache-creation-tokens")),
	})
}

// unique returns an id that the chat does not have yet.
func (c *converter) unique(id, fallback string) string {
	if id == "" {
		id = fallback
	}
	unique := id
	for n := 2; c.ids[unique]; n++ {
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	c.ids[unique] = true
	return unique
}

// part is a piece of a message.
type part struct {
	text  string
	image bool
}

// parts returns the parts of content, which is a string, a part or a list of them.
func (c *converter) parts(content any) []part {
	switch content := content.(type) {
	case nil:
		return nil
	case string:
		return []part{{text: content}}
	case []any:
		var out []part
		for _, e := range content {
			out = append(out, c.parts(e)...)
		}
		return out
	case transitMap:
		kind := text(content.Get("type"))
		if kind == "image" {
			return []part{{text: c.image(content), image: true}}
		}
		if s, ok := content.Get("text").(string); ok {
			return []part{{text: s}}
		}
		c.omit("content of the type " + kind)
		return nil
	}
	c.omit("content that is not text")
	return nil
}

// image returns a text that replaces an image, which is not imported.
func (c *converter) image(fields transitMap) string {
	c.omit("image")
	size := base64.StdEncoding.DecodedLen(len(text(fields.Get("base64"))))
	return fmt.Sprintf("[an image that was not imported: %s, about %d bytes]", cmp.Or(text(fields.Get("media-type")), "unknown type"), size)
}

// object returns the JSON of arguments, which must be an object.
func (c *converter) object(v any) json.RawMessage {
	if m, ok := v.(transitMap); ok {
		if raw, err := m.MarshalJSON(); err == nil {
			return raw
		}
	}
	if v != nil {
		c.omit("arguments that are not a map")
	}
	return json.RawMessage("{}")
}

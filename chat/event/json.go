package event

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Version is written into every encoded event. A reader of version n keeps events
// of a version above n as Unknown.
const Version = 1

func (TurnStarted) kind() Kind       { return "turn_started" }
func (UserMessage) kind() Kind       { return "user_message" }
func (SystemPrompt) kind() Kind      { return "system_prompt" }
func (TextDelta) kind() Kind         { return "text" }
func (ReasoningStarted) kind() Kind  { return "reasoning_started" }
func (ReasoningDelta) kind() Kind    { return "reasoning" }
func (ReasoningFinished) kind() Kind { return "reasoning_finished" }
func (ToolProposed) kind() Kind      { return "tool_proposed" }
func (ToolArgsDelta) kind() Kind     { return "tool_args" }
func (ToolJudged) kind() Kind        { return "tool_judged" }
func (ToolStarted) kind() Kind       { return "tool_started" }
func (ToolFinished) kind() Kind      { return "tool_finished" }
func (ToolRejected) kind() Kind      { return "tool_rejected" }
func (UsageReported) kind() Kind     { return "usage" }
func (TitleChanged) kind() Kind      { return "title" }
func (Notice) kind() Kind            { return "notice" }
func (Progress) kind() Kind          { return "progress" }
func (TurnFinished) kind() Kind      { return "turn_finished" }
func (FileChanged) kind() Kind       { return "file_changed" }
func (UndoPoint) kind() Kind         { return "undo_point" }
func (Flag) kind() Kind              { return KindFlag }
func (Compacted) kind() Kind         { return "compacted" }
func (Pruned) kind() Kind            { return "pruned" }
func (Continued) kind() Kind         { return "continued" }
func (ImagesRefused) kind() Kind     { return "images_refused" }
func (Truncated) kind() Kind         { return "truncated" }
func (TasksCleared) kind() Kind      { return "tasks_cleared" }
func (HookStarted) kind() Kind       { return "hook_started" }
func (HookFinished) kind() Kind      { return "hook_finished" }
func (PromptAmended) kind() Kind     { return "prompt_amended" }
func (ToolUpdated) kind() Kind       { return "tool_updated" }
func (Report) kind() Kind            { return "report" }
func (u Unknown) kind() Kind         { return u.Name }

// decoders has one entry per kind; a test keeps it complete.
func decoders() map[Kind]func(json.RawMessage) (Body, error) {
	return map[Kind]func(json.RawMessage) (Body, error){
		"turn_started":       decode[TurnStarted],
		"user_message":       decode[UserMessage],
		"system_prompt":      decode[SystemPrompt],
		"text":               decode[TextDelta],
		"reasoning_started":  decode[ReasoningStarted],
		"reasoning":          decode[ReasoningDelta],
		"reasoning_finished": decode[ReasoningFinished],
		"tool_proposed":      decode[ToolProposed],
		"tool_args":          decode[ToolArgsDelta],
		"tool_judged":        decode[ToolJudged],
		"tool_started":       decode[ToolStarted],
		"tool_finished":      decode[ToolFinished],
		"tool_rejected":      decode[ToolRejected],
		"usage":              decode[UsageReported],
		"title":              decode[TitleChanged],
		"notice":             decode[Notice],
		"progress":           decode[Progress],
		"turn_finished":      decode[TurnFinished],
		"file_changed":       decode[FileChanged],
		"undo_point":         decode[UndoPoint],
		"flag":               decode[Flag],
		"compacted":          decode[Compacted],
		"pruned":             decode[Pruned],
		"continued":          decode[Continued],
		"images_refused":     decode[ImagesRefused],
		"truncated":          decode[Truncated],
		"tasks_cleared":      decode[TasksCleared],
		"hook_started":       decode[HookStarted],
		"hook_finished":      decode[HookFinished],
		"prompt_amended":     decode[PromptAmended],
		"tool_updated":       decode[ToolUpdated],
		"report":             decode[Report],
	}
}

func decode[T Body](raw json.RawMessage) (Body, error) {
	var b T
	err := json.Unmarshal(raw, &b)
	return b, err
}

// EncodeBody returns the version and the JSON of a body, as stored.
func EncodeBody(b Body) (version int, raw []byte, err error) {
	if u, ok := b.(Unknown); ok {
		return Version + 1, u.Raw, nil
	}
	// What a model wrote stays as it is, but for white space: it is sent back like this.
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(b)
	return Version, bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// Stored returns a body as it comes back from the store: JSON of others in it has no white
// space. What is kept in memory must be the same, or the requests to a model change with a
// restart.
func Stored(b Body) Body {
	switch b := b.(type) {
	case ToolJudged:
		b.Arguments, b.Opaque = compact(b.Arguments), compact(b.Opaque)
		return b
	case ReasoningFinished:
		b.Opaque = compact(b.Opaque)
		return b
	}
	return b
}

func compact(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil || out.Len() == len(raw) {
		return raw
	}
	return out.Bytes()
}

// Decoder decodes stored bodies.
type Decoder struct {
	kinds map[Kind]func(json.RawMessage) (Body, error)
}

// NewDecoder returns a Decoder; it is safe for concurrent use.
func NewDecoder() *Decoder { return &Decoder{kinds: decoders()} }

// Body decodes a stored body. What this program does not know becomes Unknown; only
// a body that contradicts its own kind is an error.
func (d *Decoder) Body(kind Kind, version int, raw []byte) (Body, error) {
	dec, ok := d.kinds[kind]
	if !ok || version > Version {
		return Unknown{Name: kind, Raw: append(json.RawMessage(nil), raw...)}, nil
	}
	b, err := dec(raw)
	if err != nil {
		return nil, fmt.Errorf("decode %s event: %w", kind, err)
	}
	return b, nil
}

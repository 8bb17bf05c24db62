package gateway

import (
	"encoding/base64"
	"encoding/json"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/turn"
)

// The members of the bodies are sorted by name.

// chunk is the body of a frame with a piece of the answer.
type chunk struct {
	Delta       any           `json:"delta"`
	Kind        e2a.DeltaKind `json:"delta_kind"`
	Event       string        `json:"event_type,omitempty"` // only for custom deltas
	ReasoningID string        `json:"reasoning_id,omitempty"`
}

func (x *exchange) chunk(c chunk) error { return x.sendFrame(x.Chunk(c)) }

// custom sends a delta of the kind custom with an event type.
func (x *exchange) custom(event string, delta any) error {
	return x.chunk(chunk{Delta: delta, Kind: e2a.DeltaCustom, Event: event})
}

type textDelta struct {
	MessageID string `json:"message_id,omitempty"`
	Text      string `json:"text"`
}

type startDelta struct {
	Agent   string `json:"agent"`
	Model   string `json:"model"`
	Trust   bool   `json:"trust"`
	Variant string `json:"variant"`
}

type titleDelta struct {
	Title string `json:"title"`
}

type compactionDelta struct {
	Auto bool `json:"auto"`
}

type tasksDelta struct {
	Tasks []event.Task `json:"tasks"`
}

// usageDelta is the usage of one request, and how full the context is.
type usageDelta struct {
	CacheRead    int64    `json:"cache_read_tokens"`
	CacheWrite   int64    `json:"cache_write_tokens"`
	ContextLimit int64    `json:"context_limit"`
	Cost         *float64 `json:"cost_usd"`
	Input        int64    `json:"input_tokens"`
	OutputLimit  int64    `json:"output_limit"`
	Output       int64    `json:"output_tokens"`
	Purpose      string   `json:"purpose"`
	TotalCost    *float64 `json:"total_cost_usd"`
}

// Show implements turn.Viewer: it sends the frame for an item (e2a.md 10).
func (x *exchange) Show(c transcript.Change) error {
	switch item := c.Item.(type) {
	case transcript.Prompt:
		return x.custom("user_message", textDelta{item.ContentID, item.Text})
	case transcript.Answer:
		return x.chunk(chunk{Delta: item.Piece, Kind: e2a.DeltaText})
	case transcript.Reasoning:
		if c.Began() && item.Piece == "" || item.Ended {
			return nil
		}
		return x.chunk(chunk{Delta: item.Piece, Kind: e2a.DeltaReasoning, ReasoningID: item.ID})
	case transcript.Call:
		return x.chunk(chunk{Delta: callDelta(item), Kind: e2a.DeltaTool})
	case transcript.Usage:
		return x.custom("usage", usageDelta{
			item.CacheReadTokens, item.CacheWriteTokens, item.ContextLimit, item.Cost, item.InputTokens, item.OutputLimit, item.OutputTokens,
			item.Purpose, item.TotalCost,
		})
	case transcript.Turn:
		if item.End != nil {
			return nil // the final frame contains it
		}
		return x.custom("turn_started", startDelta{item.Agent, item.Model, item.Trust, item.Variant})
	case transcript.Title:
		return x.custom("metadata", titleDelta(item))
	case transcript.Progress:
		return x.custom("progress", textDelta{Text: item.Text})
	case transcript.Notice:
		return x.custom("notice", textDelta{Text: item.Text})
	case transcript.Compaction:
		return x.custom("compacted", compactionDelta{item.Auto})
	case transcript.NoTasks: // other task lists are details of tool calls
		return x.custom("tasks", tasksDelta{[]event.Task{}})
	case transcript.Report, transcript.Hook, transcript.Flag:
		// not part of the protocol
	}
	return nil
}

// toolDelta is a stage of a tool call. Every stage repeats the name of the tool.
type toolDelta struct {
	Arguments     json.RawMessage `json:"arguments,omitempty"`
	ArgumentsText string          `json:"arguments_text,omitempty"`
	Details       *event.Details  `json:"details,omitempty"`
	ElapsedMS     *int64          `json:"elapsed_ms,omitempty"`
	Error         *bool           `json:"error,omitempty"`
	ID            string          `json:"id"`
	Manual        bool            `json:"manual_approval"`
	Message       string          `json:"message,omitempty"`
	Name          string          `json:"name"`
	Origin        string          `json:"origin"`
	Outputs       []e2a.Block     `json:"outputs"`
	Permission    *permission     `json:"permission,omitempty"`
	Phase         string          `json:"phase"`
	Reason        string          `json:"reason,omitempty"`
	Server        string          `json:"server"`
	Summary       string          `json:"summary,omitempty"`
}

type permission struct {
	Reason  string `json:"reason"`
	Rule    string `json:"rule"`
	Verdict string `json:"verdict"`
}

func callDelta(c transcript.Call) toolDelta {
	d := toolDelta{ID: c.CallID, Name: c.Name, Server: c.Server, Origin: c.Origin, Outputs: []e2a.Block{}}
	//exhaustive:enforce
	switch c.Stage {
	case transcript.Announced:
		d.Phase = "prepare"
		if d.ArgumentsText = c.Piece; c.Piece == "" {
			d.Summary = c.Summary
		}
	case transcript.Judged:
		b := c.Judgment
		d.Phase, d.Arguments, d.Manual, d.Summary, d.Details = "run", b.Arguments, b.Manual, b.Summary, b.Details
		d.Permission = &permission{b.Reason, b.Rule, b.Decision}
	case transcript.Running:
		d.Phase, d.Details = "running", c.Updated
	case transcript.Finished:
		b := c.Result
		d.Phase, d.Error, d.ElapsedMS, d.Details = "called", &b.Failed, &b.ElapsedMS, b.Details
		for _, o := range b.Outputs {
			d.Outputs = append(d.Outputs, e2a.TextBlock(o))
		}
		for _, i := range b.Images {
			d.Outputs = append(d.Outputs, e2a.Block{Type: "image", MIMEType: i.MediaType, Data: base64.StdEncoding.EncodeToString(i.Data)})
		}
	case transcript.Rejected:
		d.Phase, d.Reason, d.Message = "rejected", string(c.Rejection.Reason), c.Rejection.Message
	}
	return d
}

type questionDelta struct {
	Freeform   bool             `json:"freeform"`
	Options    []questionOption `json:"options"`
	QuestionID string           `json:"question_id"`
	Text       string           `json:"text"`
	ToolCallID string           `json:"tool_call_id"`
}

type questionOption struct {
	Description string `json:"description"`
	Label       string `json:"label"`
}

// Ask implements turn.Viewer: the caller answers with chat.answer and the id of the question.
func (x *exchange) Ask(q turn.Question) error {
	d := questionDelta{q.Freeform, []questionOption{}, q.ID, q.Text, q.CallID}
	for _, o := range q.Options {
		d.Options = append(d.Options, questionOption{o.Description, o.Label})
	}
	return x.custom("question", d)
}

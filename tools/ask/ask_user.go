// Package ask has the native tool ask_user, with which the model asks the user a question during a
// turn (eca-features.md, section 17).
//
// A question has no time limit; it ends with its turn. If no client can show questions, the tool is
// not offered. Subagents cannot ask, since no client shows their questions.
package ask

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed ask_user.md
var askUserDoc string

// Client shows questions to the user.
type Client interface {
	// Ask waits until the user has answered or ctx ends. The text of an error tells the model why
	// the question cannot be asked.
	Ask(ctx context.Context, q Question) (Answer, error)
}

// Question is a question to the user.
type Question struct {
	ID             string // the same for all clients; set by a Board
	ChatID, CallID string // the tool call that asks
	Text           string
	Options        []Option // may be empty
	Freeform       bool     // the user may also type an answer
}

// Option is one of the answers to choose from.
type Option struct {
	Label       string `json:"label" jsonschema:"The answer, in a few words."`
	Description string `json:"description,omitempty" jsonschema:"The consequence of choosing it."`
	// Grants means that the answer gives eca further permissions. It is not offered to users who
	// may not grant them. The model cannot set it.
	Grants bool `json:"-"`
}

// Answer is the user's answer.
type Answer struct {
	Text      string
	Cancelled bool // the user closed the question
}

type askUserArgs struct {
	Question      string   `json:"question" jsonschema:"The question."`
	Options       []Option `json:"options,omitempty" jsonschema:"Answers to choose from."`
	AllowFreeform bool     `json:"allowFreeform,omitempty" jsonschema:"Whether the user may also type an answer (default: true)."`
}

// Tools returns the tools of this package; empty without a client.
func Tools(c Client) []tools.Tool {
	if c == nil {
		return nil
	}
	return []tools.Tool{lenientTool{tools.Definition[askUserArgs]{
		ReadOnly: true, PrimaryOnly: true, Name: "ask_user", Description: askUserDoc, Preparing: "Preparing question", Progress: "Waiting answer",
		Plan: func(_ context.Context, call tools.Call, a askUserArgs) (tools.Plan, error) {
			if call.Subagent() {
				return tools.Plan{}, errors.New("a subagent cannot ask the user; put the question into your result")
			}
			if strings.TrimSpace(a.Question) == "" {
				return tools.Plan{}, errors.New("INVALID_ARGS: the question is empty")
			}
			return tools.Plan{Summary: "Q: " + headline(a.Question)}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a askUserArgs, _ tools.Sink) (tools.Result, error) {
			answer, err := c.Ask(ctx, Question{
				ChatID: call.ChatID, CallID: call.ID, Text: a.Question, Options: a.Options,
				Freeform: a.AllowFreeform || len(a.Options) == 0, // otherwise the user could not answer
			})
			switch {
			case err != nil:
				return tools.Result{}, fmt.Errorf("the user cannot be asked: %w", err)
			case answer.Cancelled:
				return tools.Text("The user closed the question without an answer."), nil
			}
			return tools.Text("The user answered: " + answer.Text), nil
		},
	}.Build()}}
}

// headline returns the beginning of a text as one short line (eca-protocol.md 7.5).
func headline(text string) string {
	const limit = 57
	return shorten.Text(strings.Join(strings.Fields(text), " "), limit)
}

// lenientTool also accepts arguments in forms that models use although the schema does not allow them.
type lenientTool struct{ tools.Tool }

func (t lenientTool) Plan(ctx context.Context, call tools.Call) (tools.Plan, error) {
	call.Arguments = normalizeArguments(call.Arguments)
	return t.Tool.Plan(ctx, call)
}

func (t lenientTool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	call.Arguments = normalizeArguments(call.Arguments)
	return t.Tool.Run(ctx, call, out)
}

// normalizeArguments converts options that are plain strings, or JSON in a string, to objects, and fills in
// allowFreeform.
func normalizeArguments(raw json.RawMessage) json.RawMessage {
	var m map[string]any
	if json.Unmarshal(raw, &m) != nil || m == nil {
		return raw
	}
	if text, ok := m["options"].(string); ok {
		var list []any
		if json.Unmarshal([]byte(text), &list) == nil {
			m["options"] = list
		}
	}
	if list, ok := m["options"].([]any); ok {
		for i, o := range list {
			switch o := o.(type) {
			case string:
				list[i] = map[string]any{"label": o}
			case map[string]any:
				maps.DeleteFunc(o, func(_ string, v any) bool { return v == nil })
			}
		}
	}
	if m["allowFreeform"] == nil {
		m["allowFreeform"] = true
	}
	out, err := json.Marshal(m)
	if err != nil {
		return raw
	}
	return out
}

// Package inline asks models about text in an editor, outside any chat: Rewrite rewrites
// a selection according to an instruction, Complete proposes text at the cursor. Each is
// a single request without tools, and nothing is stored.
//
// It chooses the model, the part of the file that the model gets, and the part of the
// answer that is text for the editor.
//
// Guarantees: the size of a request is limited, regardless of the size of the file; a code
// fence around the answer never reaches the editor; an incomplete answer is an error; when
// ctx is done, the request to the provider is closed immediately.
//
// It does not depend on wire formats. It knows the editor's unsaved text only from its arguments.
package inline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
)

// Deps are the dependencies of an Engine. All fields are required.
type Deps struct {
	Models  chat.Models
	Machine chat.Machine
	Config  func() *config.Loaded
	Roots   func() []string // workspace folders, for relative paths
	Now     func() time.Time
}

// Engine makes rewrites and completions. It is stateless and safe for concurrent use.
type Engine struct{ deps Deps }

// New returns an engine.
func New(deps Deps) *Engine { return &Engine{deps} }

// maxContext is the maximum size of the part of a file that is sent, in bytes.
const maxContext = 256 << 10

// maxAnswer is the maximum size of an answer, in bytes.
const maxAnswer = 4 << 20

// render fills in the variables of a prompt. An invalid template is sent unchanged.
func (e *Engine) render(prompt string, more template.Vars) string {
	vars := chat.PromptVars(e.deps.Machine, e.deps.Config().ToolCall.ShellCommand.Path, e.deps.Roots())
	maps.Copy(vars, more)
	text, _ := template.Text(prompt, vars)
	return text
}

// contextBudget returns the maximum size of the part of a file that a model gets, in bytes: half
// of its context at four bytes per token, so that an answer of the same length fits too.
func contextBudget(m chat.Model) int {
	if m.Limit.Context > 0 {
		return int(min(maxContext, m.Limit.Context*2))
	}
	return maxContext
}

// request builds the request for a model.
func request(purpose llm.Purpose, m chat.Model, system, text string) llm.Request {
	msg := llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text{Text: text}}}
	return llm.Request{
		Purpose: purpose, Model: m.Name, System: system, Messages: []llm.Message{msg},
		MaxOutput: m.Limit.Output, Context: m.Limit.Context, CacheKey: string(purpose), Headers: m.Headers, Extra: m.Extra,
	}
}

// block marks a text as context, so that the model can tell it from the user's instruction.
func block(label, text string) string {
	quoted, _ := json.Marshal(label) // a string always encodes
	return fmt.Sprintf("<context label=%s>\n%s\n</context>", quoted, strings.TrimRight(text, "\r\n"))
}

// streamAnswer streams a model's answer. It ends without an error only if the answer is complete.
func streamAnswer(ctx context.Context, client llm.Model, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var stop llm.StopReason
		size := 0
		for d, err := range client.Stream(ctx, req) {
			if size += len(d.Text); err == nil && size > maxAnswer {
				err = fmt.Errorf("the model's answer is longer than %d bytes", maxAnswer)
			}
			if err != nil {
				yield(llm.Delta{}, err)
				return
			}
			if d.Kind == llm.StopDelta {
				stop = d.Stop
			}
			if !yield(d, nil) {
				return
			}
		}
		if err := incompleteError(stop); err != nil {
			yield(llm.Delta{}, err)
		}
	}
}

// incompleteError returns an error unless stop is the regular end of an answer.
func incompleteError(stop llm.StopReason) error {
	switch stop {
	case llm.StopEnd:
		return nil
	case llm.StopLength:
		return errors.New("the answer reached the model's output limit and is not complete")
	case llm.StopRefusal:
		return errors.New("the model refused to answer")
	case llm.StopToolCalls:
		return errors.New("the model called a tool instead of answering")
	}
	return errors.New("the model's answer ended without a stop reason")
}

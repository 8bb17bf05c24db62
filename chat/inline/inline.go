// Package inline asks models about text in an editor, outside any chat: Rewrite
// replaces a selection as the user says, Complete proposes text at the cursor. Each is
// one request, without tools and without memory; nothing is stored.
//
// It owns which model is asked, what it is shown of the file, and what of its answer
// is text for the editor.
//
// Guarantees: a request is bounded, however large the file; a code fence around the
// answer never reaches the editor, not even for a moment; an answer that is not
// complete is an error; when ctx ends, the request to the provider is closed at once.
//
// It knows nothing of wire formats and does not know the editor's unsaved text beyond
// what it is given.
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

// Deps is what an Engine needs. All fields are required.
type Deps struct {
	Models  chat.Models
	Machine chat.Machine
	Config  func() *config.Loaded
	Roots   func() []string // workspace folders, for relative paths
	Now     func() time.Time
}

// Engine answers requests. It has no state of its own and is safe for concurrent use.
type Engine struct{ deps Deps }

// New returns an engine.
func New(deps Deps) *Engine { return &Engine{deps} }

// maxContext bounds what is sent of a file around the selection or the cursor, in
// bytes.
const maxContext = 256 << 10

// maxAnswer bounds an answer, in bytes: no editor waits for more.
const maxAnswer = 4 << 20

// render fills in a prompt; an invalid template is sent as it was written.
func (e *Engine) render(prompt string, more template.Vars) string {
	vars := chat.PromptVars(e.deps.Machine, e.deps.Config().ToolCall.ShellCommand.Path, e.deps.Roots())
	maps.Copy(vars, more)
	text, _ := template.Text(prompt, vars)
	return text
}

// contextBudget is how many bytes of a file a model may be shown: half of its context
// at the usual four bytes per token, so that an answer as long fits too.
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

// block frames material so that the model can tell it from what the user says.
func block(label, text string) string {
	quoted, _ := json.Marshal(label) // a string always encodes
	return fmt.Sprintf("<context label=%s>\n%s\n</context>", quoted, strings.TrimRight(text, "\r\n"))
}

// ask streams a model's answer. It ends without an error only if the answer is
// complete.
func ask(ctx context.Context, client llm.Model, req llm.Request) iter.Seq2[llm.Delta, error] {
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
		if err := incomplete(stop); err != nil {
			yield(llm.Delta{}, err)
		}
	}
}

// incomplete says what is wrong with an answer that ended for a reason.
func incomplete(stop llm.StopReason) error {
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
	return errors.New("the model's answer ended without saying why")
}

package inline

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/workspace"
)

// CompletionTimeout is the time limit of a completion (eca-features.md, Appendix B).
const CompletionTimeout = 30 * time.Second

// ErrNothing is returned if the model has nothing to propose.
var ErrNothing = errors.New("no completion at this position")

// ErrPosition is returned if a cursor is not in its document.
var ErrPosition = errors.New("the position is not in the document")

// Cursor is a position in a document.
type Cursor struct {
	Document  string // the editor's text, saved or not
	Line      int    // 1-based
	Character int    // 1-based, in code points; values beyond the end of the line mean its end
	Path      string // path or URI of the document; empty if it has none
}

// Complete returns the text that a model proposes at a cursor. It returns ErrPosition, ErrNothing,
// the error of ctx, an *llm.Error of kind ErrTimeout after CompletionTimeout, or the error that prevented
// the request or the answer.
func (e *Engine) Complete(ctx context.Context, c Cursor) (string, error) {
	at, ok := offset(c.Document, c.Line, c.Character)
	if !ok {
		return "", fmt.Errorf("%w: %d:%d of %d lines", ErrPosition, c.Line, c.Character, strings.Count(c.Document, "\n")+1)
	}
	m, err := e.completionModel()
	if err != nil {
		return "", err
	}
	limited, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	var out strings.Builder
	var strip stripper
	var failed *llm.Error // the error that caused the latest retry; nil without one
	for d, err := range streamAnswer(limited, m.Client, e.completion(m, c, at)) {
		switch {
		case err != nil && ctx.Err() == nil && limited.Err() != nil:
			return "", timeoutError(m, failed)
		case err != nil:
			return "", err
		case d.Kind == llm.TextDelta:
			out.WriteString(strip.write(d.Text))
		case d.Kind == llm.RetryDelta:
			failed = d.Err
			if d.Err.Kind == llm.ErrNetwork { // a retry takes too long for a user who is typing
				return "", d.Err
			}
		}
	}
	out.WriteString(strip.end())
	if strings.TrimSpace(out.String()) == "" {
		return "", ErrNothing
	}
	return out.String(), nil
}

// completionModel returns the configured completion model. If the user has not configured one and the
// built-in one cannot be used, it returns the default model. A model that the user chose is never
// replaced, because the text would be sent to another provider.
func (e *Engine) completionModel() (chat.Model, error) {
	cfg := e.deps.Config()
	m, err := e.deps.Models.Resolve(cfg.Completion.Model, "")
	if err == nil {
		return m, nil
	}
	if origin, _ := cfg.Origin("completion", "model"); origin.IsDefault() {
		return e.deps.Models.Resolve("", "")
	}
	return chat.Model{}, err
}

// completion builds the request. Reasoning is off because it is too slow for a user who is typing.
func (e *Engine) completion(m chat.Model, c Cursor, at int) llm.Request {
	budget := contextBudget(m)
	// The text before the cursor is more important for a completion.
	before := lastPart(c.Document[:at], budget/4*3)
	after := firstPart(c.Document[at:], budget/4)
	text := "<before>" + before + "</before><after>" + after + "</after>"
	if c.Path != "" {
		text = "File: " + workspace.Abs(e.deps.Roots(), workspace.FromURI(c.Path)) + "\n" + text
	}
	return request(llm.PurposeCompletion, m, e.render(e.deps.Config().Prompts.Completion, nil), text)
}

// timeoutError returns the error for a completion that took too long.
func timeoutError(m chat.Model, failed *llm.Error) error {
	out := &llm.Error{Kind: llm.ErrTimeout, Message: fmt.Sprintf("%s gave no completion within %s", m.ID, CompletionTimeout)}
	if failed != nil {
		out.Message += ": " + failed.Message
		out.Cause = failed
	}
	return out
}

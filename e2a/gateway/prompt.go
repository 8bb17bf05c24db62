package gateway

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/e2a"
)

// prompt is what the user says: text, and what it points at.
type prompt struct {
	text    string
	refs    []contexts.Ref
	leftOut []string // attachments that no model could use, and why
}

// seeContext is said for a prompt that has nothing but attachments.
const seeContext = "(see attached context)"

// promptOf reads the content blocks or the text of an envelope (e2a.md 4, 5.8). What cannot
// be used is named to the model in the prompt and to the user by leftOut.
func promptOf(ctx context.Context, e e2a.Envelope) (prompt, error) {
	method := e2a.MethodPrompt
	e.Method = &method // chat.send says it in the same words
	blocks, ok := e2a.ACPPromptParams(e)["prompt"].([]any)
	if !ok {
		if s, is := e.Params["prompt"].(string); is { // what plain clients send
			blocks = []any{map[string]any{"type": "text", "text": s}}
		}
	}
	var p prompt
	var texts []string
	for i, b := range blocks {
		read, err := readBlock(ctx, b)
		if err != nil {
			read.leftOut = fmt.Sprintf("prompt[%d]: %v", i, err)
		}
		if read.text != "" {
			texts = append(texts, read.text)
		}
		if read.ref.Type != "" {
			p.refs = append(p.refs, read.ref)
		}
		if read.leftOut != "" {
			p.leftOut = append(p.leftOut, read.leftOut)
		}
	}
	p.text = strings.TrimSpace(strings.Join(texts, "\n"))
	for _, key := range []string{"text", "content", "query"} {
		if s, ok := e.Params[key].(string); ok && p.text == "" {
			p.text = strings.TrimSpace(s)
		}
	}
	switch {
	case p.text != "":
	case len(p.refs) > 0:
		p.text = seeContext
	case len(p.leftOut) > 0:
		return p, fail(codeBadParams, "the prompt has nothing that can be used: %s", strings.Join(p.leftOut, "; "))
	default:
		return p, fail(codeBadParams, "the prompt says nothing: params.prompt, content_blocks, text, content and query are empty")
	}
	if len(p.leftOut) > 0 {
		p.refs = append(p.refs, contexts.Ref{
			Type: "text", Label: "attachments", Text: "The user attached what you cannot see: " + strings.Join(p.leftOut, "; ") + ".",
		})
	}
	return p, nil
}

package turn

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/contexts"
)

// prompt is the content of a prompt: its text, and contexts made from attachments and links.
type prompt struct {
	text    string
	refs    []contexts.Ref
	leftOut []string // unusable attachments with the reasons
}

// notice tells the user which attachments were left out. It is empty if all were used.
func (p prompt) notice() string {
	if len(p.leftOut) == 0 {
		return ""
	}
	return "Left out of the prompt: " + strings.Join(p.leftOut, "; ") + "\n\n"
}

// seeContext is the text of a prompt that contains only attachments.
const seeContext = "(see attached context)"

// readPrompt reads the content blocks of a request (e2a.md 5.8). Unusable attachments are listed
// for the model in the prompt and for the user in leftOut.
func readPrompt(ctx context.Context, r Request) (prompt, error) {
	var p prompt
	var texts []string
	for i, b := range r.Blocks {
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
	if p.text = strings.TrimSpace(strings.Join(texts, "\n")); p.text == "" {
		p.text = strings.TrimSpace(r.Text)
	}
	switch {
	case p.text != "":
	case len(p.refs) > 0:
		p.text = seeContext
	case len(p.leftOut) > 0:
		return p, Errorf(BadParams, "the prompt has no usable content: %s", strings.Join(p.leftOut, "; "))
	default:
		return p, Errorf(BadParams, "the prompt is empty")
	}
	if len(p.leftOut) > 0 {
		p.refs = append(p.refs, contexts.Ref{
			Type: "text", Label: "attachments", Text: "The user attached content that you cannot see: " + strings.Join(p.leftOut, "; ") + ".",
		})
	}
	return p, nil
}

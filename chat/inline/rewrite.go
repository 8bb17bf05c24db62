package inline

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/template"
	"github.com/seed-dec29ce4/eca/llm"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxSelection is the maximum size of the selection and the instruction together, in bytes. They are
// always sent completely.
const maxSelection = 1 << 20

// Selection is a piece of text and the instruction for its rewrite.
type Selection struct {
	Text        string
	Instruction string // the user's
	Path        string // path or URI of its file; empty if it has none
	FirstLine   int    // in the file, 1-based, inclusive
	LastLine    int
}

// Kind of a Step.
type Kind uint8

// Kinds of steps, with the fields that they set. Started and Finished occur once each.
const (
	_         Kind = iota
	Started        // the model begins to answer
	Reasoning      // the model begins to reason
	Text           // sets Text, which is not empty
	Finished       // sets Elapsed
)

// Step is one step of a rewrite.
type Step struct {
	Kind    Kind
	Text    string
	Elapsed time.Duration
}

// Rewriting is a prepared rewrite. Stream makes the request.
type Rewriting struct {
	Model string // full id

	client    llm.Model
	req       llm.Request
	keepFence bool   // the selection itself begins with a code fence
	ending    string // line breaks at the end of the selection
	now       func() time.Time
}

// Rewrite chooses the model and reads the file; it does not wait for the model. If the file cannot
// be read, only the selection is sent.
func (e *Engine) Rewrite(sel Selection) (*Rewriting, error) {
	if n := len(sel.Text) + len(sel.Instruction); n > maxSelection {
		return nil, fmt.Errorf("the selection has %d bytes; a rewrite takes up to %d", n, maxSelection)
	}
	cfg := e.deps.Config()
	m, err := e.deps.Models.Resolve(cfg.Rewrite.Model, "")
	if err != nil {
		return nil, err
	}
	req := request(llm.PurposeRewrite, m, e.rewriteSystem(sel, cfg.Config, m), sel.Instruction)
	req.Reasoning, req.Extra = m.Reasoning, m.Payload("")
	return &Rewriting{
		Model: m.ID, client: m.Client, req: req, now: e.deps.Now,
		keepFence: strings.HasPrefix(strings.TrimLeft(sel.Text, " \t\r\n"), "```"),
		ending:    sel.Text[len(strings.TrimRight(sel.Text, "\r\n")):],
	}, nil
}

// rewriteSystem returns the system prompt: the configured text, followed by the parts that the text
// does not refer to with variables (eca-features.md 22).
func (e *Engine) rewriteSystem(sel Selection, cfg *config.Config, m chat.Model) string {
	path, around, label := "", "", "selection"
	if sel.Path != "" {
		path = workspace.Abs(e.deps.Roots(), workspace.FromURI(sel.Path))
		around = surroundings(path, sel, cfg, m)
		label += " in " + path
	}
	prompt := cfg.Prompts.Rewrite
	system := e.render(prompt, template.Vars{"text": sel.Text, "rangeText": sel.Text, "path": path, "fullText": around})
	reads := func(...string) bool { return false }
	if t, err := template.Parse(prompt); err == nil {
		reads = t.Reads
	}
	if around != "" && !reads("fullText") {
		system += "\n\n" + block(path, around)
	}
	if !reads("text", "rangeText") {
		system += "\n\n" + block(label, sel.Text)
	}
	return system
}

func surroundings(path string, sel Selection, cfg *config.Config, m chat.Model) string {
	file, ok := readFile(path)
	if !ok {
		return ""
	}
	return window(file, sel.FirstLine, sel.LastLine, cfg.Rewrite.FullFileMaxLines, contextBudget(m))
}

// errNoText is returned if the answer is empty. An empty code fence is not an empty answer: it deletes
// the selection.
var errNoText = errors.New("the model answered without text")

// Stream asks the model and yields the rewritten selection. It ends with
// Finished or with exactly one error. The text ends with the line breaks that the
// selection ended with, unless it is empty.
func (r *Rewriting) Stream(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		began := r.now()
		a := answer{strip: stripper{keepFence: r.keepFence}}
		for d, err := range streamAnswer(ctx, r.client, r.req) {
			if err != nil {
				yield(Step{}, err)
				return
			}
			for _, step := range a.steps(d) {
				if !yield(step, nil) {
					return
				}
			}
		}
		rest := a.strip.end()
		switch {
		case a.strip.wroteText:
			rest += r.ending
		case a.strip.fence == 0:
			yield(Step{}, errNoText)
			return
		}
		if rest != "" && !yield(Step{Kind: Text, Text: rest}, nil) {
			return
		}
		yield(Step{Kind: Finished, Elapsed: r.now().Sub(began)}, nil)
	}
}

// answer converts deltas to steps.
type answer struct {
	strip     stripper
	started   bool
	reasoning bool
}

func (a *answer) steps(d llm.Delta) (out []Step) {
	switch d.Kind {
	case llm.TextDelta, llm.ReasoningStart, llm.ReasoningDelta:
	case llm.ReasoningEnd:
		a.reasoning = false
		return nil
	default:
		return nil
	}
	if !a.started {
		a.started = true
		out = append(out, Step{Kind: Started})
	}
	switch {
	case d.Kind != llm.TextDelta && !a.reasoning:
		a.reasoning = true
		out = append(out, Step{Kind: Reasoning})
	case d.Kind == llm.TextDelta:
		a.reasoning = false
		if text := a.strip.write(d.Text); text != "" {
			out = append(out, Step{Kind: Text, Text: text})
		}
	}
	return out
}

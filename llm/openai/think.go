package openai

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// Think says how reasoning is marked inside the text of servers that do not separate it
// (eca-features 4.1, thinkTagStart and thinkTagEnd).
type Think struct {
	Start, End string

	// Steady cuts text where the suite of eca-recorded expects it: what may be the
	// beginning of a tag is kept back, and everything may, and usage is passed on
	// when it arrives. Otherwise only text that does begin a tag waits.
	Steady bool
}

// DefaultThink has the tags that most open models use.
func DefaultThink() Think { return Think{Start: "<think>", End: "</think>"} }

// thinkText separates reasoning from text. Reasoning precedes all text; a later tag
// is something that the model writes about.
type thinkText struct {
	Think
	place place
	began bool   // some reasoning was returned
	held  string // may be the beginning of a tag
}

// plain says that all text is certain at once.
func (t *thinkText) plain() bool { return t.place == inText && !t.Steady }

type place uint8

const (
	beforeText place = iota
	inReasoning
	inText
)

// thinkPiece is text or reasoning; end says that the reasoning ends with it.
type thinkPiece struct {
	text      string
	reasoning bool
	end       bool
}

// write takes the next piece of text and returns what is certain.
func (t *thinkText) write(text string) (out []thinkPiece) {
	t.held += text
	if t.place == beforeText {
		switch before, after, found := strings.Cut(t.held, t.Start); {
		case found && strings.TrimSpace(before) == "":
			t.place, t.held = inReasoning, after
		case strings.TrimSpace(t.held[:t.certain(t.Start)]) != "":
			t.place = inText
		}
	}
	if t.place == inReasoning {
		if before, after, found := strings.Cut(t.held, t.End); found {
			out = append(out, thinkPiece{text: before, reasoning: true, end: true})
			t.place, t.held = inText, after
		} else if n := t.certain(t.End); t.began || strings.TrimSpace(t.held[:n]) != "" {
			out = append(out, thinkPiece{text: t.held[:n], reasoning: true})
			t.began, t.held = true, t.held[n:]
		}
	}
	if t.place == inText {
		n := len(t.held)
		if t.Steady {
			n = t.certain(t.Start)
		}
		if n > 0 {
			out = append(out, thinkPiece{text: t.held[:n]})
			t.held = t.held[n:]
		}
	}
	return out
}

// rest returns what was kept back; nothing of the answer's text follows.
func (t *thinkText) rest() thinkPiece {
	p := thinkPiece{text: t.held, reasoning: t.place == inReasoning, end: t.place == inReasoning}
	t.held, t.place = "", inText
	return p
}

// certain returns how much of the kept text cannot belong to a tag.
func (t *thinkText) certain(tag string) int {
	n := len(t.held)
	for most := min(n, len(tag)-1); most > 0; most-- {
		if strings.HasPrefix(tag, t.held[n-most:]) || t.Steady && validCut(t.held, n-most) {
			return n - most
		}
	}
	return n
}

// validCut says whether text can be cut there without cutting a character.
func validCut(text string, at int) bool { return text[at]&0xC0 != 0x80 }

// tagged is the Opaque of reasoning that stood between tags: it goes back to the model as
// it came.
type tagged struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

func (t *thinkText) opaque() json.RawMessage {
	raw, _ := json.Marshal(tagged{t.Start, t.End}) // strings always encode
	return raw
}

// tagsOf returns the tags between which reasoning stood, if it did.
func tagsOf(r llm.Reasoning) (tags tagged, ok bool) {
	return tags, len(r.Opaque) > 0 && json.Unmarshal(r.Opaque, &tags) == nil && tags.Start != ""
}

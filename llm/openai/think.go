package openai

import (
	"encoding/json"
	"strings"

	"github.com/seed-dec29ce4/eca/llm"
)

// Think has the tags that mark reasoning in the text of servers that do not separate it
// (eca-features.md 4.1, thinkTagStart and thinkTagEnd).
type Think struct {
	Start, End string

	// ReferenceSplits splits text where the reference's own tests expect it: the last bytes, one less
	// than a tag has, are always held back, and chatStream passes on usage when it arrives. Otherwise,
	// only text that matches the beginning of a tag is held back.
	ReferenceSplits bool
}

// DefaultThink has the tags that most open models use.
func DefaultThink() Think { return Think{Start: "<think>", End: "</think>"} }

// thinkText separates reasoning from text. Reasoning precedes all text; a later tag is part of the
// text.
type thinkText struct {
	Think
	state   state
	began   bool   // some reasoning has been returned
	pending string // text that may be the beginning of a tag
}

// plain reports whether all text can be passed on immediately.
func (t *thinkText) plain() bool { return t.state == inText && !t.ReferenceSplits }

type state uint8

const (
	beforeText state = iota
	inReasoning
	inText
)

// thinkPiece is a piece of text or reasoning; end is set if the reasoning ends with it.
type thinkPiece struct {
	text      string
	reasoning bool
	end       bool
}

// write adds the next piece of text and returns the pieces that are certain.
func (t *thinkText) write(text string) (out []thinkPiece) {
	t.pending += text
	if t.state == beforeText {
		switch before, after, found := strings.Cut(t.pending, t.Start); {
		case found && strings.TrimSpace(before) == "":
			t.state, t.pending = inReasoning, after
		case strings.TrimSpace(t.pending[:t.certainLength(t.Start)]) != "":
			t.state = inText
		}
	}
	if t.state == inReasoning {
		if before, after, found := strings.Cut(t.pending, t.End); found {
			out = append(out, thinkPiece{text: before, reasoning: true, end: true})
			t.state, t.pending = inText, after
		} else if n := t.certainLength(t.End); t.began || strings.TrimSpace(t.pending[:n]) != "" {
			out = append(out, thinkPiece{text: t.pending[:n], reasoning: true})
			t.began, t.pending = true, t.pending[n:]
		}
	}
	if t.state == inText {
		n := len(t.pending)
		if t.ReferenceSplits {
			n = t.certainLength(t.Start)
		}
		if n > 0 {
			out = append(out, thinkPiece{text: t.pending[:n]})
			t.pending = t.pending[n:]
		}
	}
	return out
}

// rest returns the text that was held back. It is called after the last text of the answer.
func (t *thinkText) rest() thinkPiece {
	p := thinkPiece{text: t.pending, reasoning: t.state == inReasoning, end: t.state == inReasoning}
	t.pending, t.state = "", inText
	return p
}

// certainLength returns how many bytes of the pending text cannot belong to a tag.
func (t *thinkText) certainLength(tag string) int {
	n := len(t.pending)
	for size := min(n, len(tag)-1); size > 0; size-- {
		if strings.HasPrefix(tag, t.pending[n-size:]) || t.ReferenceSplits && validCut(t.pending, n-size) {
			return n - size
		}
	}
	return n
}

// validCut reports whether text can be split at an index without splitting a character.
func validCut(text string, at int) bool { return text[at]&0xC0 != 0x80 }

// thinkTags is the Opaque of reasoning that was between tags. The reasoning is sent back to the model
// between the same tags.
type thinkTags struct {
	Start string `json:"start"`
	End   string `json:"end"`
}

func (t *thinkText) opaque() json.RawMessage {
	raw, _ := json.Marshal(thinkTags{t.Start, t.End}) // strings always encode
	return raw
}

// tagsOf returns the tags that were around reasoning; ok is false without tags.
func tagsOf(r llm.Reasoning) (tags thinkTags, ok bool) {
	return tags, len(r.Opaque) > 0 && json.Unmarshal(r.Opaque, &tags) == nil && tags.Start != ""
}

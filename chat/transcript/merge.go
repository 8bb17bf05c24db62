package transcript

// Merger joins the changes of a streamed text into one change, for callers that show a finished part
// of a chat. It drops progress, which is out of date by then, and passes on all other changes. A change
// that may occur inside a run of text comes before that text. The zero value is ready to use.
type Merger struct {
	pending Change // an answer or a block of reasoning that may still grow; Item is nil if there is nothing to merge
	text    []byte // its pieces
}

// Add adds a change and returns the changes that are complete.
func (m *Merger) Add(c Change) []Change {
	piece := pieceOf(c.Item)
	switch item := c.Item.(type) {
	case Progress:
		return nil
	case Answer:
		if piece == "" {
			return nil // an answer without new text
		}
	case Reasoning:
		if piece == "" && !c.Began() && !item.Ended {
			return nil
		}
	default:
	}
	if c.interleaves {
		return []Change{c}
	}
	if piece == "" {
		return append(m.Flush(), c)
	}
	var done []Change
	if m.pending.Item == nil || m.pending.ID != c.ID {
		done = m.Flush()
	}
	m.pending, m.text = c, append(m.text, piece...)
	return done
}

// Flush returns the merged text so far, if any.
func (m *Merger) Flush() []Change {
	c, text := m.pending, string(m.text)
	m.pending, m.text = Change{}, m.text[:0]
	switch item := c.Item.(type) {
	case Answer:
		item.Piece = text
		c.Item = item
	case Reasoning:
		item.Piece = text
		c.Item = item
	default:
	}
	if text == "" {
		return nil
	}
	return []Change{c}
}

// pieceOf returns what a change adds to a streamed text.
func pieceOf(i Item) string {
	switch i := i.(type) {
	case Answer:
		return i.Piece
	case Reasoning:
		return i.Piece
	default:
		return ""
	}
}

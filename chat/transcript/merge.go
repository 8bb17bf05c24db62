package transcript

// Merger joins the changes of a streamed text into one change, for callers that show a finished part
// of a chat. It drops progress, which is out of date by then, and passes on all other changes. The zero
// value is ready to use.
type Merger struct {
	waiting Change // an answer or a block of reasoning that may still grow; Item is nil if there is nothing to merge
	shown   int    // bytes of its text that were shown before
}

// Add adds a change and returns the changes that are complete.
func (m *Merger) Add(c Change) []Change {
	piece, text := pieceOf(c.Item)
	switch item := c.Item.(type) {
	case Progress:
		return nil
	case Answer:
		if piece == "" {
			return nil // nothing was added
		}
	case Reasoning:
		if piece == "" && !c.Began() && !item.Ended {
			return nil
		}
	default:
	}
	if piece == "" {
		return append(m.Flush(), c)
	}
	var done []Change
	if m.waiting.Item == nil || m.waiting.ID != c.ID {
		done = m.Flush()
		m.shown = len(text) - len(piece)
	}
	m.waiting = c
	return done
}

// Flush returns the merged text so far, if any.
func (m *Merger) Flush() []Change {
	c := m.waiting
	m.waiting = Change{}
	switch item := c.Item.(type) {
	case Answer:
		item.Piece = item.Text[m.shown:]
		c.Item = item
	case Reasoning:
		item.Piece = item.Text[m.shown:]
		c.Item = item
	default:
	}
	if text, _ := pieceOf(c.Item); text == "" {
		return nil
	}
	return []Change{c}
}

// pieceOf returns the added piece and the whole text of a streamed text.
func pieceOf(i Item) (piece, text string) {
	switch i := i.(type) {
	case Answer:
		return i.Piece, i.Text
	case Reasoning:
		return i.Piece, i.Text
	default:
		return "", ""
	}
}

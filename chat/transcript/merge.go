package transcript

// Merger joins the changes of a text that grows into one, for those who show the past. Other
// changes pass as they are; those of progress, which is over, do not. The zero value is
// ready.
type Merger struct {
	waiting Change // an answer or a block of reasoning that may grow; otherwise without an Item
	shown   int    // bytes of its text that came before it waited
}

// Add returns the changes that are complete now that another has come.
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

// Flush returns the text that has grown until now, if there is one.
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

// pieceOf returns what was added to a text that grows, and the text.
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

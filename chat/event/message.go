package event

// KindFlag is the kind of Flag, which the store places by itself.
const KindFlag Kind = "flag"

// Begins says whether a message begins with an event that follows one of the kind
// previous. Messages are what histories are counted and cut by: what the user said, a
// run of the model's text, a block of reasoning, a tool call, a tool's result, a flag, a
// compaction.
// Everything else belongs to the message in front of it.
func Begins(previous Kind, b Body) bool {
	switch b.(type) {
	case UserMessage, ReasoningStarted, ToolProposed, ToolFinished, ToolRejected, Flag, Compacted:
		return true
	case TextDelta:
		return previous != TextDelta{}.kind()
	}
	return false
}

// Aside says whether an event may stand inside a run of text without ending it.
func Aside(b Body) bool {
	switch b := b.(type) {
	case Progress, ToolUpdated, TitleChanged, Flag:
		return true
	case UsageReported:
		return b.Purpose != ""
	}
	return false
}

// Name returns the id by which clients name the message that an event begins; empty
// if they can not.
func Name(b Body) string {
	switch b := b.(type) {
	case UserMessage:
		return b.ContentID
	case ReasoningStarted:
		return b.ID
	case ToolProposed:
		return b.CallID
	case ToolFinished:
		return b.CallID
	case ToolRejected:
		return b.CallID
	case Flag:
		return b.ContentID
	case Compacted:
		return CompactionName
	}
	return ""
}

// CompactionName is the name of all compactions (eca-protocol 4.8).
const CompactionName = "lastCompaction"

// Joined returns the delta that says what two pieces of one delta say.
func Joined(a, b Body) Body {
	switch a := a.(type) {
	case TextDelta:
		if b, ok := b.(TextDelta); ok {
			a.Text += b.Text
			return a
		}
	case ReasoningDelta:
		if b, ok := b.(ReasoningDelta); ok {
			a.Text += b.Text
			return a
		}
	case ToolArgsDelta:
		if b, ok := b.(ToolArgsDelta); ok {
			a.Text += b.Text
			return a
		}
	}
	return b
}

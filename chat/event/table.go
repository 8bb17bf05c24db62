package event

import "encoding/json"

// row describes one event type. Each type has its row in this file, as the method that makes it a
// Body; All lists the types. The other files handle all events alike.
type row struct {
	kind   Kind
	decode func(json.RawMessage) (Body, error)

	// begins is set if the event begins a message. Messages are the units in which chats are counted
	// and cut: a user message, a run of the model's text, a block of reasoning, a tool call, the
	// result of a call, a flag, or a compaction. Any other event belongs to the preceding message.
	begins bool
	name   string // id of the message that it begins, for clients; empty if it does not have one

	interleaves bool // it may occur inside a run of text without ending it
	volatile    bool // it is shown, but not stored
}

// CompactionName is the id of each compaction (eca-protocol 4.8).
const CompactionName = "lastCompaction"

// KindFlag is the kind of Flag. The store positions a flag after the message that it marks.
const KindFlag Kind = "flag"

func (TurnStarted) row() row { return row{kind: "turn_started", decode: decode[TurnStarted]} }

func (b UserMessage) row() row {
	return row{kind: "user_message", decode: decode[UserMessage], begins: true, name: b.ContentID}
}

func (SystemPrompt) row() row { return row{kind: "system_prompt", decode: decode[SystemPrompt]} }

// A TextDelta begins a message unless it continues a run of text: see Begins.
func (TextDelta) row() row { return row{kind: "text", decode: decode[TextDelta]} }

func (b ReasoningStarted) row() row {
	return row{kind: "reasoning_started", decode: decode[ReasoningStarted], begins: true, name: b.ID}
}

func (ReasoningDelta) row() row { return row{kind: "reasoning", decode: decode[ReasoningDelta]} }

func (ReasoningFinished) row() row {
	return row{kind: "reasoning_finished", decode: decode[ReasoningFinished]}
}

func (b ToolProposed) row() row {
	return row{kind: "tool_proposed", decode: decode[ToolProposed], begins: true, name: b.CallID}
}

func (ToolArgsDelta) row() row { return row{kind: "tool_args", decode: decode[ToolArgsDelta]} }

func (ToolJudged) row() row { return row{kind: "tool_judged", decode: decode[ToolJudged]} }

func (ToolStarted) row() row { return row{kind: "tool_started", decode: decode[ToolStarted]} }

func (ToolUpdated) row() row {
	return row{kind: "tool_updated", decode: decode[ToolUpdated], interleaves: true}
}

func (b ToolFinished) row() row {
	return row{kind: "tool_finished", decode: decode[ToolFinished], begins: true, name: b.CallID}
}

func (b ToolRejected) row() row {
	return row{kind: "tool_rejected", decode: decode[ToolRejected], begins: true, name: b.CallID}
}

func (b UsageReported) row() row {
	return row{kind: "usage", decode: decode[UsageReported], interleaves: b.Purpose != ""}
}

func (TitleChanged) row() row {
	return row{kind: "title", decode: decode[TitleChanged], interleaves: true}
}

func (Notice) row() row { return row{kind: "notice", decode: decode[Notice]} }

func (Progress) row() row {
	return row{kind: "progress", decode: decode[Progress], interleaves: true, volatile: true}
}

func (TurnFinished) row() row { return row{kind: "turn_finished", decode: decode[TurnFinished]} }

func (FileChanged) row() row { return row{kind: "file_changed", decode: decode[FileChanged]} }

func (UndoPoint) row() row { return row{kind: "undo_point", decode: decode[UndoPoint]} }

func (b Flag) row() row {
	return row{kind: KindFlag, decode: decode[Flag], begins: true, name: b.ContentID, interleaves: true}
}

func (Compacted) row() row {
	return row{kind: "compacted", decode: decode[Compacted], begins: true, name: CompactionName}
}

func (Pruned) row() row        { return row{kind: "pruned", decode: decode[Pruned]} }
func (Continued) row() row     { return row{kind: "continued", decode: decode[Continued]} }
func (ImagesRefused) row() row { return row{kind: "images_refused", decode: decode[ImagesRefused]} }
func (Truncated) row() row     { return row{kind: "truncated", decode: decode[Truncated]} }
func (TasksCleared) row() row  { return row{kind: "tasks_cleared", decode: decode[TasksCleared]} }
func (HookStarted) row() row   { return row{kind: "hook_started", decode: decode[HookStarted]} }
func (HookFinished) row() row  { return row{kind: "hook_finished", decode: decode[HookFinished]} }
func (PromptAmended) row() row { return row{kind: "prompt_amended", decode: decode[PromptAmended]} }
func (Report) row() row        { return row{kind: "report", decode: decode[Report]} }
func (u Unknown) row() row     { return row{kind: u.Name} }

// All returns one empty event of each type except Unknown. A test checks that it is complete.
func All() []Body {
	return []Body{
		TurnStarted{},
		UserMessage{},
		SystemPrompt{},
		TextDelta{},
		ReasoningStarted{},
		ReasoningDelta{},
		ReasoningFinished{},
		ToolProposed{},
		ToolArgsDelta{},
		ToolJudged{},
		ToolStarted{},
		ToolUpdated{},
		ToolFinished{},
		ToolRejected{},
		UsageReported{},
		TitleChanged{},
		Notice{},
		Progress{},
		TurnFinished{},
		FileChanged{},
		UndoPoint{},
		Flag{},
		Compacted{},
		Pruned{},
		Continued{},
		ImagesRefused{},
		Truncated{},
		TasksCleared{},
		HookStarted{},
		HookFinished{},
		PromptAmended{},
		Report{},
	}
}

// KindOf returns the kind of a body.
func KindOf(b Body) Kind { return b.row().kind }

// Begins reports whether an event begins a message. previous is the kind of the last event that
// does not interleave text.
func Begins(previous Kind, b Body) bool {
	if _, ok := b.(TextDelta); ok {
		return previous != KindOf(b)
	}
	return b.row().begins
}

// Name returns the id of the message that an event begins, as clients use it; empty if it does not
// have one.
func Name(b Body) string { return b.row().name }

// InterleavesText reports whether an event may occur inside a run of text without ending it.
func InterleavesText(b Body) bool { return b.row().interleaves }

// Volatile reports whether an event is shown, but not stored.
func Volatile(b Body) bool { return b.row().volatile }

// Delta is a piece of a text that arrives over time. Consecutive deltas of one text can be joined.
type Delta interface {
	Body
	Of() string             // id of the call or the block of reasoning that the text belongs to; empty for the answer
	Piece() string          // the text of this piece
	With(piece string) Body // a delta of the same text with another piece
}

// Of implements Delta.
func (TextDelta) Of() string { return "" }

// Of implements Delta.
func (d ReasoningDelta) Of() string { return d.ID }

// Of implements Delta.
func (d ToolArgsDelta) Of() string { return d.CallID }

// Piece implements Delta.
func (d TextDelta) Piece() string { return d.Text }

// Piece implements Delta.
func (d ReasoningDelta) Piece() string { return d.Text }

// Piece implements Delta.
func (d ToolArgsDelta) Piece() string { return d.Text }

// With implements Delta.
func (TextDelta) With(piece string) Body { return TextDelta{Text: piece} }

// With implements Delta.
func (d ReasoningDelta) With(piece string) Body { return ReasoningDelta{ID: d.ID, Text: piece} }

// With implements Delta.
func (d ToolArgsDelta) With(piece string) Body { return ToolArgsDelta{CallID: d.CallID, Text: piece} }

// Joined returns one delta with the text of two; for other events, or deltas of different kinds, it
// returns b.
func Joined(a, b Body) Body {
	first, ok := a.(Delta)
	second, also := b.(Delta)
	if !ok || !also || KindOf(a) != KindOf(b) {
		return b
	}
	return first.With(first.Piece() + second.Piece())
}

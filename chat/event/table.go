package event

import "encoding/json"

// row is the line of the table about one kind of event. Each type of event has its line
// here, as the method that makes it a Body; All lists the types. Nothing else in the package
// knows single events.
type row struct {
	kind   Kind
	decode func(json.RawMessage) (Body, error)

	// begins says that a message begins with it. Messages are what histories are counted and
	// cut by: what the user said, a run of the model's text, a block of reasoning, a tool
	// call, a tool's result, a flag, a compaction. Everything else belongs to the message
	// before it.
	begins bool
	name   string // by which clients name the message that it begins; empty: they cannot

	interleaves bool // it may stand inside a run of text without ending it
	volatile    bool // it is shown, but not stored
}

// CompactionName is the name of all compactions (eca-protocol 4.8).
const CompactionName = "lastCompaction"

// KindFlag is the kind of Flag, which the store puts after the message it marks.
const KindFlag Kind = "flag"

func (TurnStarted) row() row { return row{kind: "turn_started", decode: decode[TurnStarted]} }

func (b UserMessage) row() row {
	return row{kind: "user_message", decode: decode[UserMessage], begins: true, name: b.ContentID}
}

func (SystemPrompt) row() row { return row{kind: "system_prompt", decode: decode[SystemPrompt]} }

// TextDelta begins a message where it follows something else: see Begins.
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

// All returns one empty event of each type but Unknown; a test keeps it complete.
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

// Begins says whether a message begins with an event that follows one of the kind previous.
func Begins(previous Kind, b Body) bool {
	if _, ok := b.(TextDelta); ok {
		return previous != KindOf(b)
	}
	return b.row().begins
}

// Name returns the id by which clients name the message that an event begins; empty if they
// cannot.
func Name(b Body) string { return b.row().name }

// InterleavesText says whether an event may stand inside a run of text without ending it.
func InterleavesText(b Body) bool { return b.row().interleaves }

// Volatile says that an event is shown, but not stored.
func Volatile(b Body) bool { return b.row().volatile }

// Delta is a piece of a text that grows: pieces of the same text follow each other.
type Delta interface {
	Body
	Of() string             // id of the reasoning or the call that it belongs to, if it is not the answer
	Piece() string          // the text
	With(piece string) Body // the same delta with another piece of the text
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

// Joined returns the delta that says what two pieces of one delta say; of other events, the
// second.
func Joined(a, b Body) Body {
	first, ok := a.(Delta)
	second, also := b.(Delta)
	if !ok || !also || KindOf(a) != KindOf(b) {
		return b
	}
	return first.With(first.Piece() + second.Piece())
}

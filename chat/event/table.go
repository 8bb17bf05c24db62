package event

// properties describes one event type. The method row of each type returns them, and makes the type
// a Body; All lists the types. The comment of row describes the event in docs/storage.md.
type properties struct {
	kind Kind

	// begins is set if the event begins a message. Messages are the units in which chats are counted
	// and cut: a user message, a run of the model's text, a block of reasoning, a tool call, the
	// result of a call, a flag, or a compaction. Any other event belongs to the preceding message.
	begins   bool
	clientID string // id of the message that it begins, as clients use it; empty if it does not have one

	interleaves bool // it may occur inside a run of text without ending it
	volatile    bool // it is shown, but not stored
}

// CompactionID is the id of each compaction (eca-protocol.md 4.8).
const CompactionID = "lastCompaction"

// KindFlag is the kind of Flag. The store positions a flag after the message that it marks.
const KindFlag Kind = "flag"

func (TurnStarted) row() properties { return properties{kind: "turn_started"} }

// The user's prompt. In the middle of a turn, it is a prompt that the user sent while the turn
// ran. With `command`, it was a command for eca, and the model gets only the command's
// `prompt`, if there is one.
func (b UserMessage) row() properties {
	return properties{kind: "user_message", begins: true, clientID: b.ContentID}
}

// The parts of the system prompt for the following requests. Without parts, the next request
// creates a new one.
func (SystemPrompt) row() properties { return properties{kind: "system_prompt"} }
func (TextDelta) row() properties    { return properties{kind: "text"} }
func (b ReasoningStarted) row() properties {
	return properties{kind: "reasoning_started", begins: true, clientID: b.ID}
}
func (ReasoningDelta) row() properties    { return properties{kind: "reasoning"} }
func (ReasoningFinished) row() properties { return properties{kind: "reasoning_finished"} }
func (b ToolProposed) row() properties {
	return properties{kind: "tool_proposed", begins: true, clientID: b.CallID}
}
func (ToolArgsDelta) row() properties { return properties{kind: "tool_args"} }
func (ToolJudged) row() properties    { return properties{kind: "tool_judged"} }
func (ToolStarted) row() properties   { return properties{kind: "tool_started"} }
func (ToolUpdated) row() properties   { return properties{kind: "tool_updated", interleaves: true} }

func (b ToolFinished) row() properties {
	return properties{kind: "tool_finished", begins: true, clientID: b.CallID}
}

func (b ToolRejected) row() properties {
	return properties{kind: "tool_rejected", begins: true, clientID: b.CallID}
}

// Tokens and cost of a request. If `purpose` is set, it is a side request. With the purpose
// `subagent`, it is a request of a subagent's chat, whose log contains the event too.
func (b UsageReported) row() properties {
	return properties{kind: "usage", interleaves: b.Purpose != ""}
}

// The chat's title.
func (TitleChanged) row() properties { return properties{kind: "title", interleaves: true} }

// Text from eca, inside or outside a turn. With `chat`, it names a new fork; with `system`, it
// announces a change of the system prompt.
func (Notice) row() properties { return properties{kind: "notice"} }

func (Progress) row() properties {
	return properties{kind: "progress", interleaves: true, volatile: true}
}

// With `dialog`, eca asked a question that the next `user_message` answers. With the reason
// `blocked`, the prompt never reaches the model, not even later.
func (TurnFinished) row() properties { return properties{kind: "turn_finished"} }

// A tool is about to change a file. `before` and `after` contain the `hash` of its contents;
// `before` also has its permissions (`mode`). A new file has no `before`. A move has neither, and
// `movedTo` is the new path.
func (FileChanged) row() properties { return properties{kind: "file_changed"} }

// Recorded before a command whose changes a rollback can undo, and again after it, then with
// `ended`. `roots` lists the folders, each with the name of its undo point (`record`).
func (UndoPoint) row() properties { return properties{kind: "undo_point"} }

// A mark that the user set.
func (b Flag) row() properties {
	return properties{kind: KindFlag, begins: true, clientID: b.ContentID, interleaves: true}
}

// A summary that replaces everything before it, except for a prompt without an answer. The
// originals stay in the log.
func (Compacted) row() properties {
	return properties{kind: "compacted", begins: true, clientID: CompactionID}
}

// Calls whose results eca no longer sends. The originals stay in the log.
func (Pruned) row() properties { return properties{kind: "pruned"} }

// The answer broke off. `prompt` is sent to the model as a user message; the user saw `text`.
func (Continued) row() properties { return properties{kind: "continued"} }

// A provider refused an image. Images from before this event are no longer sent to this `model`.
func (ImagesRefused) row() properties { return properties{kind: "images_refused"} }
func (Truncated) row() properties     { return properties{kind: "truncated"} }
func (TasksCleared) row() properties  { return properties{kind: "tasks_cleared"} }
func (HookStarted) row() properties   { return properties{kind: "hook_started"} }
func (HookFinished) row() properties  { return properties{kind: "hook_finished"} }

// A replacement for the preceding prompt, for the model: `prompt` (a text from a hook), or `said`
// (the messages of an MCP server's prompt). `context` is text that hooks add to the prompt.
func (PromptAmended) row() properties { return properties{kind: "prompt_amended"} }

// The result of a background subagent, which the model gets as a user message. If it is
// missing, the process died before the result arrived.
func (Report) row() properties    { return properties{kind: "report"} }
func (u Unknown) row() properties { return properties{kind: u.Name} }

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

// Begins reports whether an event begins a message. A TextDelta does, unless it continues a run of
// text. previous is the kind of the last event that does not interleave text.
func Begins(previous Kind, b Body) bool {
	if _, ok := b.(TextDelta); ok {
		return previous != KindOf(b)
	}
	return b.row().begins
}

// ClientID returns the id of the message that an event begins, as clients use it; empty if it does not
// have one.
func ClientID(b Body) string { return b.row().clientID }

// InterleavesText reports whether an event may occur inside a run of text without ending it.
func InterleavesText(b Body) bool { return b.row().interleaves }

// Volatile reports whether an event is shown, but not stored.
func Volatile(b Body) bool { return b.row().volatile }

// Delta is a piece of a text that arrives over time. Consecutive deltas of one text can be joined.
type Delta interface {
	Body
	OwnerID() string             // id of the call or the block of reasoning that the text belongs to; empty for the answer
	Piece() string               // the text of this piece
	WithPiece(piece string) Body // a delta of the same text with another piece
}

// OwnerID implements Delta.
func (TextDelta) OwnerID() string { return "" }

// OwnerID implements Delta.
func (d ReasoningDelta) OwnerID() string { return d.ID }

// OwnerID implements Delta.
func (d ToolArgsDelta) OwnerID() string { return d.CallID }

// Piece implements Delta.
func (d TextDelta) Piece() string { return d.Text }

// Piece implements Delta.
func (d ReasoningDelta) Piece() string { return d.Text }

// Piece implements Delta.
func (d ToolArgsDelta) Piece() string { return d.Text }

// WithPiece implements Delta.
func (TextDelta) WithPiece(piece string) Body { return TextDelta{Text: piece} }

// WithPiece implements Delta.
func (d ReasoningDelta) WithPiece(piece string) Body { return ReasoningDelta{ID: d.ID, Text: piece} }

// WithPiece implements Delta.
func (d ToolArgsDelta) WithPiece(piece string) Body {
	return ToolArgsDelta{CallID: d.CallID, Text: piece}
}

// JoinDeltas returns one delta with the text of two; for other events, or deltas of different kinds, it
// returns b.
func JoinDeltas(a, b Body) Body {
	first, ok := a.(Delta)
	second, bothOK := b.(Delta)
	if !ok || !bothOK || KindOf(a) != KindOf(b) {
		return b
	}
	return first.WithPiece(first.Piece() + second.Piece())
}

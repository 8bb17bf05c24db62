package acp

import (
	"encoding/json"

	"github.com/seed-dec29ce4/eca/tools/ask"
)

// This file contains the messages of ACP that eca sends (acp-a2a.md A3, A4), with their members
// sorted by name.

// update is a session update. Each kind has some of the members.
type update struct {
	Commands     []slashCommand  `json:"availableCommands,omitzero"`
	CompactionID string          `json:"compactionId,omitempty"`
	Options      []option        `json:"configOptions,omitzero"`
	Content      any             `json:"content,omitempty"` // a content, or for a call a list of toolContent and diff
	Cost         *cost           `json:"cost,omitempty"`
	Mode         string          `json:"currentModeId,omitempty"`
	Entries      []planEntry     `json:"entries,omitzero"`
	CallKind     string          `json:"kind,omitempty"`
	Locations    []location      `json:"locations,omitempty"`
	MessageID    string          `json:"messageId,omitempty"`
	Name         string          `json:"name,omitempty"`
	RawInput     json.RawMessage `json:"rawInput,omitempty"`
	RawOutput    *rawOutput      `json:"rawOutput,omitempty"`
	Kind         string          `json:"sessionUpdate,omitempty"` // empty in requests for permission
	Severity     string          `json:"severity,omitempty"`
	Size         int64           `json:"size,omitempty"`
	Status       string          `json:"status,omitempty"`
	Title        string          `json:"title,omitempty"`
	CallID       string          `json:"toolCallId,omitempty"`
	Used         *int64          `json:"used,omitempty"`
}

const agentMessage = "agent_message_chunk"

// content is a block of text or an image.
type content struct {
	Data     []byte  `json:"data,omitempty"`
	MIMEType string  `json:"mimeType,omitempty"`
	Text     *string `json:"text,omitempty"`
	Type     string  `json:"type"`
}

func textBlock(text string) content { return content{Text: &text, Type: "text"} }

// toolContent is content of a tool call.
type toolContent struct {
	Content content `json:"content"`
	Type    string  `json:"type"`
}

func contentOf(c content) toolContent { return toolContent{c, "content"} }

// diff is a change of a file. OldText is nil for a new file.
type diff struct {
	NewText string  `json:"newText"`
	OldText *string `json:"oldText"`
	Path    string  `json:"path"`
	Type    string  `json:"type"`
}

type location struct {
	Line int64  `json:"line,omitempty"`
	Path string `json:"path"`
}

type rawOutput struct {
	Error   bool     `json:"error"`
	Outputs []string `json:"outputs"`
}

type planEntry struct {
	Content  string `json:"content"`
	Priority string `json:"priority"`
	Status   string `json:"status"`
}

type cost struct {
	Amount   float64 `json:"amount"`
	Currency string  `json:"currency"`
}

type slashCommand struct {
	Description string        `json:"description"`
	Input       *commandInput `json:"input,omitempty"`
	Name        string        `json:"name"`
}

type commandInput struct {
	Hint string `json:"hint"`
}

// sessionUpdate is the notification that contains an update.
type sessionUpdate struct {
	SessionID string `json:"sessionId"`
	Update    update `json:"update"`
}

type permissionRequest struct {
	Options   []permissionOption `json:"options"`
	SessionID string             `json:"sessionId"`
	ToolCall  update             `json:"toolCall"`
}

type permissionOption struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	ID   string `json:"optionId"`
}

// form is a question with input fields.
type form struct {
	Message   string     `json:"message"`
	Mode      string     `json:"mode"`
	Schema    formSchema `json:"requestedSchema"`
	SessionID string     `json:"sessionId"`
	CallID    string     `json:"toolCallId"`
}

type formSchema struct {
	Fields   formFields `json:"properties"`
	Required []string   `json:"required"`
	Type     string     `json:"type"`
}

type formFields struct {
	Answer formField  `json:"answer"`
	Other  *formField `json:"other,omitempty"`
}

type formField struct {
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Title       string   `json:"title"`
	Type        string   `json:"type"`
}

// messageChunk returns an update with a piece of a message.
func messageChunk(kind, text, id string) update {
	return update{Kind: kind, Content: textBlock(text), MessageID: id}
}

// questionText formats a question as text.
func questionText(text string, options []ask.Option) string {
	for _, o := range options {
		text += "\n- " + o.Label
		if o.Description != "" {
			text += ": " + o.Description
		}
	}
	return text
}

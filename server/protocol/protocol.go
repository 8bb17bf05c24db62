// Package protocol has the wire types of the ECA protocol and their JSON rules. It does nothing
// else: package server decides who may call which method, and when. docs/contracts/eca-protocol.md
// describes the protocol.
//
// Outbound types omit absent values instead of sending null (eca-protocol.md 2.1). Inbound values
// are read with Decode, which accepts the deviations of real clients: keys in kebab, snake or camel
// case, null for absent, {} for empty lists, numbers for ids.
package protocol

import (
	"encoding/json"
)

// InitializeParams (eca-protocol.md 3.1).
type InitializeParams struct {
	ProcessID             Number                `json:"processId"`
	ClientInfo            ClientInfo            `json:"clientInfo"`
	InitializationOptions json.RawMessage       `json:"initializationOptions"`
	Capabilities          Capabilities          `json:"capabilities"`
	WorkspaceFolders      List[WorkspaceFolder] `json:"workspaceFolders"`
}

// ClientInfo names the client.
type ClientInfo struct {
	Name    Text `json:"name"`
	Version Text `json:"version"`
}

// UnmarshalJSON ignores values that are not objects.
func (c *ClientInfo) UnmarshalJSON(raw []byte) error {
	type plain ClientInfo
	_ = json.Unmarshal(raw, (*plain)(c))
	return nil
}

// WorkspaceFolder (eca-protocol.md 2.4).
type WorkspaceFolder struct {
	URI  string `json:"uri"`
	Name string `json:"name"`
}

// InitializeResult (eca-protocol.md 3.1). Old clients read the models and behaviours from here.
type InitializeResult struct {
	ChatWelcomeMessage  string     `json:"chatWelcomeMessage,omitempty"`
	ServerInfo          ServerInfo `json:"serverInfo"`
	Models              []string   `json:"models,omitempty"`
	ChatDefaultModel    string     `json:"chatDefaultModel,omitempty"`
	ChatBehaviors       []string   `json:"chatBehaviors,omitempty"`
	ChatDefaultBehavior string     `json:"chatDefaultBehavior,omitempty"`
	ChatAgents          []string   `json:"chatAgents,omitempty"`
	ChatDefaultAgent    string     `json:"chatDefaultAgent,omitempty"`
}

// ServerInfo names the server.
type ServerInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// ChatPromptParams (eca-protocol.md 4.1). Behavior is the name of Agent in the first published
// protocol.
type ChatPromptParams struct {
	ChatID   ID                `json:"chatId"`
	Message  *string           `json:"message"`
	Model    Text              `json:"model"`
	Agent    Text              `json:"agent"`
	Behavior Text              `json:"behavior"`
	Variant  Text              `json:"variant"`
	Trust    Flag              `json:"trust"`
	Contexts List[ChatContext] `json:"contexts"`
	Limited  bool              `json:"limited"` // set by the remote server: see chat.Prompt
}

// ChatContext is one context of a prompt (eca-protocol.md 2.4). Unsupported types are ignored.
type ChatContext struct {
	Type       string      `json:"type"`
	Path       string      `json:"path"`
	LinesRange *LinesRange `json:"linesRange"`
	Position   *Range      `json:"position"` // of the cursor; 1-based
	Label      string      `json:"label"`
	Content    string      `json:"content"`
	MediaType  string      `json:"mediaType"`
	Base64     string      `json:"base64"`
	URL        string      `json:"url"`
	URI        string      `json:"uri"`
	Name       string      `json:"name"`
	Server     string      `json:"server"`
}

// LinesRange is 1-based and inclusive.
type LinesRange struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Statuses of a prompt (eca-protocol.md 4.1).
const (
	StatusPrompting = "prompting"
	StatusLogin     = "login" // the prompt was an answer to /login
	StatusError     = "error"
)

// ChatPromptResult (eca-protocol.md 4.1).
type ChatPromptResult struct {
	ChatID string `json:"chatId"`
	Model  string `json:"model"`
	Status string `json:"status"`
}

// ToolCallParams of chat/toolCallApprove and chat/toolCallReject (eca-protocol.md 4.2, 4.3). Auto,
// GoOn and Unasked are extensions. Auto: the client approves every call, so no user has seen this
// one. GoOn: after a rejection, the turn continues and the model gets the rejection. Unasked: the
// client rejected the call because it had no user to ask.
type ToolCallParams struct {
	ChatID     ID     `json:"chatId"`
	ToolCallID ID     `json:"toolCallId"`
	Save       string `json:"save"`
	GoOn       bool   `json:"goOn"`
	Unasked    bool   `json:"unasked"`
	Auto       bool   `json:"auto"`
}

// ConfigUpdated (eca-protocol.md 5.1). Absent keys mean unchanged.
type ConfigUpdated struct {
	ChatID string      `json:"chatId,omitempty"`
	Chat   *ChatConfig `json:"chat,omitempty"`
}

// ChatConfig is the chat part of config/updated, with the current names and those of the first
// published protocol.
type ChatConfig struct {
	Models          *[]string       `json:"models,omitempty"`
	Agents          *[]string       `json:"agents,omitempty"`
	Behaviors       *[]string       `json:"behaviors,omitempty"`
	Variants        *[]string       `json:"variants,omitempty"`
	SelectModel     string          `json:"selectModel,omitempty"`
	SelectAgent     string          `json:"selectAgent,omitempty"`
	SelectBehavior  string          `json:"selectBehavior,omitempty"`
	SelectVariant   json.RawMessage `json:"selectVariant,omitempty"` // a string, or null: the only null that clients expect
	SelectTrust     *bool           `json:"selectTrust,omitempty"`
	DefaultModel    string          `json:"defaultModel,omitempty"`
	DefaultAgent    string          `json:"defaultAgent,omitempty"`
	DefaultBehavior string          `json:"defaultBehavior,omitempty"`
	WelcomeMessage  string          `json:"welcomeMessage,omitempty"`
}

// ToolServerUpdated (eca-protocol.md 5.2).
type ToolServerUpdated struct {
	Type   string       `json:"type"` // native or mcp
	Name   string       `json:"name"`
	Status string       `json:"status"`
	Tools  []ServerTool `json:"tools"`
}

// ServerTool is one tool in ToolServerUpdated.
type ServerTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Disabled    bool            `json:"disabled"`
}

// Progress is $/progress (eca-protocol.md 5).
type Progress struct {
	Type   string `json:"type"` // start or finish
	TaskID string `json:"taskId"`
	Title  string `json:"title"`
}

// ShowMessage is $/showMessage (eca-protocol.md 5).
type ShowMessage struct {
	Type    string `json:"type"` // error, warning or info
	Message string `json:"message"`
}

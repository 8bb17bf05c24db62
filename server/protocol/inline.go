package protocol

// Position is 1-based or 0-based, depending on the method.
type Position struct {
	Line      Number `json:"line"`
	Character Number `json:"character"`
}

// Range is the text between two positions.
type Range struct {
	Start Position `json:"start"`
	End   Position `json:"end"`
}

// CompletionParams of completion/inline (eca-protocol.md 4.13). Position is 1-based.
type CompletionParams struct {
	DocText    string   `json:"docText"`
	DocVersion Number   `json:"docVersion"`
	Position   Position `json:"position"`
	Path       Text     `json:"path"`
}

// CompletionResult (eca-protocol.md 4.13).
type CompletionResult struct {
	Items []CompletionItem `json:"items"`
}

// CompletionItem is text to insert at an empty range.
type CompletionItem struct {
	Text       string `json:"text"`
	DocVersion int    `json:"docVersion"`
	Range      Range  `json:"range"`
}

// RewriteParams of rewrite/prompt (eca-protocol.md 4.14). Lines of Range are 1-based, characters
// 0-based.
type RewriteParams struct {
	ID     ID     `json:"id"`
	Text   string `json:"text"`
	Prompt string `json:"prompt"`
	Path   Text   `json:"path"`
	Range  Range  `json:"range"`
}

// RewriteResult (eca-protocol.md 4.14).
type RewriteResult struct {
	Status string `json:"status"` // prompting
	Model  string `json:"model"`
}

// RewriteReceived is rewrite/contentReceived (eca-protocol.md 5).
type RewriteReceived struct {
	RewriteID string         `json:"rewriteId"`
	Content   RewriteContent `json:"content"`
}

// RewriteContent is started, reasoning, text, replace, finished or error.
type RewriteContent struct {
	Type        string `json:"type"`
	Text        string `json:"text,omitempty"`
	Message     string `json:"message,omitempty"`
	TotalTimeMs *int64 `json:"totalTimeMs,omitempty"`
}

package lsp

import (
	"encoding/json"
	"strconv"
)

// The messages of LSP 3.17 that this package uses.

type wirePosition struct {
	Line      int `json:"line"` // counts from 0
	Character int `json:"character"`
}

type wireRange struct {
	Start wirePosition `json:"start"`
	End   wirePosition `json:"end"`
}

type textDocument struct {
	URI string `json:"uri"`
}

type versionedDocument struct {
	URI     string `json:"uri"`
	Version int    `json:"version"`
}

type documentItem struct {
	URI        string `json:"uri"`
	LanguageID string `json:"languageId"`
	Version    int    `json:"version"`
	Text       string `json:"text"`
}

type didOpen struct {
	TextDocument documentItem `json:"textDocument"`
}

type didChange struct {
	TextDocument   versionedDocument `json:"textDocument"`
	ContentChanges []contentChange   `json:"contentChanges"`
}

// contentChange replaces the whole text.
type contentChange struct {
	Text string `json:"text"`
}

type didSave struct {
	TextDocument textDocument `json:"textDocument"`
	Text         string       `json:"text,omitempty"`
}

type documentParams struct {
	TextDocument textDocument `json:"textDocument"`
}

type positionParams struct {
	TextDocument textDocument       `json:"textDocument"`
	Position     wirePosition       `json:"position"`
	Context      *referencesContext `json:"context,omitempty"`
}

type referencesContext struct {
	IncludeDeclaration bool `json:"includeDeclaration"`
}

// Kinds of fileEvent.
const (
	fileCreated = 1
	fileChanged = 2
	fileDeleted = 3
)

type fileEvent struct {
	URI  string `json:"uri"`
	Type int    `json:"type"`
}

type watchedFiles struct {
	Changes []fileEvent `json:"changes"`
}

type publishDiagnostics struct {
	URI         string           `json:"uri"`
	Version     *int             `json:"version"`
	Diagnostics []wireDiagnostic `json:"diagnostics"`
}

type wireDiagnostic struct {
	Range    wireRange      `json:"range"`
	Severity int            `json:"severity"`
	Code     stringOrNumber `json:"code"`
	Source   string         `json:"source"`
	Message  string         `json:"message"`
}

// stringOrNumber is a string or a number.
type stringOrNumber string

// UnmarshalJSON implements json.Unmarshaler. Other values become empty.
func (w *stringOrNumber) UnmarshalJSON(data []byte) error {
	var s string
	var n float64
	switch {
	case json.Unmarshal(data, &s) == nil:
		*w = stringOrNumber(s)
	case json.Unmarshal(data, &n) == nil:
		*w = stringOrNumber(strconv.FormatFloat(n, 'f', -1, 64))
	}
	return nil
}

type pulledDiagnostics struct {
	Kind  string           `json:"kind"` // full or unchanged
	Items []wireDiagnostic `json:"items"`
}

// location is a Location or a LocationLink.
type location struct {
	URI                  string    `json:"uri"`
	Range                wireRange `json:"range"`
	TargetURI            string    `json:"targetUri"`
	TargetSelectionRange wireRange `json:"targetSelectionRange"`
}

// locations is null, a single place, or a list.
type locations []location

// UnmarshalJSON implements json.Unmarshaler.
func (p *locations) UnmarshalJSON(data []byte) error {
	var one location
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, &one)
		*p = locations{one}
		return err
	}
	return json.Unmarshal(data, (*[]location)(p))
}

// wireSymbol is a DocumentSymbol, a SymbolInformation or a WorkspaceSymbol.
type wireSymbol struct {
	Name           string       `json:"name"`
	Kind           int          `json:"kind"`
	ContainerName  string       `json:"containerName"`
	Location       *location    `json:"location"`
	SelectionRange wireRange    `json:"selectionRange"`
	Children       []wireSymbol `json:"children"`
}

// initializeResult is the answer to initialize.
type initializeResult struct {
	Capabilities struct {
		TextDocumentSync   json.RawMessage `json:"textDocumentSync"`
		DiagnosticProvider json.RawMessage `json:"diagnosticProvider"`
	} `json:"capabilities"`
}

// wantsSaves reports whether the server wants notifications of saved files, and whether with their text.
func (i initializeResult) wantsSaves() (wanted, text bool) {
	var sync struct {
		Save json.RawMessage `json:"save"`
	}
	if json.Unmarshal(i.Capabilities.TextDocumentSync, &sync) != nil || len(sync.Save) == 0 {
		return true, false // servers without this capability ignore the notification
	}
	var options struct {
		IncludeText bool `json:"includeText"`
	}
	if json.Unmarshal(sync.Save, &options) == nil {
		return true, options.IncludeText
	}
	return string(sync.Save) == "true", false
}

// pulls reports whether diagnostics can be requested.
func (i initializeResult) pulls() bool {
	p := string(i.Capabilities.DiagnosticProvider)
	return p != "" && p != "null" && p != "false"
}

// pullsDependents reports whether a change of one document can change the diagnostics of others, so
// that those of all open documents must be requested again.
func (i initializeResult) pullsDependents() bool {
	var options struct {
		InterFileDependencies bool `json:"interFileDependencies"`
	}
	return i.pulls() && json.Unmarshal(i.Capabilities.DiagnosticProvider, &options) == nil && options.InterFileDependencies
}

func (s *server) initializeParams() map[string]any {
	folder := map[string]string{"uri": s.uri(s.root), "name": s.root}
	dynamic := map[string]any{"dynamicRegistration": true}
	return map[string]any{
		// The server may run in another PID namespace and would take eca for dead.
		"processId":  nil,
		"clientInfo": map[string]string{"name": "eca", "version": s.manager.opts.Version},
		"rootPath":   s.root, "rootUri": folder["uri"], "workspaceFolders": []any{folder},
		"initializationOptions": s.installed.options,
		"capabilities": map[string]any{
			"general": map[string]any{"positionEncodings": []string{"utf-16"}},
			"workspace": map[string]any{
				"configuration": true, "workspaceFolders": true, "didChangeWatchedFiles": dynamic, "symbol": map[string]any{},
			},
			"window": map[string]any{"workDoneProgress": false},
			"textDocument": map[string]any{
				"synchronization":    map[string]any{"didSave": true},
				"publishDiagnostics": map[string]any{"versionSupport": true, "relatedInformation": false},
				"diagnostic":         map[string]any{"dynamicRegistration": false},
				"definition":         map[string]any{"linkSupport": true},
				"references":         map[string]any{},
				"documentSymbol":     map[string]any{"hierarchicalDocumentSymbolSupport": true},
			},
		},
	}
}

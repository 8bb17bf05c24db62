package config

import (
	"encoding/json"
)

// LSP is the lsp section: language servers by name, or false.
type LSP struct {
	Off     bool                 `json:"-"` // written as false
	Servers map[string]LSPServer `json:"-" rest:"true" doc:"A language server. If the name is that of a server that eca knows, or of its language, these settings change that server."`
}

// LSPServer is the value of lsp.<name>. It accepts the keys of opencode and those of Crush.
type LSPServer struct {
	Command        Strings           `json:"command,omitempty" doc:"The program, or the program and its arguments." each:"The program, then its arguments."`
	Args           []string          `json:"args,omitempty" doc:"Further arguments." each:"An argument."`
	Extensions     []string          `json:"extensions,omitempty" doc:"The extensions of its files." each:"An extension such as .go."`
	Filetypes      []string          `json:"filetypes,omitempty" doc:"The languages of its files, by their LSP name or as an extension." each:"A language such as typescript."`
	RootMarkers    []string          `json:"root_markers,omitempty" doc:"Files and folders that mark the root folder of a project." each:"A name such as go.mod."`
	Env            map[string]string `json:"env,omitempty" doc:"Its environment, added to that of sandboxed commands." each:"A variable's value."`
	Initialization map[string]any    `json:"initialization,omitempty" doc:"The initializationOptions that it gets." each:"An option."`
	InitOptions    map[string]any    `json:"init_options,omitempty" doc:"Another name for initialization." each:"An option."`
	Disabled       bool              `json:"disabled,omitempty" doc:"Do not start it."`
}

// UnmarshalJSON implements json.Unmarshaler. true is like an empty object.
func (l *LSP) UnmarshalJSON(data []byte) error {
	*l = LSP{}
	var on bool
	if json.Unmarshal(data, &on) == nil {
		l.Off = !on && string(data) != "null"
		return nil
	}
	return json.Unmarshal(data, &l.Servers)
}

// MarshalJSON implements json.Marshaler.
func (l LSP) MarshalJSON() ([]byte, error) {
	if l.Off {
		return []byte("false"), nil
	}
	if l.Servers == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(l.Servers)
}

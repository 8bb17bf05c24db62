package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// execContent is what is shown of a content.
type execContent struct {
	Type, ID, Text, State, Reason, Summary, Name, Server string
	ManualApproval, Error                                bool
	Outputs                                              []struct{ Text string }
	Details                                              struct{ Type, Path string }
	Arguments                                            struct{ Command string }
}

// UnmarshalJSON tolerates arguments of any form.
func (v *execContent) UnmarshalJSON(raw []byte) error {
	type plain execContent
	var loose struct {
		*plain
		Arguments json.RawMessage
	}
	loose.plain = (*plain)(v)
	if err := json.Unmarshal(raw, &loose); err != nil {
		return err
	}
	_ = json.Unmarshal(loose.Arguments, &v.Arguments)
	return nil
}

// label names a call: by its whole command, or by its file.
func (v execContent) label(root string) string {
	switch {
	case v.Arguments.Command != "" && strings.HasPrefix(v.Summary, "$"):
		return "$ " + strings.ReplaceAll(strings.TrimSpace(v.Arguments.Command), "\n", "\n    ")
	case v.Details.Type == "fileChange": // the summary leaves it to clients to name it
		path := v.Details.Path
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		return strings.TrimSuffix(v.Summary, " "+filepath.Base(path)) + " " + path // which a preview names
	case v.Summary == "":
		return v.Name
	}
	return v.Summary
}

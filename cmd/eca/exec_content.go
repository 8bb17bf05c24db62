package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
)

// execContent has the fields of a chat content that eca exec uses.
type execContent struct {
	Type, ID, Text, State, Reason, Incomplete, Summary, Name, Server, Output string
	ToolCallID                                                               string
	ManualApproval, Failed                                                   bool
	Status                                                                   json.RawMessage // of a hook: its exit code
	Error                                                                    contentError
	Outputs                                                                  []struct{ Text string }
	SandboxStops                                                             []sandboxStop
	Details                                                                  struct{ Type, Path string }
	Arguments                                                                struct{ Command string }
	Permission                                                               callPermission
}

// sandboxStop is an access that the sandbox denied to a command.
type sandboxStop struct {
	Text    string
	Hosts   []string
	Port    string // of a server on this machine
	Folder  string // the command could not write in it
	Decided bool   // the user has decided about it
}

// contentError is not empty if a call or a hook failed. For a hook, it is the reason.
type contentError string

// UnmarshalJSON accepts the boolean of a call and the text of a hook.
func (e *contentError) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*e = contentError(text)
	} else if string(raw) == "true" {
		*e = "the call failed"
	}
	return nil
}

// callPermission is the decision about a call.
type callPermission struct{ Verdict, Rule, Reason string }

// denies reports whether the call was not allowed to run, as opposed to impossible.
func (p callPermission) denies() bool { return p.Verdict == "deny" && p.Rule != "invalid" }

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

// label returns a line that identifies a call: its whole command, its file or its summary.
func (v execContent) label(root string) string {
	switch {
	case v.Arguments.Command != "" && strings.HasPrefix(v.Summary, "$"):
		return "$ " + strings.ReplaceAll(strings.TrimSpace(v.Arguments.Command), "\n", "\n    ")
	case v.Details.Type == "fileChange": // the summary does not name the file
		path := v.Details.Path
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			path = rel
		}
		return strings.TrimSuffix(v.Summary, " "+filepath.Base(path)) + " " + path // the summary of a preview ends with the file's name
	case v.Summary == "":
		return v.Name
	}
	return v.Summary
}

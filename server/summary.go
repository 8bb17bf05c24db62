package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
)

// summary describes a call in a few words, or completely when the user has to approve it: some
// clients then show nothing else.
func (r *renderer) summary(c transcript.Call, at transcript.Stage) string {
	b := c.Judgment
	if at == transcript.Announced || b.Summary == "" {
		return readableName(c, c.Summary)
	}
	text := readableName(c, b.Summary)
	switch {
	case b.Details != nil && b.Details.FileChange != nil:
		if r.client == clientEmacs { // it appends the name
			text = strings.Replace(text, " "+filepath.Base(b.Details.FileChange.Path), "", 1)
		}
	case at == transcript.Judged && b.Manual && c.Stage == transcript.Judged:
		text = withArguments(text, c.Tool, b.Arguments)
	case at == transcript.Running && c.Origin == originMCP:
		text = "Calling " + text
	case at == transcript.Finished && c.Origin == originMCP:
		text = "Called " + text
	}
	return oneLine(text)
}

// originMCP is the origin of the tools of MCP servers.
const originMCP = "mcp"

// readableName replaces the name under which models know an MCP tool (server__tool) with the server
// and the tool. Without a summary, clients would show a text that names neither.
func readableName(c transcript.Call, summary string) string {
	if c.Origin != originMCP {
		return summary
	}
	_, rest, _ := strings.Cut(summary, c.Server+"__"+c.Name)
	return c.Server + ": " + c.Name + rest
}

// withArguments adds to a summary the arguments that it does not show yet.
func withArguments(text string, call event.Tool, arguments json.RawMessage) string {
	shell := call.Server == tools.Native && (call.Name == "shell_command" || call.Name == "git")
	var parts []string
	for _, a := range argumentList(arguments) {
		switch {
		case shell && a.name == "command":
			before, _, _ := strings.Cut(text, "$ ") // the model's description of the command
			text = before + "$ " + strings.TrimSpace(a.value)
		case shell && call.Name == "git": // the summary has the operation and the model's description
		case a.value != "" && (!a.isText || !strings.Contains(text, a.value)):
			parts = append(parts, a.name+": "+a.value)
		}
	}
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return text
}

type argument struct {
	name, value string
	isText      bool
}

// argumentList returns the arguments of a call in the order of the model's JSON.
func argumentList(raw json.RawMessage) []argument {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var out []argument
	for d.More() {
		name, err := d.Token()
		var value json.RawMessage
		if err != nil || d.Decode(&value) != nil {
			return out
		}
		var text string
		isText := json.Unmarshal(value, &text) == nil
		if !isText {
			text = string(value)
		}
		out = append(out, argument{fmt.Sprint(name), text, isText})
	}
	return out
}

// oneLine joins the lines of a text and marks the line ends: some clients cannot show two lines,
// and two commands must not look like one.
func oneLine(text string) string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n"), "\n")
	return visible.Text(strings.Join(lines, " ⏎ "))
}

package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// stage of a call, as far as its summary differs.
type stage int

const (
	announced stage = iota
	running
	finished
	rejected
)

// summary is a call in a few words, and the whole call when the user has to decide: some
// clients show nothing else then.
func (m *mapper) summary(c *callState, at stage) string {
	b := c.judged
	if b.Summary == "" {
		return c.Summary
	}
	text := c.words(b.Summary)
	switch {
	case b.Details != nil && b.Details.FileChange != nil:
		if m.client == clientEmacs { // puts the name behind it
			text = strings.Replace(text, " "+filepath.Base(b.Details.FileChange.Path), "", 1)
		}
	case at == announced && b.Manual:
		text = whole(text, c.ToolCall, b.Arguments)
	case at == running && c.Origin == originMCP:
		text = "Calling " + text
	case at == finished && c.Origin == originMCP:
		text = "Called " + text
	}
	return oneLine(text)
}

// originMCP is the origin of the tools of MCP servers.
const originMCP = "mcp"

// words turns the name of an MCP server's tool, as models know it, into words. Without a
// summary, clients make up one that names neither.
func (c *callState) words(summary string) string {
	if c.Origin != originMCP {
		return summary
	}
	words := c.Server + ": " + c.Name
	_, rest, _ := strings.Cut(summary, c.Server+"__"+c.Name)
	return words + rest
}

// whole adds to a summary what it leaves out of a call's arguments.
func whole(text string, call protocol.ToolCall, arguments json.RawMessage) string {
	shell := call.Server == tools.Native && (call.Name == "shell_command" || call.Name == "git")
	var parts []string
	for _, a := range inOrder(arguments) {
		switch {
		case shell && a.name == "command":
			before, _, _ := strings.Cut(text, "$ ") // the model's words for it
			text = before + "$ " + strings.TrimSpace(a.value)
		case shell && call.Name == "git": // the operation and the model's words
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

// inOrder returns the arguments of a call in the order in which the model gave them.
func inOrder(raw json.RawMessage) []argument {
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

// oneLine shows a text in one line without hiding where its lines end: some clients fail on
// two lines, and two commands are not one.
func oneLine(text string) string {
	lines := strings.Split(strings.ReplaceAll(strings.TrimSpace(text), "\r\n", "\n"), "\n")
	return visible.Text(strings.Join(lines, " ⏎ "))
}

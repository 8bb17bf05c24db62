package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Several clients show nothing but the title when they ask for permission. So it has all that
// is agreed to: a command as a whole, the paths, what a foreign tool is called with.

// maxTitle bounds what a title shows of a command or of arguments, in bytes.
const maxTitle = 4 << 10

// titleOf is what a call that is complete is called; known is what it was called before.
func titleOf(s stage, known string) string {
	if command := commandOf(s); command != "" {
		return quoted(command)
	}
	if s.Summary == "" {
		return known
	}
	if s.Server != "eca" { // some clients take what stands in front of a colon for the title
		return oneLine(strings.Replace(s.Summary, "tool: ", "tool ", 1))
	}
	return oneLine(s.Summary)
}

// askedTitle is what a call is called when the user is asked about it, beside its diffs.
// Paths are said even if the title seems to have them: it may have a longer one. Those that
// are relative are below the first of roots.
func askedTitle(s stage, title string, hasDiffs bool, roots []string) string {
	switch {
	case hasDiffs:
		return title
	case commandOf(s) != "":
		if dir := dirOf(s, roots); dir != "" {
			title += " in " + quoted(dir)
		}
	case kindOf(s) == "other":
		if args := string(bytes.TrimSpace(s.Arguments)); args != "" && args != "{}" {
			title += " " + quoted(args)
		}
	default:
		for _, path := range pathsOf(s, roots) {
			title += " " + quoted(path)
		}
	}
	return title
}

// commandOf is what a shell is to run; empty for other calls.
func commandOf(s stage) string {
	var args struct {
		Command lenient[string] `json:"command"`
	}
	if kindOf(s) != "execute" || json.Unmarshal(s.Arguments, &args) != nil {
		return ""
	}
	return strings.TrimSpace(args.Command.Value)
}

// dirOf is the folder that a command is to run in, if it names one.
func dirOf(s stage, roots []string) string {
	var args struct {
		Dir lenient[string] `json:"working_directory"`
	}
	if kindOf(s) != "execute" || json.Unmarshal(s.Arguments, &args) != nil || args.Dir.Value == "" {
		return ""
	}
	return workspace.Abs(roots, args.Dir.Value)
}

// quoted is text as Markdown shows it unchanged, in one line, and says so if it is cut.
func quoted(text string) string {
	more := ""
	if len(text) > maxTitle {
		more = fmt.Sprintf(" … (%d bytes in all)", len(text))
		text = strings.ToValidUTF8(text[:maxTitle], "")
	}
	text = oneLine(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if fence != "`" { // a backtick at the edge must not join the fence
		text = " " + text + " "
	}
	return fence + text + fence + more
}

// oneLine is text in one line, with all that could hide something in it written out.
func oneLine(text string) string {
	return visible.Text(strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ", "\r", " ⏎ ", "\t", " ").Replace(text))
}

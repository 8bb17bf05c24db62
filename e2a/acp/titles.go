package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Some clients show only the title when they ask for permission. So the title contains everything
// that the user agrees to: the complete command, the paths, and the arguments of tools that are not
// eca's.

// maxTitle limits the length of a command or of arguments in a title, in bytes.
const maxTitle = 4 << 10

// titleOf returns the title of a complete call. known is its previous title, which is used if the
// call has no summary.
func titleOf(c transcript.Call, known string) string {
	if command := commandOf(c); command != "" {
		return quoted(command)
	}
	summary := summaryOf(c)
	if summary == "" {
		return known
	}
	if c.Server != "eca" { // some clients show only the text before a colon
		return oneLine(strings.Replace(summary, "tool: ", "tool ", 1))
	}
	return oneLine(summary)
}

// permissionTitle returns the title for asking about a call. Unless diffs are shown with it, it names
// the folder, the arguments or the paths of the call. It adds paths even if the title seems to
// contain them, because the match may be part of a longer path. Relative paths are below the first of
// roots.
func permissionTitle(c transcript.Call, title string, hasDiffs bool, roots []string) string {
	switch {
	case hasDiffs:
		return title
	case commandOf(c) != "":
		if dir := dirOf(c, roots); dir != "" {
			title += " in " + quoted(dir)
		}
	case kindOf(c) == "other":
		if args := string(bytes.TrimSpace(c.Arguments())); args != "" && args != "{}" {
			title += " " + quoted(args)
		}
	default:
		for _, path := range pathsOf(c, roots) {
			title += " " + quoted(path)
		}
	}
	return title
}

// commandOf returns the command of a shell call; it is empty for other calls.
func commandOf(c transcript.Call) string {
	var args struct {
		Command e2a.Optional[string] `json:"command"`
	}
	if kindOf(c) != "execute" || json.Unmarshal(c.Arguments(), &args) != nil {
		return ""
	}
	return strings.TrimSpace(args.Command.Value)
}

// dirOf returns the working directory of a shell call, or "" if the call names none.
func dirOf(c transcript.Call, roots []string) string {
	var args struct {
		Dir e2a.Optional[string] `json:"working_directory"`
	}
	if kindOf(c) != "execute" || json.Unmarshal(c.Arguments(), &args) != nil || args.Dir.Value == "" {
		return ""
	}
	return workspace.Abs(roots, args.Dir.Value)
}

// quoted returns text on one line as a Markdown code span, cut to maxTitle with a note.
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

// oneLine returns text on one line, with invisible characters escaped.
func oneLine(text string) string {
	return visible.Text(strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ", "\r", " ⏎ ", "\t", " ").Replace(text))
}

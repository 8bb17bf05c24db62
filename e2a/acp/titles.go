package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
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
		return strings.Replace(s.Summary, "tool: ", "tool ", 1)
	}
	return s.Summary
}

// askedTitle is what a call is called when the user is asked about it, beside its diffs.
func askedTitle(s stage, title string, hasDiffs bool) string {
	if hasDiffs || commandOf(s) != "" {
		return title
	}
	places := locations(s)
	for _, l := range places {
		if path, _ := l.(object)["path"].(string); !strings.Contains(title, path) {
			title += " " + quoted(path)
		}
	}
	if args := string(bytes.TrimSpace(s.Arguments)); kindOf(s) == "other" && len(places) == 0 && args != "" && args != "{}" {
		title += " " + quoted(args)
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

// quoted is text as Markdown shows it unchanged, in one line, and says so if it is cut.
func quoted(text string) string {
	more := ""
	if len(text) > maxTitle {
		more = fmt.Sprintf(" … (%d bytes in all)", len(text))
		text = strings.ToValidUTF8(text[:maxTitle], "")
	}
	text = strings.NewReplacer("\r\n", " ⏎ ", "\n", " ⏎ ", "\r", " ⏎ ", "\t", " ").Replace(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if fence != "`" { // a backtick at the edge must not join the fence
		text = " " + text + " "
	}
	return fence + text + fence + more
}

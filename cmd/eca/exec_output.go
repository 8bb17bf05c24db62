package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/internal/visible"
)

// execScreen shows a run: the answer on stdout, eca's own messages on stderr.
type execScreen struct {
	stdout, stderr io.Writer
	json           bool // stdout only has lines of JSON
	document       bool // the answer is printed only when it is complete and checked
	oneOutput      bool // stdout is a terminal, or the same as stderr

	midLine bool // the current line of the answer has not ended
	printed bool // a part of the answer was printed
	gap     bool // a blank line belongs before the next part
}

// sameOutput reports whether stderr goes to the same file as stdout, as with 2>&1.
func sameOutput(stdout *os.File, stderr io.Writer) bool {
	file, ok := usage.File(stderr)
	if !ok {
		return false
	}
	a, errA := stdout.Stat()
	b, errB := file.Stat()
	return errA == nil && errB == nil && os.SameFile(a, b)
}

// print writes a part of the answer to stdout.
func (s *execScreen) print(text string) {
	if s.json || s.document || text == "" {
		return
	}
	if s.gap {
		fmt.Fprintln(s.stdout)
		s.gap = false
	}
	fmt.Fprint(s.stdout, text)
	s.midLine = !strings.HasSuffix(text, "\n")
	s.printed = true
}

// endLine ends the current line of the answer, if necessary.
func (s *execScreen) endLine() {
	if s.midLine {
		fmt.Fprintln(s.stdout)
		s.midLine = false
	}
}

// paragraph ends a part of the answer. A blank line separates it from the next part, because stdout
// does not show the tool calls between them.
func (s *execScreen) paragraph() {
	s.endLine()
	s.gap = s.printed
}

// noteLocked writes a separate line to stderr.
func (s *execScreen) noteLocked(line string) {
	if s.json || line == "" {
		return
	}
	if s.oneOutput { // otherwise the answer and the notes do not mix
		s.endLine()
	}
	fmt.Fprintln(s.stderr, line)
}

// note writes a separate line to stderr.
func (c *execClient) note(line string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.noteLocked(line)
}

// sandboxNote begins the lines about the sandbox in the results of tools.
const sandboxNote = "[sandbox: "

// noteFailure shows why a call failed; c.mu is held.
func (c *execClient) noteFailure(v execContent) {
	why := ""
	for i, out := range v.Outputs {
		text := strings.TrimSpace(out.Text)
		if stderr, ok := strings.CutPrefix(text, "Stderr:\n"); ok {
			why += "; " + stderr[strings.LastIndexByte(stderr, '\n')+1:]
		} else if i == 0 {
			why, _, _ = strings.Cut(text, "\n")
		}
	}
	c.noteLocked("  failed: " + v.label(c.root()) + ": " + why)
}

// hookFinished records why a hook rejected a call, and shows what a hook printed or why it failed; c.mu
// is held. If a hook of a call fails, the engine reports that and the consequence.
func (c *execClient) hookFinished(chatID string, v execContent) {
	const rejects = "2" // the exit code
	c.calls["hook "+v.ID].markEnded()
	id, why := chatID+" "+v.ToolCallID, strings.Join(strings.Fields(string(v.Error)), " ")
	by, output := "the hook "+v.Name, strings.Join(strings.Fields(v.Output), " ")
	switch {
	case v.ToolCallID == "" || v.Failed:
	case string(v.Status) == rejects:
		c.hookReasons[id] = strings.TrimSuffix(by+": "+why, ": ")
	case strings.Contains("\n"+v.Output, "\nApproval: deny"):
		_, context, _ := strings.Cut(output, " AdditionalContext: ")
		c.hookReasons[id] = strings.TrimSuffix(by+": "+context, ": ")
	case strings.HasPrefix(v.Output, "UpdatedInput: ") && c.hookReasons[id] == "":
		c.hookReasons[id] = by + ", which changed its arguments"
	}
	switch {
	case v.Failed && v.ToolCallID == "":
		c.noteLocked("· hook " + v.Name + " failed: " + why + "; eca continued without it, because a hook that fails does not block (exit code 2 does)")
	case !v.Failed && output != "":
		c.noteLocked("· hook " + v.Name + ": " + shorten.Bytes(output, maxHookOutput))
	}
}

// maxHookOutput is how much of a hook's output is shown, in bytes.
const maxHookOutput = 500

// noteSandbox shows how the sandbox affected a call; c.mu is held.
func (c *execClient) noteSandbox(v execContent) {
	for _, stop := range v.SandboxStops {
		if !stop.Decided {
			c.sandboxStops.add(stop)
		}
	}
	for _, out := range v.Outputs {
		if !strings.HasPrefix(out.Text, sandboxNote) {
			continue
		}
		for line := range strings.Lines(out.Text) {
			note := strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line, sandboxNote)), "]")
			note, _, _ = strings.Cut(note, "; call again") // the rest is advice for the model
			c.noteLocked("  sandbox: " + note)
		}
	}
}

// continuation returns a label and the command line that continues a chat, with the flags for the
// configuration and the directory.
func (f execFlags) continuation(label, configFile, chatID string) string {
	line := label + ": eca exec"
	if configFile != "" {
		line += " --config-file " + visible.Argument(configFile)
	}
	if f.folder != "" {
		line += " -C " + visible.Argument(f.folder)
	}
	return line + " --chat " + chatID + ` "..."`
}

// writeLine writes a line of JSON.
func writeLine(w io.Writer, v any) {
	raw, err := json.Marshal(v)
	if err == nil {
		fmt.Fprintf(w, "%s\n", raw)
	}
}

// writeAbortedResult writes the last line of --json for a run that failed before its prompt was sent.
func writeAbortedResult(w io.Writer, code int, failed error) {
	reason, cause := "failed", usage.Message(failed)
	if code == exitInterrupted {
		reason, cause = "stopped", "interrupted"
	}
	writeLine(w, map[string]any{"type": "result", "text": "", "exitReason": reason, "exitCode": code, "error": cause})
}

// wantsJSON reports whether the arguments of eca exec contain --json. It does not depend on the
// parsed flags, because parsing fails if another argument is invalid.
func wantsJSON(args []string) bool {
	for _, a := range args {
		value, given := strings.CutPrefix(a, "--json=")
		switch on, err := strconv.ParseBool(value); {
		case a == "--":
			return false
		case a == "--json", given && err == nil && on:
			return true
		}
	}
	return false
}

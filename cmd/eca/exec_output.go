package main

import (
	"fmt"
	"regexp"
	"runtime"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
)

// print writes a part of the answer to stdout; c.mu is held.
func (c *execClient) print(text string) {
	if c.flags.json || c.flags.schema != "" || text == "" {
		return
	}
	if c.gap {
		fmt.Fprintln(c.stdout)
		c.gap = false
	}
	fmt.Fprint(c.stdout, visible.Text(text))
	c.midLine = !strings.HasSuffix(text, "\n")
	c.printed = true
}

// endLine ends a line of the answer that has not ended; c.mu is held.
func (c *execClient) endLine() {
	if c.midLine {
		fmt.Fprintln(c.stdout)
		c.midLine = false
	}
}

// paragraph ends a part of the answer: a blank line separates it from the next part, which
// stdout has without the tool calls between them. c.mu is held.
func (c *execClient) paragraph() {
	c.endLine()
	c.gap = c.printed
}

// sandboxNote is how the tools begin what they say of the sandbox in a result.
const sandboxNote = "[sandbox: "

// failure shows why a call failed; c.mu is held.
func (c *execClient) failure(v execContent) {
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

// sandboxNotes shows what the sandbox did to a call; c.mu is held.
func (c *execClient) sandboxNotes(v execContent) {
	for _, out := range v.Outputs {
		if !strings.HasPrefix(out.Text, sandboxNote) {
			continue
		}
		for line := range strings.Lines(out.Text) {
			note := strings.TrimSuffix(strings.TrimSpace(strings.TrimPrefix(line, sandboxNote)), "]")
			note, _, _ = strings.Cut(note, "; call again") // which is for the model
			c.stopped = c.stopped || strings.Contains(note, " refused")
			c.noteLocked("  sandbox: " + note)
		}
	}
}

// continuation is the command line that continues a chat, with the flags without which it would
// be another configuration's, or another directory's.
func (c *execClient) continuation(chatID string) string {
	line := "Continue with: eca exec"
	if c.configFile != "" {
		line += " --config-file " + shellWord(c.configFile)
	}
	if c.flags.folder != "" {
		line += " -C " + shellWord(c.flags.folder)
	}
	return line + " --chat " + chatID + ` "..."`
}

// shellWord quotes a word for the shell of the platform, if it has to be.
func shellWord(word string) string {
	switch {
	case regexp.MustCompile(`^[\w@%+=:,./\\-]+$`).MatchString(word) && (runtime.GOOS == "windows" || !strings.Contains(word, `\`)):
		return word
	case runtime.GOOS == "windows":
		return `"` + word + `"`
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

package main

import (
	"fmt"
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
	why, stderr := "", ""
	for i, out := range v.Outputs {
		text := strings.TrimSpace(out.Text)
		rest, isStderr := strings.CutPrefix(text, "Stderr:\n")
		note, isNote := strings.CutPrefix(text, sandboxNote)
		switch {
		case isNote:
			c.stopped = true
			note, _, _ = strings.Cut(strings.TrimSuffix(note, "]"), "; call again")
			stderr = "the sandbox stopped it: " + note
		case isStderr && stderr == "":
			stderr = rest[strings.LastIndexByte(rest, '\n')+1:]
		case i == 0:
			why, _, _ = strings.Cut(text, "\n")
		}
	}
	if stderr != "" {
		why += "; " + stderr
	}
	c.noteLocked("  failed: " + v.label(c.root()) + ": " + strings.TrimPrefix(why, "; "))
}

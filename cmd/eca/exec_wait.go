package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/mcp"
)

const (
	// noticeAfter is how long something is awaited before the user is told what.
	noticeAfter = 2 * time.Second
	// silentAfter is how long a model may say nothing before the user is told, and silentAgain
	// how long until that is said again.
	silentAfter = 5 * time.Second
	silentAgain = 30 * time.Second
)

// modelWait tells how long nothing of a model's answer has come. It is not safe for
// concurrent use.
type modelWait struct {
	awaited bool            // it is the model's turn
	calls   map[string]bool // tool calls that run
	heard   time.Time
	next    time.Duration // the silence after which the user is told
}

// heed takes a content of the chat.
func (w *modelWait) heed(v execContent, now time.Time) {
	w.heard, w.next = now, silentAfter
	switch v.Type {
	case "progress":
		w.awaited = v.State == "running" && (v.Text == "Waiting model" || v.Text == "Generating" || strings.HasPrefix(v.Text, "⏳"))
	case "toolCallRun", "toolCallRunning":
		if w.calls == nil {
			w.calls = map[string]bool{}
		}
		w.calls[v.ID] = true
	case "toolCalled", "toolCallRejected":
		delete(w.calls, v.ID)
		w.awaited = true
	}
}

// due returns how long the model has been silent if the user is to be told now; else, or
// after that, in is when to look again.
func (w *modelWait) due(now time.Time) (silent, in time.Duration) {
	if !w.awaited || len(w.calls) > 0 {
		return 0, silentAfter
	}
	silent = now.Sub(w.heard)
	if silent < w.next {
		return 0, w.next - silent
	}
	w.next = silent + silentAgain
	return silent, silentAgain
}

// lookForSilence says so if the model has been silent for long, and returns when to look
// again.
func (c *execClient) lookForSilence(model string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	silent, in := c.wait.due(time.Now())
	if silent == 0 {
		return in
	}
	text := fmt.Sprintf("⏳ Nothing heard from %s yet, for %s", cmp.Or(c.daemon.ModelHost(model), model), silent.Round(time.Second))
	if limit := c.daemon.AnswerLimit(model); limit > 0 {
		text += fmt.Sprintf("; an answer must begin within %s", limit)
	}
	c.noteLocked(text)
	if c.flags.json && c.begun {
		c.line(map[string]any{"type": "waiting", "model": model, "host": c.daemon.ModelHost(model), "seconds": int(silent.Seconds()), "text": text})
	}
	return in
}

// noticeLater says what is waited for if that takes long; stop the timer when it is there.
func noticeLater(stderr io.Writer, text string) *time.Timer {
	return time.AfterFunc(noticeAfter, func() { fmt.Fprintln(stderr, "⏳ "+text) })
}

// awaiting says what is waited for if that takes long; stop ends that.
func (c *execClient) awaiting(what func() string) (stop func()) {
	timer := time.AfterFunc(noticeAfter, func() {
		if text := what(); text != "" {
			c.note("⏳ " + text)
		}
	})
	return func() { timer.Stop() }
}

// startingServers names the MCP servers that have not started yet.
func (c *execClient) startingServers() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(c.daemon.Config().MCPServers)) {
		if s, _ := c.daemon.MCPStatus(name, ""); s.State == mcp.Starting {
			out = append(out, name)
		}
	}
	return out
}

// missingServers says which MCP servers the prompt goes on without.
func (c *execClient) missingServers() {
	for _, name := range slices.Sorted(maps.Keys(c.daemon.Config().MCPServers)) {
		s, _ := c.daemon.MCPStatus(name, "")
		switch s.State {
		case mcp.Starting:
			c.note(fmt.Sprintf("The MCP server %s has not started within %s, so its tools are missing; `eca mcp test %s` shows why.", printable(name), serverPatience, printable(name)))
		case mcp.Failed:
			c.note(fmt.Sprintf("The MCP server %s does not run, so its tools are missing: %s", printable(name), printable(c.daemon.Presentable(s.Reason))))
		case mcp.NeedsLogin:
			c.note(fmt.Sprintf("The MCP server %s needs a login, so its tools are missing: %s", printable(name), printable(c.daemon.Presentable(s.Reason))))
		}
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/daemon/providers"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/mcp"
)

const (
	// noticeAfter is how long a wait lasts before the user sees its reason.
	noticeAfter = 2 * time.Second
	// silentAfter is how long a model may send nothing before the user is notified. silentAgain is
	// the time until the next notice.
	silentAfter = 5 * time.Second
	silentAgain = 30 * time.Second
)

// modelSilence measures how long the model has sent nothing. It is not safe for concurrent use.
type modelSilence struct {
	answerExpected bool            // the model is expected to send something
	answerBegan    bool            // a part of its answer has arrived
	calls          map[string]bool // running tool calls and hooks
	lastContent    time.Time
	notifyAt       time.Duration // the silence after which the user is notified
}

// callTimer is a tool call or hook that is running or has ended.
type callTimer struct {
	label    string
	started  time.Time
	notifyAt time.Duration // the running time at which the user is notified; 0: the call has ended
}

// markEnded marks a call as ended. The callTimer of a call that was never started is nil.
func (w *callTimer) markEnded() {
	if w != nil {
		w.notifyAt = 0
	}
}

// observe updates w for a content of the chat.
func (w *modelSilence) observe(v execContent, now time.Time) {
	w.lastContent, w.notifyAt = now, silentAfter
	switch v.Type {
	case "text", "reasonText", "toolCallPrepare":
		w.answerBegan = true
	case "progress":
		w.answerExpected = v.State == "running" && (v.Text == "Waiting model" || v.Text == "Generating")
		w.answerBegan = w.answerBegan && v.Text == "Generating"
	case "toolCallRun", "toolCallRunning", "hookActionStarted":
		if w.calls == nil {
			w.calls = map[string]bool{}
		}
		w.calls[v.ID] = true
	case "toolCalled", "toolCallRejected":
		delete(w.calls, v.ID)
		w.answerExpected, w.answerBegan = true, false
	case "hookActionFinished":
		delete(w.calls, v.ID)
	}
}

// due returns how long the model has been silent, if the user is to be notified now; otherwise 0.
// in is the time until the next check.
func (w *modelSilence) due(now time.Time) (silent, in time.Duration) {
	if !w.answerExpected || len(w.calls) > 0 {
		return 0, silentAfter
	}
	silent = now.Sub(w.lastContent)
	if silent < w.notifyAt {
		return 0, w.notifyAt - silent
	}
	w.notifyAt = silent + silentAgain
	return silent, silentAgain
}

// reportSilence notifies the user if the model has been silent or a call has been running for a long
// time. It returns the time until the next check.
func (c *execClient) reportSilence(model string) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	silent, in := c.silence.due(now)
	in = min(in, c.reportLongCalls(now))
	if silent == 0 {
		return in
	}
	limits := c.daemon.AnswerLimits(model)
	what, rule, limit := "Nothing heard from %s yet, for %s", "an answer must begin within", limits.FirstByte
	if c.silence.answerBegan {
		what, rule, limit = "Nothing more heard from %s for %s", "the provider must send more within", limits.Idle
	}
	text := fmt.Sprintf("⏳ "+what, cmp.Or(c.daemon.ModelHost(model), model), silent.Round(time.Second))
	if limit > 0 {
		text += fmt.Sprintf("; %s %s", rule, limit)
	}
	c.noteLocked(text)
	if c.flags.json && c.startWritten {
		c.writeLine(map[string]any{"type": "waiting", "model": model, "host": c.daemon.ModelHost(model), "seconds": int(silent.Seconds()), "text": text})
	}
	return in
}

// reportLongCalls notifies the user of calls that have been running for a long time, and returns the time
// until the next check.
func (c *execClient) reportLongCalls(now time.Time) time.Duration {
	in := silentAfter
	for _, id := range slices.Sorted(maps.Keys(c.calls)) {
		call := c.calls[id]
		took := now.Sub(call.started)
		switch {
		case call.notifyAt == 0:
		case took < call.notifyAt:
			in = min(in, call.notifyAt-took)
		default:
			call.notifyAt = took + silentAgain
			c.noteLocked(fmt.Sprintf("⏳ Running for %s: %s", took.Round(time.Second), call.label))
		}
	}
	return in
}

// noticeIfSlow prints text after noticeAfter. The caller stops the timer when the wait is over.
func noticeIfSlow(stderr io.Writer, text string) *time.Timer {
	return time.AfterFunc(noticeAfter, func() { fmt.Fprintln(stderr, "⏳ "+text) })
}

// noteIfSlow shows the reason for a wait after noticeAfter. The caller calls stop when the wait is over.
func (c *execClient) noteIfSlow(what func() string) (stop func()) {
	timer := time.AfterFunc(noticeAfter, func() {
		if text := what(); text != "" {
			c.note("⏳ " + text)
		}
	})
	return func() { timer.Stop() }
}

// startServers starts the MCP servers, waits for them, and reports those that are not available. It
// fails if a rule restricts a tool that a running server does not have.
func (c *execClient) startServers(run context.Context) error {
	ctx, cancel := context.WithTimeout(run, serverPatience)
	defer cancel()
	stop := c.noteIfSlow(func() string {
		names := c.startingServers()
		if len(names) == 0 {
			return ""
		}
		return fmt.Sprintf("Waiting for MCP servers to start, up to %s: %s", serverPatience, printable(strings.Join(names, ", ")))
	})
	c.daemon.StartMCPServers(ctx)
	stop()
	if run.Err() != nil { // after Ctrl-C, nothing is sent to a model
		return nil
	}
	c.reportMissingServers()
	var lost []string
	for _, p := range c.daemon.BadServerTools() {
		if p.Restricts() {
			lost = append(lost, printable(p.String()))
		} else {
			c.note(printable(p.String()))
		}
	}
	if len(lost) > 0 {
		return fmt.Errorf("the configuration may differ from what you intended; correct it:\n%s", strings.Join(lost, "\n"))
	}
	return nil
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

// reportMissingServers reports the MCP servers whose tools are not available to the prompt.
func (c *execClient) reportMissingServers() {
	for _, name := range slices.Sorted(maps.Keys(c.daemon.Config().MCPServers)) {
		s, _ := c.daemon.MCPStatus(name, "")
		switch s.State {
		case mcp.Starting:
			c.note(fmt.Sprintf("The MCP server %s has not started within %s, so its tools are missing; `eca mcp test %s` shows why.", printable(name), serverPatience, visible.Argument(name)))
		case mcp.Failed:
			c.note(fmt.Sprintf("The MCP server %s does not run, so its tools are missing: %s", printable(name), printable(c.daemon.Presentable(c.daemon.FailureReason(s)))))
		case mcp.NeedsLogin:
			c.note(fmt.Sprintf("The MCP server %s needs a login, so its tools are missing: %s", printable(name), printable(c.daemon.Presentable(c.daemon.FailureReason(s)))))
		}
	}
}

// showEarlyNotices shows the notices about the configuration that were held back until the check.
func (c *execClient) showEarlyNotices() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range c.earlyNotices {
		c.noteLocked(text)
	}
	c.checked, c.earlyNotices = true, nil
}

// awaitNotices waits until the first notices about the configuration have arrived, which may be later
// than the end of a short turn.
func awaitNotices(ctx context.Context, d *daemon.Daemon, arrived <-chan struct{}) {
	const limit = 2 * time.Second
	if d.Config().Conformance().ReferenceContent { // the server then does not mark their end
		return
	}
	select {
	case <-arrived:
	case <-time.After(limit):
	case <-ctx.Done():
	}
}

// repeatsUnavailable reports whether a notice only names the providers without usable models. The
// error at the end of the run names them too.
func (c *execClient) repeatsUnavailable(notice string) bool {
	unavailable := c.daemon.Unavailable()
	defaultModel := c.daemon.ModelChoice().Default
	return len(unavailable) > 0 && (defaultModel == "" || defaultModel == providers.DemoModel) && strings.HasPrefix(notice, unavailable[0])
}

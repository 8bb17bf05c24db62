package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
)

const (
	maxLogs = 64 << 10 // bytes of the log of a step
	maxLine = 300      // bytes of one of its lines
)

// record is what happened in one step: a fold over the turn's events.
type record struct {
	roots   []string // of the workspace, as named and as resolved
	started time.Time

	texts   []*strings.Builder // of the model, cut where it called tools
	open    bool               // the last one goes on
	notices []string           // of eca itself
	command bool               // the message was a command: its notices are the answer

	calls   []*call // in the order in which they were decided about
	byID    map[string]*call
	written map[string]*strings.Builder // arguments of calls that are still being written
	files   []string                    // that tools changed, as the workspace names them

	model, agent     string
	usage            tokenCounts
	cost             float64 // US dollars
	priced, unpriced bool    // there were responses with, and without, a known price

	mark    time.Time // since when the model has been working
	modelMS int64
	toolMS  int64
	logs    strings.Builder
	cut     bool
	end     *event.TurnFinished
}

// call is one call of a tool.
type call struct {
	id, name  string
	chat      string // in which its id is unique
	parent    string // the call whose subagent made it
	arguments json.RawMessage
	reason    string // of the policy
	state     callState
	result    string
	began     time.Time // zero until it runs
	elapsed   int64     // milliseconds
}

type callState int

const (
	pending callState = iota
	succeeded
	failing
	refused
	stopped
)

func newRecord(roots []string, now time.Time) *record {
	return &record{roots: roots, started: now, mark: now, byID: map[string]*call{}, written: map[string]*strings.Builder{}}
}

// next begins the record of a later step of the same turn. Calls that began before may
// still end.
func (r *record) next(now time.Time) *record {
	out := newRecord(r.roots, now)
	out.byID, out.model, out.agent, out.command = r.byID, r.model, r.agent, r.command
	return out
}

// add takes an event of a chat; parent is set for those of a subagent.
func (r *record) add(e event.Event, chat, parent string) {
	key := func(id string) string { return parent + "/" + id }
	switch b := e.Body.(type) {
	case event.ToolProposed:
		r.open = r.open && parent != ""
		r.written[key(b.CallID)] = &strings.Builder{}
	case event.ToolArgsDelta:
		if w := r.written[key(b.CallID)]; w != nil {
			w.WriteString(b.Text)
		}
	case event.ToolJudged:
		r.judged(b, key(b.CallID), chat, parent)
	case event.ToolStarted:
		if c := r.byID[key(b.CallID)]; c != nil {
			c.began = e.Time
		}
	case event.ToolFinished:
		r.finished(r.byID[key(b.CallID)], b)
		r.mark = e.Time
		r.logResult(e.Time, r.byID[key(b.CallID)])
	case event.ToolRejected:
		r.rejected(r.byID[key(b.CallID)], b, e.Time)
		r.mark = e.Time
		r.logResult(e.Time, r.byID[key(b.CallID)])
	}
	if parent == "" {
		r.addOwn(e)
	}
}

// addOwn takes an event that is none of a subagent's.
func (r *record) addOwn(e event.Event) {
	switch b := e.Body.(type) {
	case event.UserMessage:
		r.open, r.command = false, b.Command && b.Prompt == ""
	case event.TurnStarted:
		r.model, r.agent, r.mark = b.Model, b.Agent, e.Time
		r.log(e.Time, "model %s, agent %s", b.Model, b.Agent)
	case event.TextDelta:
		if !r.open {
			r.texts, r.open = append(r.texts, &strings.Builder{}), true
		}
		r.texts[len(r.texts)-1].WriteString(b.Text)
	case event.FileChanged:
		r.changed(b)
	case event.UsageReported:
		r.used(e, b)
	case event.Notice:
		if text := strings.TrimSpace(b.Text); text != "" {
			r.notices = append(r.notices, text)
			r.log(e.Time, "note: %s", text)
		}
	case event.HookFinished:
		r.log(e.Time, "hook %s: exit code %d %s", b.Name, b.Status, b.Error)
	case event.Compacted:
		r.log(e.Time, "the conversation was compacted")
	case event.TurnFinished:
		r.end = &b
		r.log(e.Time, "turn over: %s %s", b.Reason, b.Err)
	}
}

func (r *record) judged(b event.ToolJudged, key, chat, parent string) {
	c := &call{
		id: b.CallID, name: shortName(b.Server, b.Name), chat: chat, parent: parent, arguments: b.Arguments, reason: b.Reason,
	}
	if b.Origin == "unknown" { // as the model said it
		c.name = strings.TrimPrefix(b.Name, tools.Native+"__")
	}
	if c.name == "" {
		c.name = "unknown"
	}
	if w := r.written[key]; w != nil {
		if raw := w.String(); !isObject(raw) && strings.TrimSpace(raw) != "" {
			c.arguments, _ = json.Marshal(map[string]string{"raw": raw}) // strings never fail
		}
		delete(r.written, key)
	}
	r.byID[key] = c
	r.calls = append(r.calls, c)
}

func isObject(text string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &m) == nil && m != nil
}

func (r *record) finished(c *call, b event.ToolFinished) {
	if c == nil {
		return
	}
	c.state, c.result, c.elapsed = succeeded, strings.Join(b.Outputs, "\n"), b.ElapsedMS
	if b.Failed {
		c.state = failing
	}
	r.toolMS += b.ElapsedMS
}

func (r *record) rejected(c *call, b event.ToolRejected, at time.Time) {
	if c == nil {
		return
	}
	c.state = refused
	switch b.Reason {
	case event.RejectedByUser:
		c.result = "nobody approved it: " + c.reason
	case event.RejectedByConfig:
		c.result = c.reason
	case event.RejectedByHook, event.StoppedByHook:
		c.result = "a hook refused it"
	case event.RejectedByStop, event.Interrupted:
		c.state, c.result = stopped, "it was stopped"
		if !c.began.IsZero() {
			c.elapsed = max(0, at.Sub(c.began).Milliseconds())
			r.toolMS += c.elapsed
		}
	}
	if b.Message != "" && c.state == refused {
		c.result = b.Message
	}
}

// changed notes a file that is about to be changed.
func (r *record) changed(b event.FileChanged) {
	for _, path := range []string{b.Path, b.MovedTo} {
		if path == "" {
			continue
		}
		if name := r.name(path); !slices.Contains(r.files, name) {
			r.files = append(r.files, name)
		}
	}
}

// name is a path as seen from the workspace.
func (r *record) name(path string) string {
	for _, root := range r.roots {
		if rel, ok := strings.CutPrefix(path, root); ok && rel != "" && (rel[0] == '/' || rel[0] == '\\') {
			return strings.ReplaceAll(rel[1:], `\`, "/")
		}
	}
	return path
}

func (r *record) used(e event.Event, b event.UsageReported) {
	r.usage.add(b)
	price := "at an unknown price"
	if b.Cost != nil {
		r.cost += *b.Cost
		r.priced = true
		price = fmt.Sprintf("for $%.6f", *b.Cost)
	} else {
		r.unpriced = true
	}
	if b.Purpose == "" {
		r.modelMS += max(0, e.Time.Sub(r.mark).Milliseconds())
		r.mark = e.Time
	}
	r.log(e.Time, "model answered: %d tokens in, %d out, %s %s", b.InputTokens+b.CacheReadTokens+b.CacheWriteTokens, b.OutputTokens, price, b.Purpose)
}

func (r *record) logResult(at time.Time, c *call) {
	if c == nil {
		return
	}
	switch c.state {
	case succeeded:
		r.log(at, "%s %s: done in %d ms", c.name, c.arguments, c.elapsed)
	case failing:
		r.log(at, "%s %s: failed in %d ms: %s", c.name, c.arguments, c.elapsed, c.result)
	case refused:
		r.log(at, "%s %s: refused: %s", c.name, c.arguments, c.result)
	case stopped, pending:
		r.log(at, "%s %s: stopped after %d ms", c.name, c.arguments, c.elapsed)
	}
}

// log adds a line, with the time since the step began.
func (r *record) log(at time.Time, format string, args ...any) {
	if r.cut {
		return
	}
	if r.logs.Len() > maxLogs {
		r.logs.WriteString("...\n")
		r.cut = true
		return
	}
	fmt.Fprintf(&r.logs, "+%dms %s\n", max(0, at.Sub(r.started).Milliseconds()), oneLine(fmt.Sprintf(format, args...), maxLine))
}

// oneLine brings a text into one line of at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	return shortened(text, limit)
}

// shortened cuts a text to at most limit bytes and says so.
func shortened(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "..."
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

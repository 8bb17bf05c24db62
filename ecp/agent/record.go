package agent

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/chat/transcript"
	"github.com/seed-dec29ce4/eca/tools"
)

const (
	maxLogs = 64 << 10 // bytes of the log of a step
	maxLine = 300      // bytes of one of its lines
)

// record collects the output, calls and usage of one step from the events of the turn.
type record struct {
	roots   []string // of the workspace, as given and resolved
	started time.Time

	texts     []*strings.Builder // the model's texts, split where it called tools
	textOpen  bool               // the next piece of text belongs to the last of texts
	notices   []string           // messages of eca itself
	isCommand bool               // the input was a command, whose notices are the answer

	folds map[string]*transcript.Fold // by the id of the call that started a subagent; "" for the turn itself
	calls []*call                     // in the order of the decisions about them
	byID  map[string]*call            // by parent/id
	files []string                    // files that tools changed, relative to the workspace

	model, agent     string
	usage            tokenCounts
	cost             float64 // US dollars
	priced, unpriced bool    // there were responses with a known price, with an unknown price

	modelStart time.Time // when the model began to work on its next response
	modelMS    int64
	toolMS     int64
	logs       strings.Builder
	logsFull   bool // logs reached maxLogs
	end        *event.TurnFinished
}

// call is one call of a tool.
type call struct {
	id, name  string
	chat      string
	parent    string // id of the call that started the subagent; empty for the turn's own calls
	arguments json.RawMessage
	reason    string // why it needed approval
	state     callState
	result    string
	startedAt time.Time // zero until it runs
	elapsedMS int64     // milliseconds
}

type callState int

const (
	callPending callState = iota
	callSucceeded
	callFailed
	callRefused
	callStopped
)

func newRecord(roots []string, now time.Time) *record {
	return &record{roots: roots, started: now, modelStart: now, byID: map[string]*call{}, folds: map[string]*transcript.Fold{}}
}

// forNextStep returns the record for the next step of the same turn. It keeps the known calls, because those
// of earlier steps may still be running.
func (r *record) forNextStep(now time.Time) *record {
	out := newRecord(r.roots, now)
	out.byID, out.folds, out.model, out.agent, out.isCommand = r.byID, r.folds, r.model, r.agent, r.isCommand
	return out
}

// add adds an event of a chat. If it is the chat of a subagent, parent is the call that started it.
func (r *record) add(e event.Event, chat, parent string) {
	if b, ok := e.Body.(event.FileChanged); ok && parent == "" {
		r.addChangedFile(b)
	}
	if r.folds[parent] == nil {
		r.folds[parent] = transcript.New()
	}
	change, ok := r.folds[parent].Add(e)
	if !ok {
		return
	}
	if c, ok := change.Item.(transcript.Call); ok {
		r.textOpen = r.textOpen && (c.Stage != transcript.Announced || parent != "")
		r.updateCall(c, e.Time, chat, parent)
		return
	}
	if parent == "" {
		r.addItem(change)
	}
}

// updateCall records the current stage of a call.
func (r *record) updateCall(c transcript.Call, at time.Time, chat, parent string) {
	key := parent + "/" + c.CallID
	known := r.byID[key]
	//exhaustive:enforce
	switch c.Stage {
	case transcript.Announced:
		return
	case transcript.Judged:
		r.addCall(c, key, chat, parent)
		return
	case transcript.Running:
		if known != nil && known.startedAt.IsZero() {
			known.startedAt = at
		}
		return
	case transcript.Finished:
		r.finishCall(known, c.Result)
	case transcript.Rejected:
		r.rejectCall(known, c.Rejection, at)
	}
	r.modelStart = at
	r.logResult(at, known)
}

// addItem adds an item of the turn itself that is not a call.
func (r *record) addItem(c transcript.Change) {
	switch item := c.Item.(type) {
	case transcript.Prompt:
		r.textOpen, r.isCommand = false, item.Command && item.Prompt == ""
	case transcript.Turn:
		if item.End != nil {
			r.end = item.End
			r.log(c.Time, "turn over: %s %s", item.End.Reason, item.End.Err)
			return
		}
		r.model, r.agent, r.modelStart = item.Model, item.Agent, c.Time
		r.log(c.Time, "model %s, agent %s", item.Model, item.Agent)
	case transcript.Answer:
		if !r.textOpen {
			r.texts, r.textOpen = append(r.texts, &strings.Builder{}), true
		}
		r.texts[len(r.texts)-1].WriteString(item.Piece)
	case transcript.Usage:
		r.addUsage(c.Time, item.UsageReported)
	case transcript.Notice:
		if text := strings.TrimSpace(item.Text); text != "" {
			r.notices = append(r.notices, text)
			r.log(c.Time, "note: %s", text)
		}
	case transcript.Hook:
		if item.Ended {
			r.log(c.Time, "hook %s: exit code %d %s", item.Name, item.Status, item.Error)
		}
	case transcript.Compaction:
		r.notices = append(r.notices, transcript.CompactedText)
		r.log(c.Time, "the conversation was compacted")
	case transcript.Call, transcript.Reasoning, transcript.Report, transcript.Title, transcript.Progress, transcript.NoTasks, transcript.Flag:
	}
}

func (r *record) addCall(t transcript.Call, key, chat, parent string) {
	c := &call{
		id: t.CallID, name: shortName(t.Server, t.Name), chat: chat, parent: parent, arguments: t.Judgment.Arguments, reason: t.Judgment.Reason,
	}
	if t.Origin == "unknown" { // the tool does not exist, so the name is what the model wrote
		c.name = strings.TrimPrefix(t.Name, tools.Native+"__")
	}
	if c.name == "" {
		c.name = "unknown"
	}
	if !isObject(t.Written) && strings.TrimSpace(t.Written) != "" {
		c.arguments, _ = json.Marshal(map[string]string{"raw": t.Written}) // strings never fail
	}
	r.byID[key] = c
	r.calls = append(r.calls, c)
}

func isObject(text string) bool {
	var m map[string]json.RawMessage
	return json.Unmarshal([]byte(text), &m) == nil && m != nil
}

func (r *record) finishCall(c *call, b event.ToolFinished) {
	if c == nil {
		return
	}
	c.state, c.result, c.elapsedMS = callSucceeded, strings.Join(b.Outputs, "\n"), b.ElapsedMS
	if b.Failed {
		c.state = callFailed
	}
	r.toolMS += b.ElapsedMS
}

func (r *record) rejectCall(c *call, b event.ToolRejected, at time.Time) {
	if c == nil {
		return
	}
	c.state = callRefused
	switch b.Reason {
	case event.RejectedByUser:
		c.result = "not approved: " + c.reason
	case event.RejectedByConfig:
		c.result = c.reason
	case event.RejectedByHook, event.StoppedByHook:
		c.result = "a hook refused it"
	case event.RejectedByStop, event.Interrupted:
		c.state, c.result = callStopped, "it was stopped"
		if !c.startedAt.IsZero() {
			c.elapsedMS = max(0, at.Sub(c.startedAt).Milliseconds())
			r.toolMS += c.elapsedMS
		}
	}
	if b.Message != "" && c.state == callRefused {
		c.result = b.Message
	}
}

// addChangedFile records a file change.
func (r *record) addChangedFile(b event.FileChanged) {
	for _, path := range []string{b.Path, b.MovedTo} {
		if path == "" {
			continue
		}
		if name := r.relativePath(path); !slices.Contains(r.files, name) {
			r.files = append(r.files, name)
		}
	}
}

// relativePath returns a path relative to the workspace, with slashes, or unchanged if it is outside.
func (r *record) relativePath(path string) string {
	for _, root := range r.roots {
		if rel, ok := strings.CutPrefix(path, root); ok && rel != "" && (rel[0] == '/' || rel[0] == '\\') {
			return strings.ReplaceAll(rel[1:], `\`, "/")
		}
	}
	return path
}

func (r *record) addUsage(at time.Time, b event.UsageReported) {
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
		r.modelMS += max(0, at.Sub(r.modelStart).Milliseconds())
		r.modelStart = at
	}
	r.log(at, "model answered: %d tokens in, %d out, %s %s", b.InputTokens+b.CacheReadTokens+b.CacheWriteTokens, b.OutputTokens, price, b.Purpose)
}

func (r *record) logResult(at time.Time, c *call) {
	if c == nil {
		return
	}
	switch c.state {
	case callSucceeded:
		r.log(at, "%s %s: done in %d ms", c.name, c.arguments, c.elapsedMS)
	case callFailed:
		r.log(at, "%s %s: failed in %d ms: %s", c.name, c.arguments, c.elapsedMS, c.result)
	case callRefused:
		r.log(at, "%s %s: refused: %s", c.name, c.arguments, c.result)
	case callStopped, callPending:
		r.log(at, "%s %s: stopped after %d ms", c.name, c.arguments, c.elapsedMS)
	}
}

// log adds a line with the time since the start of the step.
func (r *record) log(at time.Time, format string, args ...any) {
	if r.logsFull {
		return
	}
	if r.logs.Len() > maxLogs {
		r.logs.WriteString("...\n")
		r.logsFull = true
		return
	}
	fmt.Fprintf(&r.logs, "+%dms %s\n", max(0, at.Sub(r.started).Milliseconds()), oneLine(fmt.Sprintf(format, args...), maxLine))
}

// oneLine joins the lines of a text and shortens it to at most limit bytes.
func oneLine(text string, limit int) string {
	text = strings.Join(strings.Fields(text), " ")
	return shorten(text, limit)
}

// shorten cuts a text to at most limit bytes, including "..." at the end.
func shorten(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	const mark = "..."
	return strings.ToValidUTF8(text[:limit-len(mark)], "") + mark
}

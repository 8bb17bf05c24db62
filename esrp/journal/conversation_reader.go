package journal

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
)

// Conversation returns the replayable part of a chat. It returns an error if the journal has no records
// of the chat, or if one cannot be read.
func (c *Chain) Conversation(chatID string) (Conversation, error) {
	calls, err := c.Calls(chatID)
	if err != nil {
		return Conversation{}, err
	}
	if len(calls) == 0 {
		return Conversation{}, fmt.Errorf("the chat %s is not on record", chatID)
	}
	r := conversationReader{c: c, offered: map[string]bool{}}
	for _, turn := range byTurn(calls) {
		if err := r.readTurn(turn); err != nil {
			var left notReplayable
			if !errors.As(err, &left) {
				return Conversation{}, err
			}
			r.out.NotReplayable = left.Error()
			break
		}
	}
	return r.out, nil
}

// byTurn groups the calls of the conversation by turn. It leaves out side requests.
func byTurn(calls []Call) [][]Call {
	var out [][]Call
	at := map[string]int{}
	for _, c := range calls {
		turn := tag(c.Request, "turn")
		if purpose := param(c.Request, "purpose"); turn == "" || purpose == string(llm.PurposeTitle) || purpose == string(llm.PurposeSampling) {
			continue
		}
		n, ok := at[turn]
		if !ok {
			n = len(out)
			at[turn], out = n, append(out, nil)
		}
		out[n] = append(out[n], c)
	}
	return out
}

func tag(r esrp.Request, name string) string {
	if r.Context == nil {
		return ""
	}
	v, _ := r.Context.Tags.Get(name)
	return v.Text
}

func param(r esrp.Request, name string) string {
	v, _ := r.Params.Get(name)
	return v.Text
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// notReplayable is the error for a turn that cannot be replayed, with the record that shows it.
type notReplayable struct {
	seq    uint64
	id     esrp.UUID
	reason string
}

func (e notReplayable) Error() string {
	return fmt.Sprintf("line %d of the journal, request %s: %s", e.seq, e.id, e.reason)
}

func cannotReplay(c Call, format string, args ...any) error {
	return notReplayable{c.Seq, c.Request.ID, fmt.Sprintf(format, args...)}
}

// conversationReader reads turns.
type conversationReader struct {
	c       *Chain
	out     Conversation
	offered map[string]bool

	last         *RecordedRequest // the last request of the conversation
	lastMessages []message        // the messages of last, without reasoning, which is not always sent again
	summary      string           // the next request must begin with it instead of the earlier messages
}

// turnReader is the turn being read.
type turnReader struct {
	Turn
	sentResults       map[string]string // results of tool calls as the model got them, by call id
	callCount         int               // number of tool calls in answers
	newCalls          []*toolCall       // tool calls after the last request
	requests          int               // number of requests of the conversation
	continuations     int               // number of requests in a row that continued an answer
	pending           bool              // the summarized conversation ends with a prompt
	beginsWithSummary bool              // the turn begins with a request for a summary
}

func (r *conversationReader) readTurn(calls []Call) error {
	t := &turnReader{sentResults: map[string]string{}}
	for _, call := range calls {
		if err := r.readCall(t, call); err != nil {
			return err
		}
	}
	switch first := calls[0]; {
	case t.requests > 0 && t.beginsWithSummary && r.lastRequest() == nil:
		return cannotReplay(first, "the conversation was compacted, and the journal has nothing from before")
	case t.requests > 0:
	case len(t.Requests) == 0:
		return cannotReplay(first, "the turn has tool calls, but no request that led to them")
	case t.pending || len(t.Requests) > 1:
		return cannotReplay(first, "the turn was ended after the conversation was compacted")
	default:
		t.Compact, t.Prompt = true, "/compact"
		if t.Model == "" && r.last != nil {
			t.Model = r.last.Model
		}
		r.out.Turns = append(r.out.Turns, t.Turn)
		return nil
	}
	if t.beginsWithSummary {
		r.lastRequest().Compacted = true
	}
	return r.addTurn(t, calls)
}

// lastRequest returns the last request of the conversation in the turns read so far.
func (r *conversationReader) lastRequest() *RecordedRequest {
	for _, turn := range slices.Backward(r.out.Turns) {
		for _, a := range slices.Backward(turn.Requests) {
			if !a.Summary {
				return a
			}
		}
	}
	return nil
}

// readCall reads a call of a turn.
func (r *conversationReader) readCall(t *turnReader, call Call) error {
	switch {
	case call.Response == nil:
		return cannotReplay(call, "the call has no answer: it is still running, or eca was killed while it ran")
	case call.Request.Target.Service == ServiceTool:
		return r.readTool(t, call)
	case cancelled(call.Response):
		return cannotReplay(call, "the model's answer was stopped")
	}
	request, err := r.decodeRequest(call)
	if call.Response.Status != esrp.Succeeded && err == nil {
		if request.Failure = failureOf(call); request.Failure == nil {
			return cannotReplay(call, "the model failed in an unknown way, or one that changed the conversation")
		}
	}
	switch purpose := param(call.Request, "purpose"); {
	case err != nil:
		return err
	case len(request.messages) == 0:
		return cannotReplay(call, "the request has no messages")
	case purpose == string(llm.PurposeCompact) && request.Failure != nil:
		return cannotReplay(call, "the model failed to write a summary")
	case purpose == string(llm.PurposeCompact):
		return r.readCompaction(t, call, request)
	case purpose == string(llm.PurposeTurn):
		return r.readRequest(t, call, request)
	default:
		return cannotReplay(call, "a request for %s is not part of a conversation", purpose)
	}
}

func (r *conversationReader) readTool(t *turnReader, call Call) error {
	c, err := r.toolCall(call)
	if err != nil {
		return err
	}
	switch c.outcome.Rejection {
	case "", event.RejectedByUser, RefusedInvalid:
	case event.RejectedByConfig:
		if len(c.outcome.Result.Outputs) > 0 {
			return cannotReplay(call, "there was no user to ask about the call of a background subagent")
		}
	case event.RejectedByHook, event.StoppedByHook:
		return cannotReplay(call, "a hook refused the call")
	default:
		return cannotReplay(call, "the turn was stopped before the call ran")
	}
	if cancelled(call.Response) {
		return cannotReplay(call, "the call was cancelled")
	}
	t.calls, t.newCalls = append(t.calls, c), append(t.newCalls, c)
	return nil
}

func cancelled(r *esrp.Response) bool {
	if r.Error == nil {
		return false
	}
	v, _ := r.Error.Details.Get("cancelled")
	return v.Bool
}

// failureOf returns the failure of a model if the engine can continue or end after it without
// changing the conversation.
func failureOf(call Call) *llm.Error {
	if call.Response.Error == nil {
		return nil
	}
	kind, ok := strings.CutPrefix(call.Response.Error.Message, modelFailed)
	if !ok || kind == string(llm.ErrContextOverflow) || kind == string(llm.ErrInvalidImage) {
		return nil
	}
	return &llm.Error{Kind: llm.ErrorKind(kind), Message: "as on record"}
}

// newMessages returns the messages that a request adds to those of the previous request: the previous
// answer, results of tools, and texts of the user.
func (r *conversationReader) newMessages(call Call, messages []message) (new []message, err error) {
	plain := withoutReasoning(messages)
	switch {
	case len(plain) == 0:
		return nil, cannotReplay(call, "the request has no messages")
	case r.summary != "":
		_, rest, found := strings.Cut(plain[0].Parts[0].Text, r.summary)
		if !found || rest != "" && !strings.HasPrefix(rest, "\n\nGo on ") {
			return nil, cannotReplay(call, "a hook changed the summary of the conversation")
		}
		return plain[1:], nil
	case r.last == nil:
		return plain, nil
	case len(plain) < len(r.lastMessages) || !reflect.DeepEqual(plain[:len(r.lastMessages)], r.lastMessages):
		return nil, cannotReplay(call, "the conversation was changed")
	}
	new = plain[len(r.lastMessages):]
	hasAnswer := slices.ContainsFunc(r.last.Answer, func(d llm.Delta) bool {
		return d.Kind == llm.ToolStart || d.Kind == llm.TextDelta && d.Text != ""
	})
	if hasAnswer && r.last.Failure == nil && (len(new) == 0 || new[0].Role != llm.Assistant) {
		return nil, cannotReplay(call, "the conversation was changed")
	}
	return new, nil
}

// withoutReasoning returns messages without their reasoning.
func withoutReasoning(messages []message) (out []message) {
	for _, m := range messages {
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p part) bool { return p.Type == "reasoning" })
		if len(m.Parts) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// isPrompt reports whether a message is neither an answer nor a result of a tool.
func (m message) isPrompt() bool {
	return m.Role == llm.User && !slices.ContainsFunc(m.Parts, func(p part) bool { return p.Type == "tool_result" })
}

// readRequest reads a request of the conversation.
func (r *conversationReader) readRequest(t *turnReader, call Call, a *RecordedRequest) error {
	new, err := r.newMessages(call, a.messages)
	switch {
	case err != nil:
		return err
	case t.requests > 0:
		r.last.Continued = r.last.Failure != nil
		if t.continuations++; !r.last.Continued && r.last.hasToolCalls() {
			t.continuations = 0
		}
		t.Continues = max(t.Continues, t.continuations)
		err = r.readBetween(t, call, new)
	default:
		for _, m := range new[:max(0, len(new)-1)] {
			if m.isPrompt() || r.last == nil && r.summary == "" {
				return cannotReplay(call, "unrecorded messages precede the prompt: the chat was forked or imported, was not recorded from its beginning, or the prompt has several messages")
			}
		}
		if t.Prompt, t.Contexts, err = splitPrompt(r.c, a.messages[len(a.messages)-1]); err != nil {
			err = cannotReplay(call, "%v", err)
		}
		t.Model, t.Agent = a.Model, deref(call.Request.Caller.AgentID)
	}
	if err != nil {
		return err
	}
	r.out.Reasoning = r.out.Reasoning || t.requests == 0 && slices.ContainsFunc(a.messages, func(m message) bool {
		return slices.ContainsFunc(m.Parts, func(p part) bool { return p.Type == "reasoning" })
	})
	for _, d := range a.Answer {
		if d.Kind == llm.ToolStart && a.Failure == nil {
			t.callCount++
		}
	}
	r.last, r.lastMessages, r.summary = a, withoutReasoning(a.messages), ""
	t.requests, t.newCalls, t.Requests = t.requests+1, nil, append(t.Requests, a)
	return nil
}

// readCompaction reads a request for a summary. The chat's own model gets the conversation and a question;
// another model gets a transcript.
func (r *conversationReader) readCompaction(t *turnReader, call Call, a *RecordedRequest) error {
	a.Summary = true
	a.asksSummary = len(a.messages) > 1 || slices.ContainsFunc(call.Request.Inputs, func(b esrp.Body) bool { return b.Name == "tools" })
	if a.asksSummary {
		whole := a.messages[:len(a.messages)-1]
		new, err := r.newMessages(call, whole)
		if err == nil && t.requests > 0 && r.summary == "" {
			err = r.readBetween(t, call, new)
		}
		if err != nil {
			return err
		}
		t.pending = whole[len(whole)-1].isPrompt()
		if t.Model == "" {
			t.Model, t.Agent = a.Model, deref(call.Request.Caller.AgentID)
		}
	} else {
		t.SummaryModel = a.Model
	}
	var text strings.Builder
	for _, d := range a.Answer {
		if d.Kind == llm.TextDelta {
			text.WriteString(d.Text)
		}
	}
	if r.summary = strings.TrimSpace(text.String()); r.summary == "" {
		return cannotReplay(call, "the model wrote no summary")
	}
	switch {
	case r.last != nil && r.last.Failure != nil:
		return cannotReplay(call, "the conversation was compacted after an answer that failed")
	case t.requests == 0:
		t.beginsWithSummary = true
	default:
		r.last.Compacted = true
	}
	t.Requests = append(t.Requests, a)
	return nil
}

// readBetween reads the messages after the last answer of the turn: results of tools, and texts of the
// user.
func (r *conversationReader) readBetween(t *turnReader, call Call, new []message) error {
	calls := r.last.hasToolCalls()
	for _, m := range new {
		if m.Role != llm.User {
			continue
		}
		for _, p := range m.Parts {
			switch {
			case p.Type == "tool_result":
				t.sentResults[p.ID] = p.Text
			case p.Type != "text" || len(m.Parts) > 1:
				return cannotReplay(call, "the turn contains something other than text")
			case strings.HasPrefix(p.Text, "<subagent-report "):
				return cannotReplay(call, "a background subagent reported in the turn")
			case r.last.Failure != nil, !calls && mayEndInCode(r.last.Answer):
				// The engine requests the rest automatically.
			case !calls || r.last.Steering != "":
				return cannotReplay(call, "a hook made the turn continue")
			default:
				r.last.Steering = p.Text
			}
		}
	}
	return nil
}

// hasToolCalls reports whether an answer contains tool calls.
func (a *RecordedRequest) hasToolCalls() bool {
	return slices.ContainsFunc(a.Answer, func(d llm.Delta) bool { return d.Kind == llm.ToolStart })
}

// mayEndInCode reports whether an answer may end inside a code block.
func mayEndInCode(answer []llm.Delta) bool {
	n := 0
	for _, d := range answer {
		if d.Kind == llm.TextDelta {
			n += strings.Count(d.Text, "```") + strings.Count(d.Text, "~~~")
		}
	}
	return n > 0
}

// addTurn checks the calls of a turn and adds the turn.
func (r *conversationReader) addTurn(t *turnReader, calls []Call) error {
	ofTools := slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Request.Target.Service != ServiceTool })
	if t.callCount != len(t.calls) {
		return cannotReplay(calls[0], "%d tool calls were made in the turn, but %d are on record", t.callCount, len(t.calls))
	}
	for n, c := range t.calls {
		if made, ok := t.callArguments(c.id); ok && c.outcome.Rejection != RefusedInvalid && !bytes.Equal(made, c.arguments) {
			return cannotReplay(ofTools[n], "a hook changed the arguments of the call")
		}
		c.outcome.GoOn = !slices.Contains(t.newCalls, c)
		// Instructions and hooks may have added to the output of the tool.
		joined := strings.TrimSuffix(strings.Join(c.outcome.Result.Outputs, "\n"), "\n")
		if text, ok := t.sentResults[c.id]; ok && c.outcome.Rejection == "" && strings.HasPrefix(text, joined) {
			c.outcome.Result.Outputs = []string{text}
		}
	}
	refused := func(c *toolCall) bool { return c.outcome.Rejection == event.RejectedByUser }
	if len(t.newCalls) > 0 && !slices.ContainsFunc(t.newCalls, refused) {
		return cannotReplay(ofTools[len(ofTools)-1], "the turn was ended after its last calls")
	}
	r.out.Turns = append(r.out.Turns, t.Turn)
	return nil
}

// callArguments returns the arguments that the model gave to the call with an id. It returns false if no
// call, or more than one, has the id, or if there are no arguments.
func (t *turnReader) callArguments(id string) (arguments []byte, ok bool) {
	for _, a := range t.Requests {
		for _, d := range a.Answer {
			if d.Kind == llm.ToolEnd && d.ID == id {
				if ok {
					return nil, false
				}
				arguments, ok = cleanJSON([]byte(d.Text), func(s string) string { return s }), true
			}
		}
	}
	return arguments, ok && strings.TrimSpace(string(arguments)) != `""`
}

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

// Conversation reads a chat. It is an error if there are no records of it, or if a record cannot be
// read.
func (c *Chain) Conversation(chatID string) (Conversation, error) {
	calls, err := c.Calls(chatID)
	if err != nil {
		return Conversation{}, err
	}
	if len(calls) == 0 {
		return Conversation{}, fmt.Errorf("the chat %s is not on record", chatID)
	}
	r := conversing{c: c, offered: map[string]bool{}}
	for _, turn := range byTurn(calls) {
		if err := r.turn(turn); err != nil {
			var left leftError
			if !errors.As(err, &left) {
				return Conversation{}, err
			}
			r.out.Left = left.Error()
			break
		}
	}
	return r.out, nil
}

// byTurn groups the calls of the conversation by turn; side requests are left out.
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

// leftError says why a turn cannot be replayed, and which record says so.
type leftError struct {
	seq    uint64
	id     esrp.UUID
	reason string
}

func (e leftError) Error() string {
	return fmt.Sprintf("line %d of the journal, request %s: %s", e.seq, e.id, e.reason)
}

func left(c Call, format string, args ...any) error {
	return leftError{c.Seq, c.Request.ID, fmt.Sprintf(format, args...)}
}

// conversing reads turns.
type conversing struct {
	c       *Chain
	out     Conversation
	offered map[string]bool

	last    *Asked    // request of the conversation
	seen    []message // its messages without reasoning, which is not always sent again
	summary string    // that the next request must begin with instead of the messages
}

// reading is the turn being read.
type reading struct {
	Turn
	said     map[string]string // results as the models got them, by call
	made     int               // calls in answers
	since    []*toolCall       // calls after the last request
	requests int               // requests of the conversation
	inRow    int               // requests in a row that continued an answer
	pending  bool              // the summary covers a conversation that ends with a prompt
	begins   bool              // it begins with a summary
}

func (r *conversing) turn(calls []Call) error {
	t := &reading{said: map[string]string{}}
	for _, call := range calls {
		if err := r.call(t, call); err != nil {
			return err
		}
	}
	switch first := calls[0]; {
	case t.requests > 0 && t.begins && r.lastOfTurns() == nil:
		return left(first, "the conversation was compacted, and nothing of it is on record before")
	case t.requests > 0:
	case len(t.Requests) == 0:
		return left(first, "the turn has calls of tools, and no request that led to them")
	case t.pending || len(t.Requests) > 1:
		return left(first, "the turn was ended after the conversation was compacted")
	default:
		t.Compact, t.Prompt = true, "/compact"
		if t.Model == "" && r.last != nil {
			t.Model = r.last.Model
		}
		r.out.Turns = append(r.out.Turns, t.Turn)
		return nil
	}
	if t.begins {
		r.lastOfTurns().Full = true
	}
	return r.finish(t, calls)
}

// lastOfTurns returns the last request of the conversation in the turns read so far.
func (r *conversing) lastOfTurns() *Asked {
	for _, turn := range slices.Backward(r.out.Turns) {
		for _, a := range slices.Backward(turn.Requests) {
			if !a.Summary {
				return a
			}
		}
	}
	return nil
}

// call reads a call of a turn.
func (r *conversing) call(t *reading, call Call) error {
	switch {
	case call.Response == nil:
		return left(call, "the call has no answer: it was interrupted")
	case call.Request.Target.Service == ServiceTool:
		return r.tool(t, call)
	case cancelled(call.Response):
		return left(call, "the model's answer was stopped")
	}
	asked, err := r.asked(call)
	if call.Response.Status != esrp.Succeeded && err == nil {
		if asked.Failure = failureOf(call); asked.Failure == nil {
			return left(call, "the model failed in a way that changed the conversation, or that is not known")
		}
	}
	switch purpose := param(call.Request, "purpose"); {
	case err != nil:
		return err
	case len(asked.messages) == 0:
		return left(call, "the request has no messages")
	case purpose == string(llm.PurposeCompact) && asked.Failure != nil:
		return left(call, "the model failed to write a summary")
	case purpose == string(llm.PurposeCompact):
		return r.compact(t, call, asked)
	case purpose == string(llm.PurposeTurn):
		return r.request(t, call, asked)
	default:
		return left(call, "a request for %s is not part of a conversation", purpose)
	}
}

func (r *conversing) tool(t *reading, call Call) error {
	c, err := r.toolCall(call)
	if err != nil {
		return err
	}
	switch c.played.Refused {
	case "", event.RejectedByUser, RefusedInvalid:
	case event.RejectedByConfig:
		if len(c.played.Result.Outputs) > 0 {
			return left(call, "nobody could be asked about the call of a subagent in the background")
		}
	case event.RejectedByHook, event.StoppedByHook:
		return left(call, "a hook refused the call")
	default:
		return left(call, "the turn was stopped before the call ran")
	}
	if cancelled(call.Response) {
		return left(call, "the call was cancelled")
	}
	t.calls, t.since = append(t.calls, c), append(t.since, c)
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

// since returns the messages that a request has and the previous one did not: its answer, results
// of tools, and texts of the user.
func (r *conversing) since(call Call, messages []message) (new []message, err error) {
	plain := withoutReasoning(messages)
	switch {
	case len(plain) == 0:
		return nil, left(call, "the request has no messages")
	case r.summary != "":
		_, behind, found := strings.Cut(plain[0].Parts[0].Text, r.summary)
		if !found || behind != "" && !strings.HasPrefix(behind, "\n\nGo on ") {
			return nil, left(call, "a hook changed the summary of the conversation")
		}
		return plain[1:], nil
	case r.last == nil:
		return plain, nil
	case len(plain) < len(r.seen) || !reflect.DeepEqual(plain[:len(r.seen)], r.seen):
		return nil, left(call, "the conversation was changed")
	}
	new = plain[len(r.seen):]
	said := slices.ContainsFunc(r.last.Answer, func(d llm.Delta) bool {
		return d.Kind == llm.ToolStart || d.Kind == llm.TextDelta && d.Text != ""
	})
	if said && r.last.Failure == nil && (len(new) == 0 || new[0].Role != llm.Assistant) {
		return nil, left(call, "the conversation was changed")
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

// request reads a request of the conversation.
func (r *conversing) request(t *reading, call Call, a *Asked) error {
	new, err := r.since(call, a.messages)
	switch {
	case err != nil:
		return err
	case t.requests > 0:
		r.last.GoesOn = r.last.Failure != nil
		if t.inRow++; !r.last.GoesOn && r.last.calls() {
			t.inRow = 0
		}
		t.Continues = max(t.Continues, t.inRow)
		err = r.between(t, call, new)
	default:
		for _, m := range new[:max(0, len(new)-1)] {
			if m.isPrompt() || r.last == nil && r.summary == "" {
				return left(call, "something that is not on record precedes the prompt: the chat was forked or imported, was not recorded from its beginning, or the prompt has several messages")
			}
		}
		if t.Prompt, t.Contexts, err = prompt(r.c, a.messages[len(a.messages)-1]); err != nil {
			err = left(call, "%v", err)
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
			t.made++
		}
	}
	r.last, r.seen, r.summary = a, withoutReasoning(a.messages), ""
	t.requests, t.since, t.Requests = t.requests+1, nil, append(t.Requests, a)
	return nil
}

// compact reads a request for a summary. The chat's own model gets the conversation and a question;
// another model gets a transcript.
func (r *conversing) compact(t *reading, call Call, a *Asked) error {
	a.Summary = true
	a.question = len(a.messages) > 1 || slices.ContainsFunc(call.Request.Inputs, func(b esrp.Body) bool { return b.Name == "tools" })
	if a.question {
		whole := a.messages[:len(a.messages)-1]
		new, err := r.since(call, whole)
		if err == nil && t.requests > 0 && r.summary == "" {
			err = r.between(t, call, new)
		}
		if err != nil {
			return err
		}
		t.pending = whole[len(whole)-1].isPrompt()
		if t.Model == "" {
			t.Model, t.Agent = a.Model, deref(call.Request.Caller.AgentID)
		}
	} else {
		t.Writer = a.Model
	}
	var text strings.Builder
	for _, d := range a.Answer {
		if d.Kind == llm.TextDelta {
			text.WriteString(d.Text)
		}
	}
	if r.summary = strings.TrimSpace(text.String()); r.summary == "" {
		return left(call, "the model wrote no summary")
	}
	switch {
	case r.last != nil && r.last.Failure != nil:
		return left(call, "the conversation was compacted after an answer that failed")
	case t.requests == 0:
		t.begins = true
	default:
		r.last.Full = true
	}
	t.Requests = append(t.Requests, a)
	return nil
}

// between reads the messages after the last answer of the turn: results of tools, and texts of the
// user.
func (r *conversing) between(t *reading, call Call, new []message) error {
	calls := r.last.calls()
	for _, m := range new {
		if m.Role != llm.User {
			continue
		}
		for _, p := range m.Parts {
			switch {
			case p.Type == "tool_result":
				t.said[p.ID] = p.Text
			case p.Type != "text" || len(m.Parts) > 1:
				return left(call, "the turn contains something other than text")
			case strings.HasPrefix(p.Text, "<subagent-report "):
				return left(call, "a subagent in the background reported in the turn")
			case r.last.Failure != nil, !calls && openCode(r.last.Answer):
				// The engine requests the rest automatically.
			case !calls || r.last.Says != "":
				return left(call, "a hook sent the turn on")
			default:
				r.last.Says = p.Text
			}
		}
	}
	return nil
}

// calls reports whether an answer contains tool calls.
func (a *Asked) calls() bool {
	return slices.ContainsFunc(a.Answer, func(d llm.Delta) bool { return d.Kind == llm.ToolStart })
}

// openCode reports whether an answer may end inside a code block.
func openCode(answer []llm.Delta) bool {
	n := 0
	for _, d := range answer {
		if d.Kind == llm.TextDelta {
			n += strings.Count(d.Text, "```") + strings.Count(d.Text, "~~~")
		}
	}
	return n > 0
}

// finish checks the calls of a turn and adds the turn.
func (r *conversing) finish(t *reading, calls []Call) error {
	ofTools := slices.DeleteFunc(slices.Clone(calls), func(c Call) bool { return c.Request.Target.Service != ServiceTool })
	if t.made != len(t.calls) {
		return left(calls[0], "%d calls of tools were made in the turn, and %d are on record", t.made, len(t.calls))
	}
	for n, c := range t.calls {
		if made, ok := t.madeAs(c.id); ok && c.played.Refused != RefusedInvalid && !bytes.Equal(made, c.arguments) {
			return left(ofTools[n], "a hook changed the arguments of the call")
		}
		c.played.GoOn = !slices.Contains(t.since, c)
		// Instructions and hooks may have added to the output of the tool.
		joined := strings.TrimSuffix(strings.Join(c.played.Result.Outputs, "\n"), "\n")
		if text, ok := t.said[c.id]; ok && c.played.Refused == "" && strings.HasPrefix(text, joined) {
			c.played.Result.Outputs = []string{text}
		}
	}
	refused := func(c *toolCall) bool { return c.played.Refused == event.RejectedByUser }
	if len(t.since) > 0 && !slices.ContainsFunc(t.since, refused) {
		return left(ofTools[len(ofTools)-1], "the turn was ended after its last calls")
	}
	r.out.Turns = append(r.out.Turns, t.Turn)
	return nil
}

// madeAs returns the arguments of the only call that a model made with an id.
func (t *reading) madeAs(id string) (arguments []byte, ok bool) {
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

package journal

import (
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/tools"
)

// Refused is the member of an error's details with the reason why a tool call did not run: an
// event.RejectReason, or RefusedInvalid.
const Refused = "refused"

// RefusedInvalid means that a call could not run at all: there is no such tool, or its arguments
// are invalid.
const RefusedInvalid = "invalid"

// judgements tracks the announced calls that have neither run nor been refused.
type judgements struct {
	mu sync.Mutex // guards the field of
	of map[string]map[string]event.ToolJudged
}

// Log receives the events that are appended to a chat's log, and records the calls that did not run.
// Calls that run are recorded by Tool.
func (j *Journal) Log(chatID string, events []event.Event) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.ToolJudged:
			j.judged.add(chatID, b)
		case event.ToolStarted:
			j.judged.take(chatID, b.CallID)
		case event.ToolRejected:
			if call, ok := j.judged.take(chatID, b.CallID); ok {
				j.refused(chatID, call, string(b.Reason), b.Message, nil)
			}
		case event.ToolFinished:
			if call, ok := j.judged.take(chatID, b.CallID); ok {
				j.refused(chatID, call, RefusedInvalid, "", b.Outputs)
			}
		case event.TurnFinished:
			j.judged.forget(chatID)
		default:
		}
	}
}

func (s *judgements) add(chatID string, b event.ToolJudged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = map[string]map[string]event.ToolJudged{}
	}
	if s.of[chatID] == nil {
		s.of[chatID] = map[string]event.ToolJudged{}
	}
	s.of[chatID][b.CallID] = b
}

func (s *judgements) take(chatID, callID string) (event.ToolJudged, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.of[chatID][callID]
	delete(s.of[chatID], callID)
	return b, ok
}

func (s *judgements) forget(chatID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, chatID)
}

// plainName reports whether a line may contain the name of a nonexistent tool. A model can choose any
// name, and lines must not contain text of a conversation.
func plainName(name string) bool {
	const longest = 128
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == ':' || c == '-'
	}
	return name != "" && len(name) <= longest && strings.TrimFunc(name, plain) == ""
}

// refused records a call that did not run, with the verdict. message is the explanation for the model.
func (j *Journal) refused(chatID string, call event.ToolJudged, why, message string, outputs []string) {
	if !j.o.Enabled() {
		return
	}
	o := origin{id: j.id(), at: j.o.Now(), chat: chatID, agent: j.chats.agent(chatID)}
	o.cause, o.turn, o.parent = j.chats.tool(o.id, chatID, call.CallID)
	name, variant := tools.FullName(call.Server, call.Name), "native"
	switch call.Origin {
	case "mcp":
		variant = "mcp:" + call.Server
	case "unknown":
		if name, variant = call.Name, "unknown"; !plainName(name) {
			name = "unknown"
		}
	}
	j.toolRequest(o, name, variant, call.CallID, call.Arguments)
	a := o.response(o.at)
	a.Status = esrp.Failed
	a.Error = &esrp.Error{
		Code: esrp.InvalidInputSemantic, Message: "the call was refused and did not run",
		Details: params(map[string]string{Refused: why, "decision": call.Decision}, nil),
	}
	j.record(Failed, func(b *bodies) esrp.Value {
		for _, text := range outputs {
			a.Outputs = append(a.Outputs, b.text("output", "text/plain", text))
		}
		// Rules and reasons may quote the call.
		for _, t := range [][2]string{{"rule", call.Rule}, {"reason", call.Reason}, {"error", message}} {
			if t[1] != "" {
				a.Outputs = append(a.Outputs, b.text(t[0], "text/plain", t[1]))
			}
		}
		return a.Value()
	})
}

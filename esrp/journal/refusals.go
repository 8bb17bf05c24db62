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

// announcedCalls tracks the announced calls that have neither run nor been refused.
type announcedCalls struct {
	mu     sync.Mutex // guards byChat
	byChat map[string]map[string]event.ToolJudged
}

// Log receives the events that are appended to a chat's log, and records the calls that did not run.
// Calls that run are recorded by Tool.
func (j *Journal) Log(chatID string, events []event.Event) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case event.ToolJudged:
			j.announced.add(chatID, b)
		case event.ToolStarted:
			j.announced.take(chatID, b.CallID)
		case event.ToolRejected:
			if call, ok := j.announced.take(chatID, b.CallID); ok {
				j.recordRefusal(chatID, call, string(b.Reason), b.Message, nil)
			}
		case event.ToolFinished:
			if call, ok := j.announced.take(chatID, b.CallID); ok {
				j.recordRefusal(chatID, call, RefusedInvalid, "", b.Outputs)
			}
		case event.TurnFinished:
			j.announced.forget(chatID)
		default:
		}
	}
}

func (s *announcedCalls) add(chatID string, b event.ToolJudged) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byChat == nil {
		s.byChat = map[string]map[string]event.ToolJudged{}
	}
	if s.byChat[chatID] == nil {
		s.byChat[chatID] = map[string]event.ToolJudged{}
	}
	s.byChat[chatID][b.CallID] = b
}

func (s *announcedCalls) take(chatID, callID string) (event.ToolJudged, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.byChat[chatID][callID]
	delete(s.byChat[chatID], callID)
	return b, ok
}

func (s *announcedCalls) forget(chatID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byChat, chatID)
}

// plainName reports whether a line may contain the name of a nonexistent tool. A model can choose any
// name, and lines must not contain text of a conversation.
func plainName(name string) bool {
	const maxLength = 128
	plain := func(c rune) bool {
		return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == ':' || c == '-'
	}
	return name != "" && len(name) <= maxLength && strings.TrimFunc(name, plain) == ""
}

// recordRefusal records a call that did not run, with the verdict. message is the explanation for the model.
func (j *Journal) recordRefusal(chatID string, call event.ToolJudged, why, message string, outputs []string) {
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

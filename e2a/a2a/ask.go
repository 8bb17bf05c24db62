package a2a

import (
	"context"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/e2a"
)

// callAsk shows a call that waits for a decision (acp-a2a.md C2).
func callAsk(id string, delta map[string]any) ask {
	name, _ := delta["name"].(string)
	summary, _ := delta["summary"].(string)
	if summary == "" {
		summary = name
	}
	return ask{
		id:   id,
		text: fmt.Sprintf("May this tool call run? %s\nAnswer yes or no, or with data {\"tool_call_id\": %q, \"decision\": \"approve\" or \"reject\"}.", summary, id),
		data: map[string]any{
			"tool_call_id": id, "name": name, "arguments": delta["arguments"], "summary": summary, "details": delta["details"],
			"options": []any{"approve", "reject"},
		},
	}
}

// questionAsk shows what the model asks.
func questionAsk(delta map[string]any) ask {
	id, _ := delta["question_id"].(string)
	call, _ := delta["tool_call_id"].(string)
	text, _ := delta["text"].(string)
	if text == "" {
		text = "The model asks."
	}
	return ask{id: id, call: call, question: true, text: text, data: map[string]any{
		"question_id": id, "text": text, "options": delta["options"], "freeform": delta["freeform"],
	}}
}

// reply is what a message says to what waits: envelopes to run, by their methods.
type reply struct {
	method string
	params map[string]any
	to     ask
}

// read finds out what a message answers. One that decides nothing is an error: to guess
// would run a program.
func read(m *message, open []ask) ([]reply, error) {
	var replies []reply
	var texts []string
	for _, p := range m.Parts {
		if data, ok := p["data"].(map[string]any); ok {
			r, err := readData(data, open)
			if err != nil {
				return nil, err
			}
			replies = append(replies, r)
		} else if text, ok := p["text"].(string); ok {
			texts = append(texts, text)
		}
	}
	if len(replies) > 0 {
		return replies, nil
	}
	text := strings.TrimSpace(strings.Join(texts, "\n"))
	for _, a := range open {
		r, err := readText(text, a)
		if err != nil {
			return nil, err
		}
		replies = append(replies, r)
		if a.question {
			return replies, nil // the next question is another one
		}
	}
	return replies, nil
}

func readData(data map[string]any, open []ask) (reply, error) {
	str := func(key string) string { s, _ := data[key].(string); return s }
	for _, a := range open {
		if a.question && a.id == str("question_id") {
			return reply{e2a.MethodAnswer, map[string]any{"question_id": a.id, "answer": str("answer")}, a}, nil
		}
		if a.question || a.id != str("tool_call_id") && (str("tool_call_id") != "" || len(open) > 1) {
			continue
		}
		switch str("decision") {
		case "approve":
			params := map[string]any{"tool_call_id": a.id}
			if save := str("save"); save == "session" {
				params["save"] = save
			} else if save != "" { // what counts longer is the user's to say
				return reply{}, failure(codeParams, "data.save can only be session, not %q", save)
			}
			return reply{e2a.MethodApprove, params, a}, nil
		case "reject":
			return reply{e2a.MethodReject, map[string]any{"tool_call_id": a.id, "go_on": true}, a}, nil
		}
		return reply{}, failure(codeParams, "data.decision must be approve or reject, not %q", str("decision"))
	}
	return reply{}, failure(codeParams, "data names nothing that the task waits for; tool_call_id or question_id of its status message says what does")
}

func readText(text string, a ask) (reply, error) {
	if a.question {
		return reply{e2a.MethodAnswer, map[string]any{"question_id": a.id, "answer": text}, a}, nil
	}
	switch strings.ToLower(strings.TrimRight(text, ".! ")) {
	case "yes", "y", "ok", "approve", "approved", "allow":
		return reply{e2a.MethodApprove, map[string]any{"tool_call_id": a.id}, a}, nil
	case "no", "n", "reject", "rejected", "deny":
		return reply{e2a.MethodReject, map[string]any{"tool_call_id": a.id, "go_on": true}, a}, nil
	}
	return reply{}, failure(codeParams, "the task waits for a decision about a tool call: answer yes or no, or with data {tool_call_id, decision}")
}

// carryOut passes replies on to the turn that waits.
func (j *job) carryOut(ctx context.Context, replies []reply) error {
	for _, r := range replies {
		if _, err := j.s.order(ctx, j.contextID, r.method, r.params); err != nil {
			return failure(codeParams, "%v", err)
		}
	}
	return nil
}

// order runs an envelope whose only frame is the last, and returns its result. session may be
// empty.
func (s *Server) order(ctx context.Context, session, method string, params map[string]any) (map[string]any, error) {
	request, channel := s.newID(), channelName
	e := e2a.Envelope{
		ProtocolVersion: e2a.ProtocolVersion, Provenance: e2a.Provenance{SourceProtocol: e2a.ProtocolA2A}, RequestID: &request, SessionID: &session,
		ContextID: &session, Channel: &channel, Method: &method, Params: params, IdentityOrigin: e2a.OriginAgent,
	}
	var result map[string]any
	var said error
	err := s.runner.Run(ctx, e, func(r e2a.Response) error {
		if r.Kind == e2a.KindError {
			said = fmt.Errorf("%v", r.Body["message"])
		}
		result, _ = r.Body["result"].(map[string]any)
		return nil
	}, nil)
	if err == nil {
		err = said
	}
	return result, err
}

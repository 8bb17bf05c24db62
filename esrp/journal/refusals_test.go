package journal

import (
	"encoding/json"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/llm"
)

// answerWithCall answers with a tool call.
func answerWithCall(id, name, arguments string) scriptedModel {
	return scriptedModel{{Kind: llm.ToolStart, ID: id, Name: name}, {Kind: llm.ToolEnd, ID: id, Text: arguments}, {Kind: llm.StopDelta, Stop: llm.StopToolCalls}}
}

func judgedCall(id, name, arguments string) event.ToolJudged {
	return event.ToolJudged{
		Tool:      event.Tool{CallID: id, Name: name, Server: "eca", Origin: "native"},
		Arguments: json.RawMessage(arguments), Decision: "ask", Rule: "a rule", Reason: "a reason",
	}
}

func events(bodies ...event.Body) (out []event.Event) {
	for _, b := range bodies {
		out = append(out, event.Event{Turn: "t", Body: b})
	}
	return out
}

// Calls that did not run are recorded with the verdict; calls that ran are not recorded twice.
func TestRefused(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{Clean: func(s string) string { return strings.ReplaceAll(s, "secret-1", "[REDACTED]") }})
	ask(t, j.Model(answerWithCall("c1", "eca__look", `{}`), "p/m"), "chat", "t", userMessage("look"))
	unknown := judgedCall("c2", "run secret-1 \x00 and so on", `{"password":"hunter2","x":"secret-1"}`)
	unknown.Origin, unknown.Server = "unknown", "unknown"
	j.Log("chat", events(judgedCall("c1", "look", `{"at":"x"}`)))
	j.Log("chat", events(unknown, event.ToolFinished{CallID: "c2", Outputs: []string{"no such tool: secret-1"}, Failed: true}))
	j.Log("chat", events(event.ToolRejected{CallID: "c1", Reason: event.RejectedByUser, Message: "no, secret-1"}))
	// These calls ran, or were stopped while running: their wrapper records them.
	j.Log("chat", events(judgedCall("c3", "look", `{}`), event.ToolStarted{CallID: "c3"}, event.ToolFinished{CallID: "c3"}))
	j.Log("chat", events(judgedCall("c4", "look", `{}`), event.ToolStarted{CallID: "c4"}, event.ToolRejected{CallID: "c4", Reason: event.RejectedByStop}))
	j.Log("chat", events(judgedCall("c5", "look", `{}`), event.TurnFinished{}, event.ToolRejected{CallID: "c5"}))
	j.Close()

	checkJournal(t, state)
	c := At(state)
	defer c.Close()
	calls, err := c.Calls("chat")
	if err != nil || len(calls) != 3 {
		t.Fatalf("%d calls, %v", len(calls), err)
	}
	for n, want := range []struct{ operation, variant, why, arguments, outputs string }{
		{"unknown", "unknown", RefusedInvalid, `{"password":"[REDACTED]","x":"[REDACTED]"}`, "no such tool: [REDACTED]|a rule|a reason"},
		{"eca__look", "native", string(event.RejectedByUser), `{"at":"x"}`, "a rule|a reason|no, [REDACTED]"},
	} {
		call := calls[n+1]
		why, _ := call.Response.Error.Details.Get(Refused)
		if got := call.Request.Target; got.Operation != want.operation || *got.Variant != want.variant || why.Text != want.why {
			t.Errorf("%+v, refused by %q", got, why.Text)
		}
		if id := call.Request.CausationID; id == nil || *id != calls[0].Request.ID || tag(call.Request, "turn") != "t" || *call.Request.Caller.AgentID != "code" {
			t.Errorf("it was caused by %v, in %q", id, tag(call.Request, "turn"))
		}
		var outputs []string
		for _, o := range call.Response.Outputs {
			data, err := c.Body(o)
			if err != nil {
				t.Fatal(err)
			}
			outputs = append(outputs, string(data))
		}
		arguments, err := c.Body(call.Request.Inputs[0])
		if err != nil || string(arguments) != want.arguments || strings.Join(outputs, "|") != want.outputs {
			t.Errorf("%s %q, %v", arguments, outputs, err)
		}
	}
	_ = filepath.WalkDir(state, func(path string, d os.DirEntry, err error) error {
		if data, _ := os.ReadFile(path); strings.Contains(string(data), "secret-1") || strings.Contains(string(data), "hunter2") {
			t.Errorf("a secret is in %s", path)
		}
		return err
	})
}

// While a call has no answer yet, its turn cannot be replayed, and may still run.
func TestUnfinishedCall(t *testing.T) {
	state := t.TempDir()
	j := New(state, Options{})
	defer j.Close()
	next, stop := iter.Pull2(j.Model(hello(), "p/m").Stream(t.Context(), llm.Request{
		Purpose: llm.PurposeTurn, Model: "m", Messages: []llm.Message{userMessage("hi")}, Origin: llm.Origin{Chat: "chat", Turn: "t"},
	}))
	defer stop()
	if _, err, ok := next(); !ok || err != nil {
		t.Fatal(ok, err)
	}
	chain := At(state)
	defer chain.Close()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got, err := chain.Conversation("chat")
		if err == nil && strings.HasSuffix(got.NotReplayable, ": the call has no answer: it is still running, or eca was killed while it ran") {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%+v, %v", got, err)
		}
	}
}

// Turns that cannot be replayed are reported with their record.
func TestNotReplayableTurns(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(j *Journal)
		want string
	}{
		"a hook refuses": {func(j *Journal) {
			j.Log("chat", events(judgedCall("c1", "look", `{}`), event.ToolRejected{CallID: "c1", Reason: event.RejectedByHook}))
		}, "line 3 of the journal, request ID: a hook refused the call"},
		"the turn is stopped": {func(j *Journal) {
			j.Log("chat", events(judgedCall("c1", "look", `{}`), event.ToolRejected{CallID: "c1", Reason: event.RejectedByStop}))
		}, "line 3 of the journal, request ID: the turn was stopped before the call ran"},
		"a hook changes arguments": {func(j *Journal) {
			j.Log("chat", events(judgedCall("c1", "look", `{"at":"y"}`), event.ToolRejected{CallID: "c1", Reason: event.RejectedByUser}))
		}, "line 3 of the journal, request ID: a hook changed the arguments of the call"},
		"nothing of a call": {func(*Journal) {}, "1 tool calls were made in the turn, but 0 are on record"},
	} {
		t.Run(name, func(t *testing.T) {
			state := t.TempDir()
			j := New(state, Options{})
			ask(t, j.Model(answerWithCall("c1", "eca__look", `{}`), "p/m"), "chat", "t", userMessage("look"))
			c.do(j)
			ask(t, j.Model(hello(), "p/m"), "chat", "t", userMessage("look"),
				llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.ToolCall{ID: "c1", Name: "eca__look", Arguments: json.RawMessage(`{}`)}}},
				llm.Message{Role: llm.User, Parts: []llm.Part{llm.ToolResult{ID: "c1", Text: "It did not run.", Failed: true}}})
			j.Close()
			chain := At(state)
			defer chain.Close()
			got, err := chain.Conversation("chat")
			if err != nil {
				t.Fatal(err)
			}
			calls, err := chain.Calls("chat")
			if err != nil {
				t.Fatal(err)
			}
			id := esrp.UUID{}
			for _, call := range calls {
				if call.Seq == 3 {
					id = call.Request.ID
				}
			}
			if want := strings.ReplaceAll(c.want, "ID", id.String()); !strings.Contains(got.NotReplayable, want) || len(got.Turns) != 0 {
				t.Errorf("not replayable: %q, want %q; %d turns, want 0", got.NotReplayable, want, len(got.Turns))
			}
		})
	}
}

package ask

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/tools"
)

// recordingClient is a client that keeps the last question.
type recordingClient struct{ asked Question }

func (l *recordingClient) Ask(_ context.Context, q Question) (Answer, error) {
	l.asked = q
	return Answer{Text: "ok"}, nil
}

// Models write options in many ways.
func TestArguments(t *testing.T) {
	two := []Option{{Label: "a"}, {Label: "b", Description: "d"}}
	for in, want := range map[string]Question{
		`{"question":"q"}`: {Text: "q", Freeform: true},
		`{"question":"q","options":null,"allowFreeform":null}`:                                             {Text: "q", Freeform: true},
		`{"question":"q","options":["a",{"label":"b","description":"d","value":7}],"allowFreeform":false}`: {Text: "q", Options: two},
		`{"question":"q","options":"[\"a\",{\"label\":\"b\",\"description\":\"d\"}]"}`:                     {Text: "q", Options: two, Freeform: true},
		`{"question":"q","options":[{"label":"a","description":null},{"label":"b","description":"d"}]}`:    {Text: "q", Options: two, Freeform: true},
		`{"question":"q","options":[],"allowFreeform":false}`:                                              {Text: "q", Options: []Option{}, Freeform: true}, // without options, the user has to type
	} {
		l := &recordingClient{}
		tool := Tools(l)[0]
		call := tools.Call{ID: "id", ChatID: "c", Arguments: json.RawMessage(in)}
		want.ChatID, want.CallID = "c", "id"
		if _, err := tool.Plan(t.Context(), call); err != nil {
			t.Errorf("%s: %v", in, err)
		}
		if _, err := tool.Run(t.Context(), call, nil); err != nil || !reflect.DeepEqual(l.asked, want) {
			t.Errorf("%s: %+v, %v", in, l.asked, err)
		}
	}
}

func TestRefused(t *testing.T) {
	if Tools(nil) != nil {
		t.Error("Tools returned a tool although there is no client")
	}
	tool := Tools(&recordingClient{})[0]
	for _, c := range []struct{ chat, args, want string }{
		{"subagent-1", `{"question":"q"}`, "subagent"},
		{"c", `{"question":" \n"}`, "INVALID_ARGS"},
		{"c", `{}`, "needs question"},
		{"c", `{"question":"q","options":["a",7]}`, "INVALID_ARGS"},
		{"c", `{"question":"q","options":"a, b"}`, "INVALID_ARGS"},
	} {
		_, err := tool.Plan(t.Context(), tools.Call{ChatID: c.chat, Arguments: json.RawMessage(c.args)})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in %s: %v", c.args, c.chat, err)
		}
	}
}

func TestHeadline(t *testing.T) {
	plan, err := Tools(&recordingClient{})[0].Plan(t.Context(), tools.Call{Arguments: json.RawMessage(`{"question":"Which\n  one? ` + strings.Repeat("é", 100) + `"}`)})
	if want := "Q: Which one? " + strings.Repeat("é", 46) + "…"; err != nil || plan.Summary != want {
		t.Errorf("%s, %v", plan.Summary, err)
	}
}

func FuzzComplete(f *testing.F) {
	f.Add(`{"question":"q","options":"[1,\"a\",{\"label\":null}]"}`)
	f.Fuzz(func(t *testing.T, in string) {
		once := normalizeArguments(json.RawMessage(in))
		if json.Valid([]byte(in)) && !json.Valid(once) {
			t.Errorf("%s became %s", in, once)
		}
		if twice := normalizeArguments(once); string(twice) != string(once) {
			t.Errorf("%s, then %s", once, twice)
		}
	})
}

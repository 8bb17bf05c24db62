package ecp

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The request in the reference's form, and the examples of its specification.
func TestRequest(t *testing.T) {
	const line = `{"jsonrpc": "2.0", "method": "agent/step", "params": {"input": "hi \u00e9"}, "id": 1795166410685}`
	req, e := ParseRequest([]byte(line))
	if e != nil {
		t.Fatal(e)
	}
	if req.Method != MethodStep || string(req.ID) != "1795166410685" || req.IsAnswer {
		t.Errorf("%+v", req)
	}
	p, err := ParseStepParams(req.Params)
	if err != nil || p.Input != "hi é" {
		t.Errorf("%+v, %v", p, err)
	}
	out, err := Encode(Request{ID: json.RawMessage("7"), Method: MethodStep, Params: json.RawMessage(`{"input":"é😀<"}`)})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"jsonrpc":"2.0","method":"agent/step","params":{"input":"\u00e9\ud83d\ude00<"},"id":7}`
	if string(out) != want {
		t.Errorf("got  %s\nwant %s", out, want)
	}
}

func TestBadRequests(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
		id   string // of the answer; - for no answer
		say  string
	}{
		{`{`, CodeParse, "", "not JSON"},
		{"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\",\"id\":1}", CodeParse, "", "UTF-8"},
		{`[]`, CodeInvalidRequest, "", "object"},
		{`null`, CodeInvalidRequest, "", "object"},
		{`3`, CodeInvalidRequest, "", "object"},
		{`{"jsonrpc":"1.0","method":"agent/reset","id":1}`, CodeInvalidRequest, "1", "2.0"},
		{`{"JSONRPC":"2.0","method":"agent/reset","id":1}`, CodeInvalidRequest, "1", "2.0"},
		{`{"jsonrpc":"2.0","method":4,"id":1}`, CodeInvalidRequest, "1", "method"},
		{`{"jsonrpc":"2.0","Method":"agent/reset","id":1}`, CodeInvalidRequest, "1", "method"},
		{`{"jsonrpc":"2.0","id":1}`, CodeInvalidRequest, "1", "method"},
		{`{"jsonrpc":"2.0","method":"agent/reset","id":{}}`, CodeInvalidRequest, "", "id"},
		{`{"jsonrpc":"2.0","method":"agent/reset","id":true}`, CodeInvalidRequest, "", "id"},
		{`{"jsonrpc":"2.0","method":"agent/step","params":[],"id":"x"}`, CodeInvalidParams, `"x"`, "object"},
		{`{"jsonrpc":"2.0","method":"agent/step","params":"s","id":1.0}`, CodeInvalidParams, `1.0`, "object"},
	} {
		req, e := ParseRequest([]byte(c.line))
		if e == nil || e.Code != c.code || !strings.Contains(e.Message, c.say) || string(req.ID) != c.id {
			t.Errorf("%s: %v, id %s", c.line, e, req.ID)
		}
	}
	for line, id := range map[string]string{
		`{"jsonrpc":"2.0","method":"agent/reset","params":null,"id":null}`: "null",
		`{"jsonrpc":"2.0","method":"agent/reset"}`:                         "",
		`{"jsonrpc":"2.0","id":4,"result":true}`:                           "4",
	} {
		req, e := ParseRequest([]byte(line))
		if e != nil || string(req.ID) != id || string(req.Params) != "{}" || req.IsAnswer != (id == "4") {
			t.Errorf("%s: %+v, %v", line, req, e)
		}
	}
}

func TestResponse(t *testing.T) {
	const specified = `{"jsonrpc": "2.0", "id": 1, "result": {"status": "done", "public_output": "Hi there!",
		"private_thought": "Greet the user.", "tool_calls": null}}`
	r, err := ParseResponse([]byte(specified))
	if err != nil || !r.Answers(json.RawMessage("1")) {
		t.Fatalf("%+v, %v", r, err)
	}
	step, err := ParseStepResult(r.Result)
	if err != nil || *step.PublicOutput != "Hi there!" || step.Context() != "Greet the user." || step.Thought() != "Greet the user." || step.ToolCalls != nil {
		t.Errorf("%+v, %v", step, err)
	}
	for id, other := range map[string]string{"1": `"1"`, "1.0": "1", "null": "1", `"a"`: `"b"`} {
		if (Response{ID: json.RawMessage(id)}).Answers(json.RawMessage(other)) {
			t.Errorf("%s answers %s", id, other)
		}
	}
	if (Response{}).Answers(nil) {
		t.Error("no id answers no id")
	}
	for _, bad := range []string{
		`[]`, `{}`, `{"jsonrpc":"2.0","result":1}`, `{"jsonrpc":"2.0","id":1}`, `{"id":1,"result":1}`,
		`{"jsonrpc":"2.0","id":1,"result":1,"error":null}`, `{"jsonrpc":"2.0","id":1,"error":null}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"m"}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":"m"}}`,
		`{"jsonrpc":"2.0","id":1,"error":{"code":1}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":null,"message":"m"}}`,
	} {
		if r, err := ParseResponse([]byte(bad)); err == nil {
			t.Errorf("%s: accepted as %+v", bad, r)
		}
	}
	r, err = ParseResponse([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Unknown method: x","data":{"a":1}}}`))
	if err != nil || r.Err.Code != CodeNoMethod || string(r.Err.Data) != `{"a":1}` || r.Result != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInitialize(t *testing.T) {
	r, err := ParseInitializeResult(json.RawMessage(`{"name":"a","capabilities":{},"more":1}`))
	if err != nil || r.Name != "a" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{
		`true`, `{}`, `{"name":"","capabilities":{}}`, `{"name":"a"}`, `{"name":"a","capabilities":null}`, `{"Name":"a","capabilities":{}}`, `{"name":"a","capabilities":[]}`,
		`{"name":"a","capabilities":{"tool_calls":true}}`, `{"name":"a","capabilities":{"tool_calls":null}}`, `{"name":"a","capabilities":{"":{}}}`,
		`{"name":"a","capabilities":{},"protocol_version":null}`, `{"name":"a","capabilities":{},"protocol_version":1.0}`, `{"name":"a","capabilities":{},"protocol_version":"1"}`,
	} {
		if _, err := ParseInitializeResult(json.RawMessage(bad)); err == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

func TestConfig(t *testing.T) {
	abs := t.TempDir()
	params, err := json.Marshal(map[string]any{"config": map[string]any{
		"model": "p/m", "agent": "plan", "workspace": abs, "approval": "auto-edit", "seed": 3,
		"tools":   map[string]any{"allow": []string{"read_file"}, "deny": []string{"git"}},
		"budgets": map[string]any{"max_tool_calls": 2, "timeout_s": 1.5, "max_cost_usd": 0.25},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ParseConfig(params)
	want := Config{
		Model: "p/m", Agent: "plan", Workspace: abs, Approval: ApproveEdits, Tools: Tools{Allow: []string{"read_file"}, Deny: []string{"git"}},
		Budgets: Budgets{MaxToolCalls: 2, TimeoutS: 1.5, MaxCostUSD: 0.25},
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, none := range []string{`{}`, `{"config":null}`, `{"config":{}}`, `{"config":{"model":null,"tools":null,"budgets":{}}}`} {
		if got, err := ParseConfig(json.RawMessage(none)); err != nil || !cmp.Equal(got, Config{}) {
			t.Errorf("%s: %+v, %v", none, got, err)
		}
	}
	for bad, say := range map[string]string{
		`{"config":[]}`:                                   "config must be an object",
		`{"config":{"model":1}}`:                          "config.model",
		`{"config":{"workspace":"a/b"}}`:                  `"a/b"`,
		`{"config":{"approval":"yes"}}`:                   `"yes"`,
		`{"config":{"tools":[]}}`:                         "config.tools must be an object",
		`{"config":{"tools":{"deny":"x"}}}`:               "config.tools.deny",
		`{"config":{"budgets":{"max_tool_calls":-1}}}`:    "max_tool_calls",
		`{"config":{"budgets":{"max_tool_calls":"1"}}}`:   "config.budgets.max_tool_calls",
		`{"config":{"budgets":{"timeout_s":-1}}}`:         "timeout_s",
		`{"config":{"budgets":{"max_cost_usd":-0.1}}}`:    "max_cost_usd",
		`{"config":{"budgets":{"max_tool_calls":1.5}}}`:   "whole number",
		`{"config":{"budgets":{"timeout_s":{"no":"x"}}}}`: "config.budgets.timeout_s",
	} {
		if _, err := ParseConfig(json.RawMessage(bad)); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestStepResult(t *testing.T) {
	out, why, cost := "é", "because", 0.5
	full := StepResult{
		Status: Paused, PublicOutput: &out, EvaluationContext: &why, PrivateThought: &why, Logs: &out,
		ToolCalls: []ToolCall{{Name: "calculator", Arguments: json.RawMessage(`{"expression":"2+2"}`), Extra: map[string]json.RawMessage{CallID: json.RawMessage(`"c1"`)}}, {Name: "bare"}},
		Usage:     NewUsage(map[string]int64{TokensInput: 1, TokensOutput: 2, TokensCacheRead: 3}),
		CostUSD:   &cost, Timing: &Timing{TotalMS: 6, ModelMS: 7, ToolMS: 8}, Model: "p/m", StopReason: StopQuestion,
		Extra: map[string]json.RawMessage{"metadata": json.RawMessage(`{"a":1}`)},
	}
	line, err := Encode(full)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseStepResult(line)
	if diff := cmp.Diff(full, back); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	bare, err := Encode(StepResult{Status: Done})
	const want = `{"evaluation_context":null,"logs":null,"private_thought":null,"public_output":null,"status":"done","tool_calls":null,"usage":null}`
	if err != nil || string(bare) != want {
		t.Errorf("%s, %v", bare, err)
	}
}

// Results that the reference refuses are refused (docs/contracts/ecp.md 1.2). eca's own fields never
// cause an error.
func TestStepResultRules(t *testing.T) {
	for _, bad := range []string{
		`null`, `[]`, `{}`, `{"status":"ok"}`, `{"status":null}`, `{"Status":"done"}`,
		`{"status":"done","public_output":1}`, `{"status":"done","evaluation_context":{}}`, `{"status":"done","private_thought":[]}`,
		`{"status":"done","logs":false}`, `{"status":"done","tool_calls":{}}`, `{"status":"done","tool_calls":[null]}`,
		`{"status":"done","tool_calls":[{"name":""}]}`, `{"status":"done","tool_calls":[{"tool":"x"}]}`,
		`{"status":"done","tool_calls":[{"name":"x","arguments":null}]}`, `{"status":"done","tool_calls":[{"name":"x","arguments":"{}"}]}`,
	} {
		if r, err := ParseStepResult(json.RawMessage(bad)); err == nil {
			t.Errorf("%s: accepted as %+v", bad, r)
		}
	}
	r, err := ParseStepResult(json.RawMessage(`{"status":"done","timing":7,"cost_usd":"0","evaluation_context":"","private_thought":"p","tool_calls":[]}`))
	if err != nil || r.Usage != nil || r.Timing != nil || r.CostUSD != nil || len(r.Extra) != 2 || r.Context() != "p" || r.ToolCalls == nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestResetResult(t *testing.T) {
	if err := ParseResetResult(json.RawMessage("true")); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"1", "null", "{}", "false", `"true"`, ""} {
		if ParseResetResult(json.RawMessage(bad)) == nil {
			t.Errorf("%s: accepted", bad)
		}
	}
}

// The protocol's counts must be written as whole numbers. Nothing is rounded, and other keys of the
// usage survive.
func TestUsage(t *testing.T) {
	for _, good := range []string{
		`null`, `{}`, `{"input_tokens":null}`, `{"input_tokens":0,"output_tokens":-0,"total_tokens":9007199254740993}`,
		`{"input_tokens":123456789012345678901234567890}`, `{"cost":{"a":[]},"x":-1.5e3}`,
	} {
		r, err := ParseStepResult(json.RawMessage(`{"status":"done","usage":` + good + `}`))
		if err != nil {
			t.Errorf("%s: %v", good, err)
			continue
		}
		if line, err := Encode(r); err != nil || !strings.HasSuffix(string(line), `"usage":`+good+`}`) {
			t.Errorf("%s became %s, %v", good, line, err)
		}
	}
	for _, bad := range []string{
		`[]`, `"3"`, `3`, `{"input_tokens":-1}`, `{"output_tokens":1.0}`, `{"total_tokens":1e3}`, `{"input_tokens":1.5}`,
		`{"input_tokens":"3"}`, `{"input_tokens":true}`, `{"input_tokens":[]}`,
	} {
		if r, err := ParseStepResult(json.RawMessage(`{"status":"done","usage":` + bad + `}`)); err == nil {
			t.Errorf("%s: accepted as %s", bad, r.Usage)
		}
	}
	if n := (Usage{"x": json.RawMessage("123456789012345678901234567890")}).Count("x"); n != math.MaxInt64 {
		t.Errorf("%d", n)
	}
}

// Any request of a runtime gets an answer, and a request that was understood is understood again
// after being written.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"jsonrpc":"2.0","method":"agent/step","params":{"input":"\ud800"},"id":1}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"x","id":"\u00e9é"}`))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"agent/initialize","params":{"config":{"tools":{"allow":[1]}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		req, e := ParseRequest(raw)
		answer := Response{ID: req.ID, Err: e}
		if e == nil {
			answer.Result = json.RawMessage("true")
		}
		line, err := Encode(answer)
		if err != nil || strings.ContainsFunc(string(line), func(r rune) bool { return r > 0x7f || r < ' ' }) {
			t.Fatalf("%q, %v", line, err)
		}
		if _, err := ParseResponse(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if e != nil || req.IsAnswer {
			return
		}
		_, _ = ParseConfig(req.Params)
		_, _ = ParseStepParams(req.Params)
		if line, err = Encode(req); err != nil {
			t.Fatal(err)
		}
		if again, e := ParseRequest(line); e != nil || again.Method != req.Method || (again.ID == nil) != (req.ID == nil) {
			t.Fatalf("%s: %+v, %v", line, again, e)
		}
	})
}

// An agent's result is refused, or survives being written and read.
func FuzzStepResult(f *testing.F) {
	f.Add([]byte(`{"status":"done","public_output":"x","tool_calls":[{"name":"a","arguments":{"b":[1,2]},"more":1}],"usage":{"input_tokens":1},"cost_usd":1e3}`))
	f.Add([]byte(`{"status":"paused","timing":{"total_ms":1},"metadata":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := ParseStepResult(raw)
		if err != nil {
			return
		}
		line, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := ParseStepResult(line)
		if err != nil || again.Status != r.Status || len(again.ToolCalls) != len(r.ToolCalls) || again.Context() != strings.ToValidUTF8(r.Context(), "\ufffd") {
			t.Fatalf("%s: %v", line, err)
		}
	})
}

package agent_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
)

const huge = "999999999999999999999999999999"

// The versions in params, and the resulting version or error.
var versions = []struct {
	params, agreed string
	code           int
}{
	{`{}`, "1.0", 0},
	{`{"config":{}}`, "1.0", 0}, // a runtime up to 0.4
	{`null`, "1.0", 0},
	{`{"protocol_version":"1.0","config":{}}`, "1.0", 0},
	{`{"protocol_version":"1.9"}`, "1.0", 0},
	{`{"protocol_version":"1.` + huge + `"}`, "1.0", 0},
	{`{"protocol_version":"2.0"}`, "", ecp.CodeVersionUnsupported},
	{`{"protocol_version":"0.9"}`, "", ecp.CodeVersionUnsupported},
	{`{"protocol_version":"0.1"}`, "", ecp.CodeVersionUnsupported},
	{`{"protocol_version":"` + huge + `.0"}`, "", ecp.CodeVersionUnsupported},
	{`{"protocol_version":null}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":1.0}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":"1"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":"v1.0"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":"01.0"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":"1.00"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":"1.0.0"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":"1.0\n"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":" 1.0"}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":""}`, "", ecp.CodeInvalidParams},
	{`{"protocol_version":[]}`, "", ecp.CodeInvalidParams},
}

// A runtime and the agent agree on a version, or the runtime gets an error; the agent keeps
// running.
func TestProtocolVersion(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	server := httptest.NewServer(r.agent.Handler(httpguard.Options{Address: "127.0.0.1:0"}))
	defer server.Close()
	for _, v := range versions {
		c.next++
		request := fmt.Sprintf(`{"jsonrpc":"2.0","method":"agent/initialize","params":%s,"id":%d}`, v.params, c.next)
		c.send(strings.Replace(request, fmt.Sprintf(`,"id":%d`, c.next), "", 1)) // as a notification, it gets no answer
		c.send(request)
		checkAgreed(t, "stdio "+v.params, c.answer(c.next), v.agreed, v.code)
		status, body := postMessage(t, server.URL+ecp.Endpoint, request)
		res, err := ecp.ParseResponse([]byte(body))
		if status != http.StatusOK || err != nil {
			t.Errorf("%s: %d %s", v.params, status, body)
		}
		checkAgreed(t, "http "+v.params, res, v.agreed, v.code)
	}
	if step := c.step("still there?"); *step.PublicOutput != "ok" {
		t.Errorf("%+v", step)
	}
	c.reset()
}

// checkAgreed checks that an answer to agent/initialize has a version, or the error with a code.
func checkAgreed(t *testing.T, name string, res ecp.Response, want string, code int) {
	t.Helper()
	if code != 0 {
		if res.Err == nil || res.Err.Code != code || strings.HasPrefix(res.Err.Message, "VERSION_UNSUPPORTED") != (code == ecp.CodeVersionUnsupported) {
			t.Errorf("%s: %s, %v", name, res.Result, res.Err)
		}
		return
	}
	var result struct {
		Version      string                     `json:"protocol_version"`
		Capabilities map[string]json.RawMessage `json:"capabilities"`
	}
	if res.Err != nil || json.Unmarshal(res.Result, &result) != nil || result.Version != want {
		t.Errorf("%s: %s, %v", name, res.Result, res.Err)
	}
	for _, name := range []string{"tool_calls", "evaluation_context", "usage", "reset", "multi_turn"} {
		if string(result.Capabilities[name]) != "{}" {
			t.Errorf("capability %s is %s", name, result.Capabilities[name])
		}
	}
}

func postMessage(t *testing.T, url, body string) (status int, answer string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// A step that called no model reports no usage instead of zero.
func TestUsageIsNullWithoutCounts(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: ok}]}"})
	c := r.connect()
	c.initialize(map[string]any{"budgets": map[string]any{"timeout_s": 1e-9}})
	res := c.call(ecp.MethodStep, map[string]any{"input": "hi"})
	if usage, ok := object(t, res.Result)["usage"]; !ok || usage != nil {
		t.Errorf("%s", res.Result)
	}
}

package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// Conformance is the result of checking an agent. Only Checks, the three checks of the reference,
// decide whether the agent is conformant. Extended are eca's additional checks.
type Conformance struct {
	Target     string             `json:"target"`
	Conformant bool               `json:"conformant"`
	Passed     int                `json:"passed"`
	Failed     int                `json:"failed"`
	Total      int                `json:"total"`
	Checks     []ConformanceCheck `json:"checks"`
	Extended   []ConformanceCheck `json:"extended,omitempty"`
}

// ConformanceCheck is the result of one check.
type ConformanceCheck struct {
	Name    string `json:"name"`
	Method  string `json:"method"`
	Passed  bool   `json:"passed"`
	Message string `json:"message"`
}

// ConformanceOptions configure CheckConformance.
type ConformanceOptions struct {
	Input      string
	Timeout    time.Duration
	Extended   bool
	Client     *http.Client
	Headers    http.Header
	Supervisor string
}

const skipped = "skipped because a prerequisite failed"

// examiner checks one agent.
type examiner struct {
	opts ConformanceOptions
	conn conn
	ids  *ids
	out  Conformance

	version string // the agent's protocol version; empty if it named none
}

// CheckConformance checks an agent. An agent that cannot be started is not conformant.
func CheckConformance(ctx context.Context, target string, o ConformanceOptions) Conformance {
	e := &examiner{opts: o, ids: &ids{}, out: Conformance{Target: target, Checks: []ConformanceCheck{}}}
	pool := proc.NewPool(o.Supervisor, spareSupervisors)
	defer pool.Close()
	if IsURL(target) {
		e.conn = newHTTP(target, o.Client, o.Headers)
	} else if c, err := startStdio(shell(target), pool); err == nil {
		e.conn = c
	} else {
		e.addCheck("initialize response", ecp.MethodInitialize, err)
		e.addCheck("step result contract", ecp.MethodStep, errors.New(skipped))
		e.addCheck("reset response", ecp.MethodReset, errors.New(skipped))
		return e.result()
	}
	initialized := e.checkCore(ctx)
	if o.Extended && initialized {
		e.checkExtended(ctx)
	}
	if c, ok := e.conn.(*stdio); ok && o.Extended && initialized {
		e.checkEnding(c)
	} else {
		e.conn.close(false)
	}
	return e.result()
}

func (e *examiner) addCheck(name, method string, err error) {
	e.out.Checks = append(e.out.Checks, newCheck(name, method, err))
}

func newCheck(name, method string, err error) ConformanceCheck {
	c := ConformanceCheck{Name: name, Method: method, Passed: err == nil, Message: "passed"}
	if err != nil {
		c.Message = err.Error()
	}
	return c
}

func (e *examiner) result() Conformance {
	for _, c := range e.out.Checks {
		if c.Passed {
			e.out.Passed++
		}
	}
	e.out.Total = len(e.out.Checks)
	e.out.Failed = e.out.Total - e.out.Passed
	e.out.Conformant = e.out.Failed == 0
	return e.out
}

// checkCore runs the checks of the reference, and reports whether the agent could be initialized.
func (e *examiner) checkCore(ctx context.Context) bool {
	r, err := e.initialize(ctx)
	initialized := err == nil
	e.version = r.ProtocolVersion
	e.addCheck("initialize response", ecp.MethodInitialize, err)
	err = errors.New(skipped)
	if initialized {
		err = e.step(ctx, e.opts.Input)
	}
	e.addCheck("step result contract", ecp.MethodStep, err)
	raw, err := e.call(ctx, ecp.MethodReset, struct{}{})
	if err == nil {
		err = ecp.ParseResetResult(raw)
	}
	e.addCheck("reset response", ecp.MethodReset, err)
	if _, declared := r.Capabilities[ecp.CanReset]; err == nil && !declared {
		e.out.Checks[len(e.out.Checks)-1].Message = "passed, but the agent does not declare the capability reset, so it may not have reset anything"
	}
	return initialized
}

// initialize checks the answer to agent/initialize. Another major version is an error.
func (e *examiner) initialize(ctx context.Context) (ecp.InitializeResult, error) {
	raw, err := e.call(ctx, ecp.MethodInitialize, ecp.InitializeParams{ProtocolVersion: ecp.ProtocolVersion, Config: map[string]any{}})
	if err != nil {
		return ecp.InitializeResult{}, err
	}
	r, err := ecp.ParseInitializeResult(raw)
	if err == nil && r.ProtocolVersion != "" {
		_, err = negotiateVersion(r.ProtocolVersion)
	}
	return r, err
}

func (e *examiner) call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	limited, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	return call(limited, e.conn, e.ids, method, params)
}

func (e *examiner) step(ctx context.Context, input string) error {
	raw, err := e.call(ctx, ecp.MethodStep, ecp.StepParams{Input: input})
	if err != nil {
		return err
	}
	_, err = ecp.ParseStepResult(raw)
	return err
}

// send sends a message as it is; an empty id means a notification.
func (e *examiner) send(ctx context.Context, method, message, id string) (ecp.Response, error) {
	limited, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	var raw []byte
	if id != "" {
		raw = []byte(id)
	}
	return e.conn.exchange(limited, method, []byte(message), raw)
}

// checkExtended runs the additional checks.
func (e *examiner) checkExtended(ctx context.Context) {
	add := func(name, method string, err error) {
		e.out.Extended = append(e.out.Extended, newCheck(name, method, err))
	}
	r, err := e.send(ctx, "agent/unknown", `{"jsonrpc":"2.0","method":"agent/unknown","params":{},"id":"ecp-unknown"}`, `"ecp-unknown"`)
	add("unknown method is -32601", "agent/unknown", expectError(r, err, ecp.CodeNoMethod))
	r, err = e.send(ctx, ecp.MethodStep, `{"jsonrpc":"2.0","method":"agent/step","params":[],"id":"ecp-params"}`, `"ecp-params"`)
	add("params that are not an object are -32602", ecp.MethodStep, expectError(r, err, ecp.CodeInvalidParams))
	r, err = e.send(ctx, ecp.MethodReset, `{"jsonrpc":"2.0","method":"agent/reset","params":{},"id":"1"}`, `"1"`)
	if err == nil && r.Err != nil {
		err = errorWithCode(r.Err)
	}
	add("a string id is returned unchanged", ecp.MethodReset, err)
	for _, c := range []struct {
		name, version string
		code          int
	}{
		{"another major version is -32001", `"2.0"`, ecp.CodeVersionUnsupported},
		{"a version that is not MAJOR.MINOR is -32602", `"one"`, ecp.CodeInvalidParams},
	} {
		if e.version == "" { // the agent is older than the version field
			break
		}
		r, err = e.send(ctx, ecp.MethodInitialize, `{"jsonrpc":"2.0","method":"agent/initialize","params":{"protocol_version":`+c.version+`,"config":{}},"id":"ecp-version"}`, `"ecp-version"`)
		add(c.name, ecp.MethodInitialize, expectError(r, err, c.code))
	}
	_, err = e.send(ctx, ecp.MethodReset, `{"jsonrpc":"2.0","method":"agent/reset","params":{}}`, "")
	if err == nil {
		err = e.step(ctx, "ecp: after a notification")
	}
	add("a notification is accepted", ecp.MethodReset, err)
	add("text of any script", ecp.MethodStep, e.step(ctx, "naïve \"quotes\" \\ 日本語 😀 \u0000 end"))
	if _, ok := e.conn.(*httpConn); ok {
		e.checkHTTP(ctx, add)
		return
	}
	r, err = e.send(ctx, "parse error", `{"jsonrpc": oops`, "null")
	add("a line that is not JSON gets -32700", "parse error", expectError(r, err, ecp.CodeParse))
	add("it continues after errors", ecp.MethodStep, e.step(ctx, "ecp: after errors"))
	var noisy error
	if notes := e.conn.notes(); len(notes) > 0 {
		noisy = errors.New(strings.Join(notes, "; "))
	}
	add("stdout has only answers", "stdout", noisy)
}

func expectError(r ecp.Response, err error, code int) error {
	switch {
	case err != nil:
		return err
	case r.Err == nil:
		return errors.New("the answer was a result")
	case r.Err.Code != code:
		return errorWithCode(r.Err)
	}
	return nil
}

func errorWithCode(e *ecp.Error) error { return fmt.Errorf("%w (code %d)", e, e.Code) }

// checkEnding checks that the agent ends when its input ends.
func (e *examiner) checkEnding(c *stdio) {
	_ = c.proc.Input().Close()
	err := errors.New("it is still running 2 seconds after its input ended")
	if proc.Within(c.proc.Child().Done(), stopGrace) {
		err = nil
	}
	e.out.Extended = append(e.out.Extended, newCheck("it ends when its input ends", "stdin", err))
	c.close(err != nil)
}

// checkHTTP checks the rules of HTTP.
func (e *examiner) checkHTTP(ctx context.Context, add func(string, string, error)) {
	const reset = `{"jsonrpc":"2.0","method":"agent/reset","params":{},"id":1}`
	for _, c := range []struct {
		name, method, body, header, value string
		want                              int
	}{
		{"GET is 405 or a stream", http.MethodGet, "", "Accept", "text/event-stream", http.StatusMethodNotAllowed},
		{"a notification is 202", http.MethodPost, `{"jsonrpc":"2.0","method":"agent/reset","params":{}}`, "Accept", "application/json, text/event-stream", http.StatusAccepted},
		{"a foreign Origin is 403", http.MethodPost, reset, "Origin", "https://evil.example", http.StatusForbidden},
		{"a foreign content type is 415", http.MethodPost, reset, "Content-Type", "text/plain", http.StatusUnsupportedMediaType},
	} {
		add(c.name, c.method, e.probe(ctx, c.method, c.body, c.header, c.value, c.want))
	}
}

func (e *examiner) probe(ctx context.Context, method, body, header, value string, want int) error {
	limited, cancel := context.WithTimeout(ctx, e.opts.Timeout)
	defer cancel()
	c, _ := e.conn.(*httpConn)
	req, err := http.NewRequestWithContext(limited, method, c.target, strings.NewReader(body))
	if err != nil {
		return err
	}
	for name, values := range c.headers {
		req.Header[name] = values
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set(header, value)
	resp, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	stream := method == http.MethodGet && resp.StatusCode == http.StatusOK && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
	if resp.StatusCode != want && !stream {
		return errors.New("it answered " + resp.Status)
	}
	return nil
}

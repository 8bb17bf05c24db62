package ecp

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// StepParams of agent/step.
type StepParams struct {
	Input string `json:"input"`
}

// ParseStepParams reads the params of agent/step.
func ParseStepParams(params json.RawMessage) (StepParams, error) {
	fields, err := object(params)
	if err != nil {
		return StepParams{}, fmt.Errorf("params %w", err)
	}
	input, err := optionalString(fields, "input")
	if err != nil || input == nil {
		return StepParams{}, errors.New("input must be a string")
	}
	return StepParams{Input: *input}, nil
}

// StepResult is the result of one step (docs/contracts/ecp.md 1.2; usage since protocol 1.0). The
// fields from CostUSD on are eca's own: other runtimes drop them, and other agents do not send them.
type StepResult struct {
	Status       Status
	PublicOutput *string // the text that a user would see

	// EvaluationContext is evidence for graders; PrivateThought is its older name. If a result has
	// only one of them, Context and Thought both return it.
	EvaluationContext *string
	PrivateThought    *string

	ToolCalls []ToolCall // in the order of the calls; nil for null
	Logs      *string
	Usage     Usage // nil for null: the agent did not count

	CostUSD    *float64 // US dollars; nil if unknown
	Timing     *Timing
	Model      string // provider/name
	StopReason string // one of the Stop constants, or an agent's own value

	Extra map[string]json.RawMessage // other keys, unchanged
}

// Reasons for the end of a step (stop_reason).
const (
	StopEnd       = "end"            // the model ended its answer
	StopQuestion  = "question"       // it waits for an answer, which is the next step's input
	StopToolCalls = "max_tool_calls" // budgets.max_tool_calls
	StopTime      = "timeout"        // budgets.timeout_s, or the runtime's limit of a call
	StopCost      = "max_cost_usd"   // budgets.max_cost_usd
	StopLimit     = "limit"          // a limit of the agent itself: its steps, or a detected loop
	StopBlocked   = "blocked"        // a hook of the user refused the step
	StopOutput    = "max_tokens"     // the answer is cut at the model's output limit
	StopRefusal   = "refusal"        // the model refused to go on, or its provider filtered the answer
	StopError     = "error"          // in the data of an error: the results so far
	StopCancelled = "cancelled"      // reset, or the runtime disconnected
)

// Timing of a step in milliseconds.
type Timing struct {
	TotalMS int64 `json:"total_ms"`
	ModelMS int64 `json:"model_ms"` // spent in requests to models
	ToolMS  int64 `json:"tool_ms"`  // spent in tools; parallel calls count once each
}

// Context is the evidence for graders, by either name. An empty text counts as missing, as in the
// reference.
func (r StepResult) Context() string { return firstNonEmpty(r.EvaluationContext, r.PrivateThought) }

// Thought is the evidence for graders that request it by its older name.
func (r StepResult) Thought() string { return firstNonEmpty(r.PrivateThought, r.EvaluationContext) }

func firstNonEmpty(first, second *string) string {
	for _, s := range []*string{first, second} {
		if s != nil && *s != "" {
			return *s
		}
	}
	return ""
}

// MarshalJSON writes all fields of the protocol, including null ones, and eca's own.
func (r StepResult) MarshalJSON() ([]byte, error) {
	fields := make(map[string]any, 12)
	for key, raw := range r.Extra {
		fields[key] = raw
	}
	maps.Copy(fields, map[string]any{
		"status": r.Status, "public_output": r.PublicOutput, "evaluation_context": r.EvaluationContext,
		"private_thought": r.PrivateThought, "tool_calls": r.ToolCalls, "logs": r.Logs, "usage": r.Usage,
	})
	if r.CostUSD != nil {
		fields["cost_usd"] = r.CostUSD
	}
	if r.Timing != nil {
		fields["timing"] = r.Timing
	}
	if r.Model != "" {
		fields["model"] = r.Model
	}
	if r.StopReason != "" {
		fields["stop_reason"] = r.StopReason
	}
	return jsonrpc.Marshal(fields)
}

// UnmarshalJSON is ParseStepResult, so that written results can be read again.
func (r *StepResult) UnmarshalJSON(raw []byte) error {
	parsed, err := ParseStepResult(raw)
	if err != nil {
		return err
	}
	*r = parsed
	return nil
}

// ParseStepResult reads an agent's answer to agent/step. The protocol's fields must follow its
// rules. eca's own fields are used if they have the right type, and stay in Extra otherwise: other
// agents may use the keys differently.
func ParseStepResult(raw json.RawMessage) (StepResult, error) {
	fields, err := object(raw)
	if err != nil {
		return StepResult{}, fmt.Errorf("the result of %s %w", MethodStep, err)
	}
	var r StepResult
	if err := json.Unmarshal(fields["status"], &r.Status); err != nil || r.Status != Done && r.Status != Paused {
		return r, fmt.Errorf("status in the result of %s must be done or paused", MethodStep)
	}
	for key, dst := range map[string]**string{
		"public_output": &r.PublicOutput, "evaluation_context": &r.EvaluationContext,
		"private_thought": &r.PrivateThought, "logs": &r.Logs,
	} {
		if *dst, err = optionalString(fields, key); err != nil {
			return r, fmt.Errorf("the result of %s: %w", MethodStep, err)
		}
		delete(fields, key)
	}
	if r.ToolCalls, err = parseToolCalls(fields["tool_calls"]); err != nil {
		return r, fmt.Errorf("the result of %s: %w", MethodStep, err)
	}
	if r.Usage, err = parseUsage(fields["usage"]); err != nil {
		return r, fmt.Errorf("the result of %s: %w", MethodStep, err)
	}
	for _, key := range []string{"status", "tool_calls", "usage"} {
		delete(fields, key)
	}
	MoveField(fields, "cost_usd", &r.CostUSD)
	MoveField(fields, "timing", &r.Timing)
	MoveField(fields, "model", &r.Model)
	MoveField(fields, "stop_reason", &r.StopReason)
	if len(fields) > 0 {
		r.Extra = fields
	}
	return r, nil
}

// MoveField moves a field of an object to dst if it has the right type.
func MoveField[T any](fields map[string]json.RawMessage, key string, dst *T) {
	var v T
	if raw, ok := fields[key]; ok && json.Unmarshal(raw, &v) == nil {
		*dst = v
		delete(fields, key)
	}
}

// ToolCall is one tool call as graders see it. Extra keys stay unchanged.
type ToolCall struct {
	Name      string          // non-empty
	Arguments json.RawMessage // an object, or nil if none was sent
	Extra     map[string]json.RawMessage
}

// Keys that eca puts into Extra of its calls.
const (
	CallID       = "id"          // string
	CallResult   = "result"      // string: the result that the model got, shortened
	CallIsError  = "is_error"    // bool: it failed or was refused
	CallDuration = "duration_ms" // whole number
)

// MarshalJSON writes the call with its extra keys.
func (c ToolCall) MarshalJSON() ([]byte, error) {
	fields := make(map[string]any, len(c.Extra)+2)
	for key, raw := range c.Extra {
		fields[key] = raw
	}
	fields["name"] = c.Name
	if c.Arguments != nil {
		fields["arguments"] = c.Arguments
	}
	return jsonrpc.Marshal(fields)
}

// UnmarshalJSON checks the call against the protocol's rules.
func (c *ToolCall) UnmarshalJSON(raw []byte) error {
	parsed, err := parseToolCall(raw)
	if err != nil {
		return fmt.Errorf("the tool call %w", err)
	}
	*c = parsed
	return nil
}

func parseToolCalls(raw json.RawMessage) ([]ToolCall, error) {
	if jsonrpc.IsNull(raw) {
		return nil, nil
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, errors.New("tool_calls must be a list or null")
	}
	calls := make([]ToolCall, 0, len(list))
	for i, raw := range list {
		call, err := parseToolCall(raw)
		if err != nil {
			return nil, fmt.Errorf("tool_calls[%d] %w", i, err)
		}
		calls = append(calls, call)
	}
	return calls, nil
}

func parseToolCall(raw json.RawMessage) (ToolCall, error) {
	fields, err := object(raw)
	if err != nil {
		return ToolCall{}, err
	}
	var c ToolCall
	if err := json.Unmarshal(fields["name"], &c.Name); err != nil || c.Name == "" {
		return c, errors.New("needs a name that is a non-empty string")
	}
	if arguments, ok := fields["arguments"]; ok {
		if kind(arguments) != '{' {
			return c, errors.New("has arguments that are not an object")
		}
		c.Arguments = arguments
	}
	delete(fields, "name")
	delete(fields, "arguments")
	if len(fields) > 0 {
		c.Extra = fields
	}
	return c, nil
}

// ParseResetResult checks that the answer to agent/reset is exactly true.
func ParseResetResult(raw json.RawMessage) error {
	if string(raw) != "true" {
		return fmt.Errorf("the result of %s must be true", MethodReset)
	}
	return nil
}

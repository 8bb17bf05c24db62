package ecp

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/internal/jsonrpc"
)

// InitializeParams of agent/initialize. The agent defines the contents of Config; eca's are
// described by the type Config.
type InitializeParams struct {
	ProtocolVersion string         `json:"protocol_version"`
	Config          map[string]any `json:"config"` // the reference always sends {}
}

// InitializeResult describes the agent.
type InitializeResult struct {
	Name            string       `json:"name"`                       // non-empty
	Version         string       `json:"version,omitempty"`          // of the agent; not part of the protocol
	ProtocolVersion string       `json:"protocol_version,omitempty"` // MAJOR.MINOR; empty for agents up to 0.4
	Capabilities    Capabilities `json:"capabilities"`               // may be empty, not null
}

// ParseInitializeResult reads an agent's answer to agent/initialize (docs/contracts/ecp.md 1.1).
func ParseInitializeResult(raw json.RawMessage) (InitializeResult, error) {
	fields, err := object(raw)
	if err != nil {
		return InitializeResult{}, fmt.Errorf("the result of %s %w", MethodInitialize, err)
	}
	var r InitializeResult
	if err := json.Unmarshal(fields["name"], &r.Name); err != nil || r.Name == "" {
		return r, fmt.Errorf("name in the result of %s must be a non-empty string", MethodInitialize)
	}
	if raw, ok := fields["protocol_version"]; ok {
		version, err := ParseVersion(raw)
		if err != nil {
			return r, fmt.Errorf("the result of %s: %w", MethodInitialize, err)
		}
		r.ProtocolVersion = version.String()
	}
	_ = json.Unmarshal(fields["version"], &r.Version) // other values of this key are ignored
	r.Capabilities, err = parseCapabilities(fields["capabilities"])
	return r, err
}

// Approval is what happens to tool calls that need the user's approval.
type Approval string

const (
	// ApproveNone refuses all of these calls. It is the default.
	ApproveNone Approval = "none"
	// ApproveEdits allows changes to files inside the workspace and refuses the rest.
	ApproveEdits Approval = "auto-edit"
	// ApproveAll allows all of these calls. Denied calls stay denied.
	ApproveAll Approval = "all"
)

// Config is eca's part of config in agent/initialize. Every value may be missing.
type Config struct {
	Model     string   `json:"model,omitempty"`     // provider/name
	Agent     string   `json:"agent,omitempty"`     // name of one of eca's agents, such as code or plan
	Workspace string   `json:"workspace,omitempty"` // absolute path of a directory; if empty, the directory of the process
	Tools     Tools    `json:"tools,omitzero"`
	Approval  Approval `json:"approval,omitempty"`
	Budgets   Budgets  `json:"budgets,omitzero"`
}

// Tools that are offered to the model, by their short names.
type Tools struct {
	Allow []string `json:"allow,omitempty"` // empty means all
	Deny  []string `json:"deny,omitempty"`  // takes precedence over Allow
}

// Budgets of one step. Zero means no limit.
type Budgets struct {
	MaxToolCalls int     `json:"max_tool_calls,omitempty"` // number of calls that run; the next one ends the step as paused
	TimeoutS     float64 `json:"timeout_s,omitempty"`      // seconds
	MaxCostUSD   float64 `json:"max_cost_usd,omitempty"`   // US dollars
}

// IsZero reports whether nothing is limited.
func (b Budgets) IsZero() bool { return b == Budgets{} }

// IsZero reports whether nothing is allowed or denied by name.
func (t Tools) IsZero() bool { return len(t.Allow) == 0 && len(t.Deny) == 0 }

// ParseConfig reads config from the params of agent/initialize. An error names the invalid key.
// Unknown keys are for other agents, and are ignored.
func ParseConfig(params json.RawMessage) (Config, error) {
	fields, err := object(params)
	if err != nil {
		return Config{}, fmt.Errorf("params %w", err)
	}
	if jsonrpc.IsNull(fields["config"]) {
		return Config{}, nil
	}
	if fields, err = object(fields["config"]); err != nil {
		return Config{}, fmt.Errorf("config %w", err)
	}
	var c Config
	read := fieldReader{fields: fields, prefix: "config."}
	read.decode("model", &c.Model, "a string like provider/name")
	read.decode("agent", &c.Agent, "a string")
	read.decode("workspace", &c.Workspace, "a string")
	read.decode("approval", &c.Approval, "none, auto-edit or all")
	tools := read.object("tools")
	tools.decode("allow", &c.Tools.Allow, "a list of names")
	tools.decode("deny", &c.Tools.Deny, "a list of names")
	budgets := read.object("budgets")
	budgets.decode("max_tool_calls", &c.Budgets.MaxToolCalls, "a whole number")
	budgets.decode("timeout_s", &c.Budgets.TimeoutS, "a number of seconds")
	budgets.decode("max_cost_usd", &c.Budgets.MaxCostUSD, "a number of US dollars")
	if err := errors.Join(read.err, tools.err, budgets.err); err != nil {
		return Config{}, err
	}
	return c, c.check()
}

func (c Config) check() error {
	switch c.Approval {
	case "", ApproveNone, ApproveEdits, ApproveAll:
	default:
		return fmt.Errorf("config.approval must be none, auto-edit or all, not %q", c.Approval)
	}
	if c.Workspace != "" && !filepath.IsAbs(c.Workspace) {
		return fmt.Errorf("config.workspace must be an absolute path, not %q", c.Workspace)
	}
	switch b := c.Budgets; {
	case b.MaxToolCalls < 0:
		return errors.New("config.budgets.max_tool_calls must not be negative")
	case b.TimeoutS < 0:
		return errors.New("config.budgets.timeout_s must not be negative")
	case b.MaxCostUSD < 0:
		return errors.New("config.budgets.max_cost_usd must not be negative")
	}
	return nil
}

// fieldReader reads the keys of an object, and stores the first error.
type fieldReader struct {
	fields map[string]json.RawMessage
	prefix string
	err    error
}

func (r *fieldReader) decode(key string, dst any, want string) {
	raw := r.fields[key]
	if r.err != nil || jsonrpc.IsNull(raw) {
		return
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		r.err = fmt.Errorf("%s%s must be %s", r.prefix, key, want)
	}
}

func (r *fieldReader) object(key string) *fieldReader {
	inner := &fieldReader{prefix: r.prefix + key + "."}
	if raw := r.fields[key]; !jsonrpc.IsNull(raw) {
		fields, err := object(raw)
		if err != nil {
			inner.err = fmt.Errorf("%s%s %w", r.prefix, key, err)
		}
		inner.fields = fields
	}
	return inner
}

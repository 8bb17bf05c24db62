package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"
	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// Tool is a tool of an MCP server. It stays usable, as far as the server is, when the
// server starts anew or its tools change.
type Tool struct {
	spec   tools.Spec
	server *server
}

var _ tools.Tool = (*Tool)(nil)

// Spec implements tools.Tool.
func (t *Tool) Spec() tools.Spec { return t.spec }

// Plan implements tools.Tool. What a call will do only the server knows.
func (t *Tool) Plan(_ context.Context, _ tools.Call) (tools.Plan, error) {
	return tools.Plan{Summary: "Calling tool: " + t.spec.Server + "__" + t.spec.Name}, nil
}

// Run implements tools.Tool. It waits for a server that is starting, and has one started
// that failed.
func (t *Tool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	conn, err := t.server.connection(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	res, err := conn.call(ctx, t.spec.Name, call, out)
	if errors.Is(err, transport.ErrSessionTerminated) {
		// The server forgot us and did not do anything: with a new session it can.
		conn.cancel(errors.New("the server ended the session"))
		if conn, err = t.server.connection(ctx); err != nil {
			return tools.Result{}, err
		}
		res, err = conn.call(ctx, t.spec.Name, call, out)
	}
	if err != nil {
		if ctx.Err() != nil {
			return tools.Result{}, context.Cause(ctx)
		}
		return tools.Result{}, fmt.Errorf("the call of %s failed: %w", t.spec.FullName(), err)
	}
	return res, nil
}

const (
	defaultParallel = 64
	defaultLimit    = 120 * time.Second
	maxCall         = time.Hour // also of a call that reports progress
	maxProgress     = 1000      // bytes of a report
)

// parallelCalls is how many calls of a server run at the same time; the others wait.
func parallelCalls(c config.MCPServer) int {
	if c.MaxParallelCalls > 0 {
		return c.MaxParallelCalls
	}
	return defaultParallel
}

// callLimit is how long a call may say nothing.
func callLimit(c config.MCPServer) time.Duration {
	if c.CallTimeoutSeconds > 0 {
		return time.Duration(c.CallTimeoutSeconds * float64(time.Second))
	}
	return defaultLimit
}

// errLate ends a call that takes too long.
var errLate = errors.New("no answer in time")

// call calls a tool. The end of ctx cancels the call at the server.
func (c *connection) call(ctx context.Context, name string, call tools.Call, out tools.Sink) (tools.Result, error) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return tools.Result{}, context.Cause(ctx)
	case <-c.ctx.Done():
		return tools.Result{}, c.cause()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stop := context.AfterFunc(c.ctx, func() { cancel(c.cause()) })
	defer stop()
	total := time.AfterFunc(maxCall, func() { cancel(fmt.Errorf("%w: it was cancelled after %s", errLate, maxCall)) })
	defer total.Stop()
	patience := time.AfterFunc(c.limit, func() {
		cancel(fmt.Errorf("%w: the server said nothing for %s, so the call was cancelled", errLate, c.limit))
	})
	defer patience.Stop()

	running, ended := c.begin(call, name, patience)
	defer ended()
	token, forget := c.hear(func(message string) {
		running.heard()
		if out != nil && message != "" {
			out(message)
		}
	})
	defer forget()
	request := wire.CallToolRequest{}
	request.Params.Name, request.Params.Arguments = name, call.Arguments
	request.Params.Meta = &wire.Meta{ProgressToken: token}
	res, err := c.client.CallTool(ctx, request)
	if err == nil {
		return result(res), nil
	}
	cause := context.Cause(ctx)
	switch {
	case c.ctx.Err() != nil:
		return tools.Result{}, fmt.Errorf("the server is gone: %w. What the call did until then is not known", c.cause())
	case errors.Is(cause, errLate):
		c.background(c.alive)
		return tools.Result{}, cause
	case cause != nil:
		return tools.Result{}, cause
	case errors.Is(err, transport.ErrAuthorizationRequired), errors.Is(err, errUnauthorized):
		c.cancel(unauthorized(err))
		return tools.Result{}, unauthorized(err)
	case errors.Is(err, transport.ErrSessionTerminated):
		return tools.Result{}, err
	case !answered(err):
		c.background(c.alive)
		return tools.Result{}, fmt.Errorf("the connection broke off before the answer: %w", c.cleaned(err))
	}
	return tools.Result{}, c.cleaned(err)
}

// cleaned is an error as it may be shown.
func (c *connection) cleaned(err error) error {
	return errors.New(cut(c.clean(err.Error()), maxDescription))
}

// hear has a function called with the progress of a request.
func (c *connection) hear(heard func(message string)) (token string, forget func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens++
	token = "call-" + strconv.Itoa(c.tokens)
	c.progress[token] = heard
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.progress, token)
	}
}

// listTools asks for all tools of the server.
func (c *connection) listTools(ctx context.Context, s *server) ([]*Tool, error) {
	if c.client.GetServerCapabilities().Tools == nil {
		return nil, nil
	}
	var out []*Tool
	request := wire.ListToolsRequest{}
	for range maxPages {
		var raw json.RawMessage
		page, err := c.client.ListToolsByPage(keepingRaw(ctx, &raw), request)
		if err != nil {
			return nil, c.causeOr(fmt.Errorf("its tools could not be listed: %w", err))
		}
		var schemas struct {
			Tools []struct {
				Name   string          `json:"name"`
				Schema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		_ = json.Unmarshal(raw, &schemas) // the client could
		byName := map[string]json.RawMessage{}
		for _, t := range schemas.Tools {
			byName[t.Name] = t.Schema
		}
		for _, t := range page.Tools {
			tool, err := newTool(s, t, byName[t.Name], c.clean)
			if err == nil && len(out) == maxTools {
				err = fmt.Errorf("a server has at most %d", maxTools)
			}
			if err != nil {
				s.m.deps.Log.Warn("a tool of an MCP server is left out", "server", s.name, "tool", cut(t.Name, 100), "err", err)
				continue
			}
			out = append(out, tool)
		}
		if page.NextCursor == "" || page.NextCursor == request.Params.Cursor {
			break
		}
		request.Params.Cursor = page.NextCursor
	}
	return out, nil
}

// newTool checks a tool that a server lists.
func newTool(s *server, t wire.Tool, raw json.RawMessage, clean func(string) string) (*Tool, error) {
	if t.Name == "" || len(t.Name) > maxToolName {
		return nil, fmt.Errorf("names have 1 to %d bytes", maxToolName)
	}
	schema, err := objectSchema(raw)
	if err != nil {
		return nil, err
	}
	description := cmp.Or(t.Description, t.Title, t.Annotations.Title, "The tool "+t.Name+" of the MCP server "+s.name+".")
	return &Tool{server: s, spec: tools.Spec{
		Server: s.name, Name: t.Name, Origin: "mcp", Schema: schema, Description: cut(clean(description), maxDescription),
	}}, nil
}

const maxToolName = 256 // bytes

// objectSchema returns a schema of arguments as providers and clients want it: of an object
// with properties. The rest is as it was sent.
func objectSchema(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d KiB", maxSchema>>10)
	}
	members := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &members) != nil {
		return nil, errors.New("its schema is no object")
	}
	var properties map[string]json.RawMessage
	hasProperties := json.Unmarshal(members["properties"], &properties) == nil && properties != nil
	if string(members["type"]) == `"object"` && hasProperties {
		return raw, nil
	}
	if members == nil {
		members = map[string]json.RawMessage{}
	}
	members["type"] = json.RawMessage(`"object"`)
	if !hasProperties {
		members["properties"] = json.RawMessage(`{}`)
	}
	return json.Marshal(members)
}

package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	wire "github.com/mark3labs/mcp-go/mcp"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
)

// Tool is a tool of an MCP server. It can still be called after the server restarted or changed its
// tools.
type Tool struct {
	spec      tools.Spec
	server    *server
	name      string // the name that the server uses
	tasks     string // whether it is called as a task: required, optional or forbidden
	output    *outputSchema
	described Described   // the server's current description of it
	agreed    *AgreedTool // the description that the user agreed to; nil if it is the same
}

var _ tools.Tool = (*Tool)(nil)

// Spec implements tools.Tool.
func (t *Tool) Spec() tools.Spec { return t.spec }

// Plan implements tools.Tool. Only the server knows what a call will do.
func (t *Tool) Plan(_ context.Context, _ tools.Call) (tools.Plan, error) {
	summary := "Calling tool: " + t.spec.Server + "__" + t.spec.Name
	if t.agreed != nil {
		summary += " (it has changed)"
	}
	return tools.Plan{Summary: summary}, nil
}

// Run implements tools.Tool. It waits for a server that is starting, and starts one that failed.
func (t *Tool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	conn, err := t.server.connection(ctx)
	if err != nil {
		return tools.Result{}, err
	}
	if t.agreed != nil && call.Authorization.Approved && t.server.m.deps.Agree != nil {
		t.server.m.deps.Agree(t.server.name, t.described) // the user saw the difference when approving the call
		conn.markStale(toolsList)
	}
	res, err := conn.call(ctx, t, call, out)
	if errors.Is(err, errSessionLost) {
		// The server lost the session and did not carry out the call; a new session may help.
		conn.session.cancel(errSessionLost)
		if conn, err = t.server.connection(ctx); err != nil {
			return tools.Result{}, err
		}
		res, err = conn.call(ctx, t, call, out)
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
	maxCall         = time.Hour // even for a call that reports progress
	maxProgress     = 1000      // bytes of a report
)

// parallelCalls is how many calls of a server run at the same time; further ones wait.
func parallelCalls(c config.MCPServer) int {
	if c.MaxParallelCalls > 0 {
		return c.MaxParallelCalls
	}
	return defaultParallel
}

// callLimit returns how long the server may send neither an answer nor progress during a call.
func callLimit(c config.MCPServer) time.Duration {
	if c.CallTimeoutSeconds > 0 {
		return time.Duration(c.CallTimeoutSeconds * float64(time.Second))
	}
	return defaultLimit
}

// errTimeout ends a call that takes too long.
var errTimeout = errors.New("no answer in time")

// call calls a tool. The end of ctx cancels the call at the server.
func (c *connection) call(ctx context.Context, t *Tool, call tools.Call, out tools.Sink) (tools.Result, error) {
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
	total := time.AfterFunc(maxCall, func() { cancel(fmt.Errorf("%w: it was cancelled after %s", errTimeout, maxCall)) })
	defer total.Stop()
	silenceTimer := time.AfterFunc(c.silenceLimit, func() {
		cancel(fmt.Errorf("%w: the server said nothing for %s, so the call was cancelled", errTimeout, c.silenceLimit))
	})
	defer silenceTimer.Stop()

	running, unregister := c.registerCall(call, t.spec.Name, silenceTimer)
	defer unregister()
	raw, err := c.perform(ctx, t, call.Arguments, running, out)
	if err == nil {
		return convertResult(raw, t.output)
	}
	cause := context.Cause(ctx)
	switch {
	case c.ctx.Err() != nil:
		return tools.Result{}, fmt.Errorf("the server ended during the call: %w. eca does not know what the call did", c.cause())
	case errors.Is(cause, errTimeout):
		c.session.background(c.ping)
		return tools.Result{}, cause
	case cause != nil:
		return tools.Result{}, cause
	case errors.Is(err, errUnauthorized):
		c.session.cancel(unauthorized(err))
		return tools.Result{}, unauthorized(err)
	case errors.Is(err, errSessionLost):
		return tools.Result{}, err
	case errors.As(err, new(callError)):
	case !answered(err):
		c.session.background(c.ping)
		if _, ok := errors.AsType[*statusError](err); ok {
			return tools.Result{}, fmt.Errorf("%w. eca does not know what the call did", c.cleanError(err))
		}
		return tools.Result{}, fmt.Errorf("the connection was lost before the answer: %w", c.cleanError(err))
	}
	return tools.Result{}, c.cleanError(err)
}

// perform carries a call out, including the task that it may become. If the server requires it, eca
// has the user open pages first.
func (c *connection) perform(ctx context.Context, t *Tool, arguments json.RawMessage, running *activeCall, out tools.Sink) (json.RawMessage, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage(`{}`)
	}
	params := map[string]any{"name": t.name, "arguments": arguments}
	if c.mustBeTask(t.tasks) {
		params["task"] = map[string]any{"ttl": maxCall.Milliseconds()}
	}
	report := func(text string) {
		if out != nil && text != "" {
			out(shorten.Bytes(c.clean(text), maxProgress) + "\n") // progress is shown line by line
		}
	}
	toolCall := request{
		method: string(wire.MethodToolsCall), params: params, header: c.headerArguments(t.spec, params),
		progress: func(text string) {
			running.restartTimer()
			report(text)
		},
	}
	for round := 0; ; round++ {
		raw, err := c.session.ask(ctx, toolCall)
		if err == nil {
			if task, ok := parseTask(raw); ok {
				raw, err = c.awaitTask(ctx, task, running, report)
				if err != nil && !answered(err) && !errors.Is(err, errUnauthorized) {
					err = callError(err.Error())
				}
			}
		}
		pages := requiredPages(err)
		if len(pages) == 0 || round == maxPageRounds {
			return raw, err
		}
		if err := c.visitPages(ctx, running.ActiveCall, pages); err != nil {
			return nil, callError(err.Error())
		}
	}
}

// callError is the error of a call that the server had begun to carry out. The call must not be
// repeated, and the connection may still work.
type callError string

func (e callError) Error() string { return string(e) }

// cleanError returns an error that is safe to show.
func (c *connection) cleanError(err error) error {
	return errors.New(shorten.Bytes(c.clean(err.Error()), maxDescription))
}

// headerArguments returns the arguments that the server also requires as HTTP headers. Only the newest
// version, which has no handshake, allows this.
func (c *connection) headerArguments(spec tools.Spec, params any) map[string]string {
	if !c.session.modern() {
		return nil
	}
	raw, err := json.Marshal(params)
	if err != nil {
		return nil
	}
	return wire.GenerateParamHeaders(&wire.Tool{RawInputSchema: spec.Schema}, raw)
}

// listTools fetches all tools of the server. leftOut has the reasons why tools cannot be used.
func (c *connection) listTools(ctx context.Context, s *server) (out []*Tool, leftOut []string, err error) {
	if c.capabilities.Tools == nil {
		return nil, nil, nil
	}
	type page struct {
		Tools []json.RawMessage `json:"tools"`
		Next  string            `json:"nextCursor"`
	}
	err = fetchPages(ctx, c, wire.MethodToolsList, func(page *page) string {
		for _, raw := range page.Tools {
			name, tool, err := c.newTool(s, raw)
			if err == nil && slices.ContainsFunc(out, func(t *Tool) bool { return t.name == name }) {
				err = errors.New("the server lists this name twice; the first one counts")
			}
			if err == nil && len(out) == maxTools {
				err = fmt.Errorf("only %d tools are supported", maxTools)
			}
			if err != nil {
				s.m.deps.Log.Warn("omitting a tool of an MCP server", "server", s.name, "tool", shorten.Bytes(name, 100), "err", err)
				if len(leftOut) < maxLeftOut {
					leftOut = append(leftOut, fmt.Sprintf("the tool %q: %v", shorten.Bytes(name, 100), err))
				}
				continue
			}
			out = append(out, tool)
		}
		return page.Next
	})
	if err != nil {
		return nil, nil, c.session.causeOr(fmt.Errorf("its tools could not be listed: %w", err))
	}
	return s.markChanged(out), leftOut, nil
}

// newTool checks a tool from a server's list.
func (c *connection) newTool(s *server, raw json.RawMessage) (name string, _ *Tool, _ error) {
	var t struct {
		Name        string              `json:"name"`
		Title       string              `json:"title"`
		Description string              `json:"description"`
		Schema      json.RawMessage     `json:"inputSchema"`
		Output      json.RawMessage     `json:"outputSchema"`
		Annotations wire.ToolAnnotation `json:"annotations"`
		Execution   struct {
			Tasks string `json:"taskSupport"`
		} `json:"execution"`
	}
	if err := decode(raw, &t); err != nil {
		return t.Name, nil, err
	}
	if t.Name == "" || len(t.Name) > maxToolName {
		return t.Name, nil, fmt.Errorf("names have 1 to %d bytes", maxToolName)
	}
	schema, err := objectSchema(escapedSchema(t.Schema))
	if err != nil {
		return t.Name, nil, err
	}
	if c.session.modern() {
		if err := wire.ValidateParamHeaderAnnotations(&wire.Tool{RawInputSchema: schema}); err != nil {
			return t.Name, nil, err
		}
	}
	description := cmp.Or(t.Description, t.Title, t.Annotations.Title, "The tool "+oneLine(t.Name)+" of the MCP server "+s.name+".")
	description = shorten.Bytes(c.clean(description), maxDescription)
	return t.Name, &Tool{server: s, name: t.Name, tasks: t.Execution.Tasks, output: newOutputSchema(t.Output), described: Described{t.Name, description, schema}, spec: tools.Spec{
		Server: s.name, Name: oneLine(t.Name), Origin: tools.OriginMCP, Schema: schema, Description: description, Caution: caution(t.Annotations),
	}}, nil
}

// caution returns why calls of a tool need the user's approval, according to the server's hints. Hints
// that a tool is harmless are ignored, because a server can claim anything.
func caution(a wire.ToolAnnotation) string {
	switch {
	case a.DestructiveHint != nil && *a.DestructiveHint:
		return "the server says that this tool may destroy something"
	case a.OpenWorldHint != nil && *a.OpenWorldHint:
		return "the server says that this tool may reach other systems, such as the web"
	}
	return ""
}

const (
	maxToolName = 256 // bytes
	maxLeftOut  = 20  // reasons kept for omitted tools
)

// objectSchema converts a schema of arguments to the form that providers and clients require: an
// object with properties. Everything else stays unchanged.
func objectSchema(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) > maxSchema {
		return nil, fmt.Errorf("its schema has more than %d KiB", maxSchema>>10)
	}
	members := map[string]json.RawMessage{}
	if len(raw) > 0 && json.Unmarshal(raw, &members) != nil {
		return nil, errors.New("its schema is not an object")
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

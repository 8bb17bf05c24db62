package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// customTimeout limits the time of a custom tool. It is long, because custom tools may build and test.
const customTimeout = time.Hour

// Custom is a tool that the user configured (eca-features.md 17): a command with arguments from the
// model.
type Custom struct {
	Name        string
	Description string
	Command     string         // a shell line with placeholders {{argument}}
	Schema      map[string]any // JSON schema of the arguments: properties and required
}

type customTool struct {
	options Options
	spec    tools.Spec
	schema  *jsonschema.Resolved
	command *cmdline.Template
}

var _ tools.Tool = (*customTool)(nil)

// CustomTool returns a tool, or an error if its configuration is invalid.
func CustomTool(o Options, c Custom) (tools.Tool, error) {
	if !regexp.MustCompile(`^[A-Za-z0-9_-]{1,58}$`).MatchString(c.Name) {
		return nil, errors.New("its name must be 1 to 58 letters, digits, - and _")
	}
	if strings.TrimSpace(c.Command) == "" {
		return nil, errors.New("it has no command")
	}
	if runtime.GOOS == "windows" && o.Path == "" {
		return nil, errors.New("on Windows custom tools need a POSIX shell: set toolCall.shellCommand.path")
	}
	full := map[string]any{"type": "object", "properties": map[string]any{}}
	for k, v := range c.Schema {
		full[k] = v
	}
	if err := tools.CheckSchema(full); err != nil {
		return nil, fmt.Errorf("its schema is invalid: %w", err)
	}
	raw, err := json.Marshal(full)
	if err != nil {
		return nil, err
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal(raw, &schema); err != nil {
		return nil, fmt.Errorf("its schema is invalid: %w", err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("its schema is invalid: %w", err)
	}
	command, err := cmdline.ParseTemplate(c.Command)
	if err != nil {
		return nil, err
	}
	for _, name := range command.Names() {
		if _, ok := schema.Properties[name]; !ok {
			return nil, fmt.Errorf("its command uses {{%s}}, which is not a property of its schema", name)
		}
	}
	return &customTool{o, tools.Spec{
		Server: tools.Native, Name: c.Name, Origin: "native", Description: c.Description, Schema: raw, Preparing: "Preparing " + c.Name,
	}, resolved, command}, nil
}

// Spec implements tools.Tool.
func (t *customTool) Spec() tools.Spec { return t.spec }

// Plan implements tools.Tool. The line with its arguments is judged as a command.
func (t *customTool) Plan(_ context.Context, call tools.Call) (tools.Plan, error) {
	args, err := t.arguments(call.Arguments)
	if err != nil {
		return tools.Plan{}, err
	}
	line, err := t.command.Literal(args)
	if err != nil {
		return tools.Plan{}, err
	}
	dir, err := workingDir(call.Roots, "")
	if err != nil {
		return tools.Plan{}, err
	}
	return tools.Plan{
		Summary: "Running tool " + t.spec.Name, Paths: []string{dir},
		Command: &tools.Command{Text: line, Dir: dir, Program: t.options.parse(line), TemplateArguments: t.command.Values(args)},
	}, nil
}

// Run implements tools.Tool.
func (t *customTool) Run(ctx context.Context, call tools.Call, out tools.Sink) (tools.Result, error) {
	args, err := t.arguments(call.Arguments)
	if err != nil {
		return tools.Result{}, err
	}
	line, env, err := t.command.Fill(args)
	if err != nil {
		return tools.Result{}, err
	}
	judged, err := t.command.Literal(args)
	if err != nil {
		return tools.Result{}, err
	}
	dir, err := workingDir(call.Roots, "")
	if err != nil {
		return tools.Result{}, err
	}
	return t.options.execute(ctx, call, execution{program: t.options.parse(judged), dir: dir, timeout: customTimeout, prepare: func(call tools.Call) (proc.Spec, error) {
		spec := t.options.processFor(judged, dir)
		spec.Args[len(spec.Args)-1] = line
		spec.Env = append(spec.Env, env...)
		t.options.setSandbox(&spec, call)
		return spec, nil
	}}, out)
}

// arguments checks the arguments of a call and returns those that have a value.
func (t *customTool) arguments(raw json.RawMessage) (map[string]json.RawMessage, error) {
	var args map[string]json.RawMessage
	var values map[string]any
	if err := errors.Join(json.Unmarshal(raw, &args), json.Unmarshal(raw, &values)); err != nil {
		return nil, fmt.Errorf("INVALID_ARGS: the arguments of %s are not a JSON object: %w", t.spec.Name, err)
	}
	required := t.schema.Schema().Required
	for name, v := range values {
		if (v == nil || v == "") && !slices.Contains(required, name) { // some models send all optional arguments
			delete(values, name)
			delete(args, name)
		}
	}
	if err := t.schema.Validate(values); err != nil {
		for errors.Unwrap(err) != nil {
			err = errors.Unwrap(err)
		}
		return nil, fmt.Errorf("INVALID_ARGS: %s: %w", t.spec.Name, err)
	}
	return args, nil
}

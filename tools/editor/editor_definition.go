package editor

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed editor_definition.md
var definitionDoc string

// maxLocations limits the listed locations; eca-features.md, Appendix B.
const maxLocations = 100

type definitionArgs struct {
	Path      string `json:"path" jsonschema:"The absolute path of the file in which the symbol is used."`
	Line      int    `json:"line" jsonschema:"The line of the symbol, counting from 1."`
	Symbol    string `json:"symbol" jsonschema:"The symbol as it is written there."`
	Character int    `json:"character,omitempty" jsonschema:"The column of the symbol, counting from 1."`
}

func (a definitionArgs) plan(call tools.Call, what string) (tools.Plan, error) {
	if a.Line < 1 || a.Symbol == "" {
		return tools.Plan{}, fmt.Errorf("INVALID_ARGS: line counts from 1, and symbol must not be empty")
	}
	return tools.Plan{Summary: what + ": " + a.Symbol, Paths: []string{workspace.Abs(call.Roots, a.Path)}}, nil
}

func definition(o Options) tools.Tool {
	return tools.Definition[definitionArgs]{
		ReadOnly: true, Name: "editor_definition", Description: definitionDoc, Preparing: "Finding definition",
		Plan: func(_ context.Context, call tools.Call, a definitionArgs) (tools.Plan, error) {
			return a.plan(call, "LSP definition")
		},
		Run: func(ctx context.Context, call tools.Call, a definitionArgs, _ tools.Sink) (tools.Result, error) {
			return navigate(ctx, o, call, a, "the definition", o.Client.Definition)
		},
	}.Build()
}

// navigate finds the symbol on its line, queries the editor, and lists the locations.
func navigate(ctx context.Context, o Options, call tools.Call, a definitionArgs, what string, ask func(context.Context, tools.Position) ([]tools.Position, error)) (tools.Result, error) {
	at, err := locate(workspace.Abs(call.Roots, a.Path), a.Line, a.Symbol, a.Character)
	if err != nil {
		return tools.Result{}, err
	}
	found, err := withTimeout(ctx, o.Timeout, func(ctx context.Context) ([]tools.Position, error) { return ask(ctx, at) })
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("Editor failed to find %s: %w. Use eca__grep as fallback.", what, err) //nolint:staticcheck // shown as it is
	}
	if err != nil {
		return tools.Result{}, err
	}
	if len(found) == 0 {
		return tools.Text(fmt.Sprintf("The editor found nothing for %q at %s.", a.Symbol, at)), nil
	}
	return tools.Text(formatList(found, maxLocations, location, "")), nil
}

// location returns a position with its line of code, so that the model need not read the file.
func location(at tools.Position) string {
	text, err := readLine(at.Path, at.Line)
	if text = strings.TrimSpace(text); err != nil || text == "" {
		return at.String()
	}
	return at.String() + ": " + shorten.Bytes(text, shownLine)
}

package editor

import (
	"context"
	_ "embed"

	"github.com/seed-dec29ce4/eca/tools"
)

//go:embed editor_references.md
var referencesDoc string

type referencesArgs struct {
	definitionArgs
	IncludeDeclaration bool `json:"include_declaration,omitempty" jsonschema:"List the declaration too (default: false)."`
}

func references(o Options) tools.Tool {
	return tools.Definition[referencesArgs]{
		ReadOnly: true, Name: "editor_references", Description: referencesDoc, Preparing: "Finding references",
		Plan: func(_ context.Context, call tools.Call, a referencesArgs) (tools.Plan, error) {
			return a.plan(call, "LSP references")
		},
		Run: func(ctx context.Context, call tools.Call, a referencesArgs, _ tools.Sink) (tools.Result, error) {
			return navigate(ctx, o, call, a.definitionArgs, "references", func(ctx context.Context, at tools.Position) ([]tools.Position, error) {
				return o.Client.References(ctx, at, a.IncludeDeclaration)
			})
		},
	}.Build()
}

package editor

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed editor_diagnostics.md
var diagnosticsDoc string

const maxDiagnostics = 200

type diagnosticsArgs struct {
	Path string `json:"path,omitempty" jsonschema:"The absolute path of a file or folder (default: the whole workspace)."`
}

func diagnostics(o Options) tools.Tool {
	return tools.Definition[diagnosticsArgs]{
		ReadOnly: true, Name: "editor_diagnostics", Description: diagnosticsDoc, Preparing: "Reading diagnostics",
		Plan: func(_ context.Context, call tools.Call, a diagnosticsArgs) (tools.Plan, error) {
			if a.Path == "" {
				return tools.Plan{Summary: "Diagnostics: workspace"}, nil
			}
			path := workspace.Abs(call.Roots, a.Path)
			return tools.Plan{Summary: "Diagnostics: " + filepath.Base(path), Paths: []string{path}}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a diagnosticsArgs, _ tools.Sink) (tools.Result, error) {
			path := ""
			if a.Path != "" {
				path = workspace.Abs(call.Roots, a.Path)
			}
			return runDiagnostics(ctx, o, path)
		},
	}.Build()
}

func runDiagnostics(ctx context.Context, o Options, path string) (tools.Result, error) {
	file, folder := path, ""
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		file, folder = "", path // editors can only filter by file
	}
	found, err := withTimeout(ctx, o.Timeout, func(ctx context.Context) ([]tools.Diagnostic, error) {
		return o.Client.Diagnostics(ctx, file)
	})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("not available: %w", err)
	}
	if err != nil {
		return tools.Result{}, err
	}
	if folder != "" {
		below := workspace.New(folder)
		found = slices.DeleteFunc(found, func(d tools.Diagnostic) bool { return !below.Contains(d.At.Path) })
	}
	if len(found) == 0 {
		return tools.Text("The editor reports no diagnostics."), nil
	}
	slices.SortStableFunc(found, tools.Diagnostic.Compare)
	return tools.Text(formatList(found, maxDiagnostics, tools.Diagnostic.String, "; ask for one file")), nil
}

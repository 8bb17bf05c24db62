package fs

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed edit_file.md
var editFileDoc string

type editFileArgs struct {
	Path     string `json:"path" jsonschema:"The absolute path of the file."`
	Original string `json:"original_content" jsonschema:"The exact content to find and replace."`
	New      string `json:"new_content" jsonschema:"The content to put in its place."`
	All      bool   `json:"all_occurrences,omitempty" jsonschema:"Replace every occurrence (default: false; the content must then occur only once)."`
}

func editFile(c *changes) tools.Tool {
	return tools.Definition[editFileArgs]{
		Name: "edit_file", Description: editFileDoc, Preparing: "Editing file",
		Plan: func(_ context.Context, call tools.Call, a editFileArgs) (tools.Plan, error) {
			path := workspace.Abs(call.Roots, a.Path)
			plan := tools.Plan{Summary: "Editing " + filepath.Base(path), Paths: []string{path}}
			before, after, err := applyEdit(call, path, a)
			if err != nil {
				return planWithoutDetails(call, plan, err)
			}
			plan.Details = diffDetails(path, before, after)
			return plan, nil
		},
		Run: func(ctx context.Context, call tools.Call, a editFileArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			update, err := c.change(ctx, call, path, func() (before, after string, err error) { return applyEdit(call, path, a) })
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{Outputs: []string{"Edited " + path + update.note}, Details: diffDetails(path, update.before, update.after)}, nil
		},
	}.Build()
}

// applyEdit returns a file's text before and after the edit.
func applyEdit(call tools.Call, path string, a editFileArgs) (before, after string, err error) {
	if before, err = readText(call, 0, path); err != nil {
		return "", "", err
	}
	after, err = replaceMatch(before, a.Original, a.New, a.All)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	if after == before {
		return "", "", fmt.Errorf("%s: the new content equals the original; nothing to do", path)
	}
	return before, after, nil
}

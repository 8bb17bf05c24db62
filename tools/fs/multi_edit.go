package fs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed multi_edit.md
var multiEditDoc string

type multiEditArgs struct {
	Path  string     `json:"path" jsonschema:"The absolute path of the file."`
	Edits []editArgs `json:"edits" jsonschema:"The edits, in the order in which they are made."`
}

// editArgs is one edit.
type editArgs struct {
	Original string `json:"original_content" jsonschema:"The exact content to find and replace."`
	New      string `json:"new_content" jsonschema:"The content to put in its place."`
	All      bool   `json:"all_occurrences,omitempty" jsonschema:"Replace every occurrence (default: false; the content must then occur only once)."`
}

func multiEdit(c *changes) tools.Tool {
	return tools.Definition[multiEditArgs]{
		Name: "multi_edit", Description: multiEditDoc, Preparing: "Editing file",
		Plan: func(_ context.Context, call tools.Call, a multiEditArgs) (tools.Plan, error) {
			path := workspace.Abs(call.Roots, a.Path)
			plan := tools.Plan{Summary: fmt.Sprintf("Editing %s (%d edits)", filepath.Base(path), len(a.Edits)), Paths: []string{path}}
			before, after, err := applyEdits(call, path, a.Edits)
			if err != nil {
				return planWithoutDetails(call, plan, err)
			}
			plan.Details = diffDetails(path, before, after)
			return plan, nil
		},
		Run: func(ctx context.Context, call tools.Call, a multiEditArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			update, err := c.change(ctx, call, path, func() (before, after string, err error) { return applyEdits(call, path, a.Edits) })
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{
				Outputs: []string{fmt.Sprintf("Made %d edits of %s%s", len(a.Edits), path, update.note)}, Details: diffDetails(path, update.before, update.after),
			}, nil
		},
	}.Build()
}

// applyEdits returns a file's text before and after a series of edits.
func applyEdits(call tools.Call, path string, edits []editArgs) (before, after string, err error) {
	if len(edits) == 0 {
		return "", "", errors.New("INVALID_ARGS: multi_edit needs at least one edit")
	}
	if before, err = readText(call, 0, path); err != nil {
		return "", "", err
	}
	after = before
	for i, e := range edits {
		text, err := replaceMatch(after, e.Original, e.New, e.All)
		if err == nil && text == after {
			err = errors.New("the new content equals the original")
		}
		if err == nil && len(text) > maxFile {
			err = fmt.Errorf("the file would become larger than %d bytes", maxFile)
		}
		if err != nil {
			return "", "", fmt.Errorf("%s: edit %d of %d: %w; nothing was changed", path, i+1, len(edits), err)
		}
		after = text
	}
	if after == before {
		return "", "", fmt.Errorf("%s: the edits together change nothing", path)
	}
	return before, after, nil
}

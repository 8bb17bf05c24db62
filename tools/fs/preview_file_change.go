package fs

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed preview_file_change.md
var previewFileChangeDoc string

// previewFileChange is edit_file without the write (eca-features.md 17).
func previewFileChange() tools.Tool {
	preview := func(call tools.Call, a editFileArgs) (path string, d *event.Details, err error) {
		path = workspace.Abs(call.Roots, a.Path)
		before, after := "", a.New
		_, existed, err := currentText(call, path)
		switch {
		case err != nil:
			return path, nil, err
		case a.Original == "" && existed:
			return path, nil, fmt.Errorf("%s already exists: original_content must contain the text to replace", path)
		case a.Original != "":
			if before, after, err = applyEdit(call, path, a); err != nil {
				return path, nil, err
			}
		}
		return path, diffDetails(path, before, after), nil
	}
	return tools.Definition[editFileArgs]{
		ReadOnly: true, Name: "preview_file_change", Description: previewFileChangeDoc, Preparing: "Previewing change",
		Plan: func(_ context.Context, call tools.Call, a editFileArgs) (tools.Plan, error) {
			path, details, err := preview(call, a)
			plan := tools.Plan{Summary: "Previewing change of " + filepath.Base(path), Details: details, Paths: []string{path}}
			if err != nil {
				return planWithoutDetails(call, plan, err)
			}
			return plan, nil
		},
		Run: func(_ context.Context, call tools.Call, a editFileArgs, _ tools.Sink) (tools.Result, error) {
			path, details, err := preview(call, a)
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{
				Outputs: []string{fmt.Sprintf("The change of %s would be as follows; nothing was changed:\n%s", path, details.FileChange.Diff)}, Details: details,
			}, nil
		},
	}.Build()
}

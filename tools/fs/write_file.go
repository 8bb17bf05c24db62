package fs

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed write_file.md
var writeFileDoc string

type writeFileArgs struct {
	Path    string `json:"path" jsonschema:"The absolute path of the file to create or replace."`
	Content string `json:"content" jsonschema:"The complete content of the file."`
}

func writeFile(c *changes) tools.Tool {
	return tools.Definition[writeFileArgs]{
		Name: "write_file", Description: writeFileDoc, Preparing: "Creating file",
		Plan: func(_ context.Context, call tools.Call, a writeFileArgs) (tools.Plan, error) {
			path := workspace.Abs(call.Roots, a.Path)
			plan := tools.Plan{Summary: "Writing " + filepath.Base(path), Paths: []string{path}}
			before, existed, err := currentText(call, path)
			if err != nil {
				return planWithoutDetails(call, plan, err)
			}
			verb := "Creating "
			if existed {
				verb = "Replacing "
			}
			plan.Summary, plan.Details = verb+filepath.Base(path), diffDetails(path, before, a.Content)
			return plan, nil
		},
		Run: func(ctx context.Context, call tools.Call, a writeFileArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			update, err := c.change(ctx, call, path, func() (before, after string, err error) {
				before, _, err = currentText(call, path)
				return before, a.Content, err
			})
			if err != nil {
				return tools.Result{}, err
			}
			return tools.Result{Outputs: []string{"Wrote " + path + update.note}, Details: diffDetails(path, update.before, update.after)}, nil
		},
	}.Build()
}

// currentText returns the text that a write would replace. A binary or huge file counts as empty, since
// its diff would be useless.
func currentText(call tools.Call, path string) (text string, existed bool, err error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	if err != nil {
		return "", false, err
	}
	if info.IsDir() {
		return "", true, fmt.Errorf("%s is a directory", path)
	}
	if !info.Mode().IsRegular() {
		return "", true, fmt.Errorf("%s is not a regular file", path)
	}
	if text, err = readText(call, 0, path); err != nil {
		text = ""
	}
	return text, true, nil
}

package fs

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed directory_tree.md
var directoryTreeDoc string

// maxEntries limits a tree; a larger one is useless for a model.
const maxEntries = 5000

type directoryTreeArgs struct {
	Path     string `json:"path" jsonschema:"The absolute path of the directory."`
	MaxDepth int    `json:"max_depth,omitempty" jsonschema:"How many levels to descend (default: 10)."`
}

func directoryTree() tools.Tool {
	return tools.Definition[directoryTreeArgs]{
		ReadOnly: true, Name: "directory_tree", Description: directoryTreeDoc, Preparing: "Listing tree",
		Plan: func(_ context.Context, call tools.Call, a directoryTreeArgs) (tools.Plan, error) {
			path := workspace.Abs(call.Roots, a.Path)
			return tools.Plan{Summary: "Listing tree: " + filepath.Base(path), Paths: []string{path}}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a directoryTreeArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			if _, err := call.Place(0, path); err != nil {
				return tools.Result{}, err
			}
			return runDirectoryTree(ctx, path, a.MaxDepth)
		},
	}.Build()
}

func runDirectoryTree(ctx context.Context, path string, maxDepth int) (tools.Result, error) {
	if maxDepth <= 0 {
		maxDepth = 10
	}
	info, err := os.Stat(path)
	if err != nil {
		return tools.Result{}, fmt.Errorf("%s does not exist", path)
	}
	if !info.IsDir() {
		return tools.Result{}, fmt.Errorf("%s is not a directory", path)
	}
	var b strings.Builder
	b.WriteString(visible.Name(path))
	b.WriteByte('\n')
	dirs, files := 0, 0
	err = workspace.Walk(ctx, path, func(f workspace.File) error {
		if dirs+files == maxEntries {
			fmt.Fprintf(&b, "... more than %d entries, the rest is left out: list a folder below\n", maxEntries)
			return filepath.SkipAll
		}
		b.WriteString(strings.Repeat(" ", f.Depth))
		b.WriteString(visible.Name(filepath.Base(f.Path)))
		b.WriteByte('\n')
		if !f.Dir {
			files++
			return nil
		}
		dirs++
		if f.Depth >= maxDepth {
			return filepath.SkipDir
		}
		return nil
	})
	if err != nil {
		return tools.Result{}, err
	}
	fmt.Fprintf(&b, "\n%d directories, %d files", dirs, files)
	return tools.Text(b.String()), nil
}

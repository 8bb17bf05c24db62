package fs

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed move_file.md
var moveFileDoc string

type moveFileArgs struct {
	Source      string `json:"source" jsonschema:"The absolute path of the file or directory to move."`
	Destination string `json:"destination" jsonschema:"The absolute path to move it to; must not exist."`
}

func moveFile(changing *sync.Mutex) tools.Tool {
	return tools.Definition[moveFileArgs]{
		Name: "move_file", Description: moveFileDoc, Preparing: "Moving file",
		Plan: func(_ context.Context, call tools.Call, a moveFileArgs) (tools.Plan, error) {
			src, dst := workspace.Abs(call.Roots, a.Source), workspace.Abs(call.Roots, a.Destination)
			return tools.Plan{
				Summary: fmt.Sprintf("Moving %s to %s", filepath.Base(src), filepath.Base(dst)),
				Paths:   []string{src, dst},
			}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a moveFileArgs, _ tools.Sink) (tools.Result, error) {
			changing.Lock()
			defer changing.Unlock()
			src, dst := workspace.Abs(call.Roots, a.Source), workspace.Abs(call.Roots, a.Destination)
			for i, path := range []string{src, dst} {
				if _, err := call.Place(i, path); err != nil {
					return tools.Result{}, err
				}
			}
			if _, err := os.Lstat(src); err != nil {
				return tools.Result{}, fmt.Errorf("%s does not exist", src)
			}
			if _, err := os.Lstat(dst); err == nil {
				return tools.Result{}, fmt.Errorf("%s already exists", dst)
			}
			note, err := announce(ctx, call, func(l tools.FileLog) error { return l.Moving(ctx, src, dst) })
			if err != nil {
				return tools.Result{}, err
			}
			if err := rename(call.Roots, src, dst); err != nil {
				return tools.Result{}, fmt.Errorf("could not move: %w", err)
			}
			return tools.Text(fmt.Sprintf("Moved %s to %s", src, dst) + note), nil
		},
	}.Build()
}

// rename moves what is at src, a link itself too. Inside one workspace folder nothing that
// happens to its folders meanwhile can make it leave that.
func rename(roots []string, src, dst string) error {
	const mode = 0o755
	src = filepath.Join(workspace.Resolve(filepath.Dir(src)), filepath.Base(src))
	dst = filepath.Join(workspace.Resolve(filepath.Dir(dst)), filepath.Base(dst))
	base := baseOf(roots, src)
	if base != baseOf(roots, dst) {
		if err := os.MkdirAll(filepath.Dir(dst), mode); err != nil {
			return err
		}
		return os.Rename(src, dst)
	}
	root, err := os.OpenRoot(base)
	if err != nil {
		return err
	}
	defer root.Close()
	from, err := filepath.Rel(base, src)
	if err != nil {
		return err
	}
	to, err := filepath.Rel(base, dst)
	if err != nil {
		return err
	}
	if err := root.MkdirAll(filepath.Dir(to), mode); err != nil {
		return err
	}
	return root.Rename(from, to)
}

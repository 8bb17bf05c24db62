package fs

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed move_file.md
var moveFileDoc string

type moveFileArgs struct {
	Source      string `json:"source" jsonschema:"The absolute path of the file or directory to move."`
	Destination string `json:"destination" jsonschema:"The absolute path to move it to; must not exist."`
}

// MovedPaths returns the absolute source and destination of a call, if the call is one of move_file.
// Other tools of this package describe the file that they change in the call's details.
func MovedPaths(server, name string, args json.RawMessage, roots []string) (paths []string, ok bool) {
	var a moveFileArgs
	if server != tools.Native || name != "move_file" || json.Unmarshal(args, &a) != nil {
		return nil, false
	}
	return []string{workspace.Abs(roots, a.Source), workspace.Abs(roots, a.Destination)}, true
}

func moveFile(c *changes) tools.Tool {
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
			src, dst := workspace.Abs(call.Roots, a.Source), workspace.Abs(call.Roots, a.Destination)
			end, err := c.beginMove(ctx, call.ChatID, src, dst)
			if err != nil {
				return tools.Result{}, err
			}
			defer end()
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
			src, dst = resolveDir(src), resolveDir(dst)
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

// resolveDir resolves the symlinks in the directory of a path; the file itself may be a symlink.
func resolveDir(path string) string {
	return filepath.Join(workspace.Resolve(filepath.Dir(path)), filepath.Base(path))
}

// rename moves a file or a symlink; the directories of both paths contain no symlinks.
func rename(roots []string, src, dst string) error {
	from, err := safeio.OpenEntry(baseOf(roots, src), src, false)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := safeio.OpenEntry(baseOf(roots, dst), dst, true)
	if err != nil {
		return err
	}
	defer to.Close()
	return safeio.Move(from, to)
}

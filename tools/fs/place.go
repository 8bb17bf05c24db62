package fs

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// open opens the file at a path, which must still have the target that it had when the call was
// approved; n is the index of the path in the plan. No folder on the way may have become a symlink.
// With create, missing folders are created.
func open(call tools.Call, n int, path string, create bool) (safeio.Entry, error) {
	real, err := call.Place(n, path)
	if err != nil {
		return safeio.Entry{}, err
	}
	p, err := safeio.OpenEntry(baseOf(call.Roots, real), real, create)
	if err != nil {
		return safeio.Entry{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// baseOf returns the folder from which a path is opened step by step: its workspace folder, or else
// the longest existing part of the path.
func baseOf(roots []string, real string) string {
	for _, root := range roots {
		root = workspace.Resolve(root)
		if rel, err := filepath.Rel(root, filepath.Dir(real)); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return root
		}
	}
	dir := filepath.Dir(real)
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

package contexts

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxNestedTotal limits the instructions that are added to one result, in bytes.
const maxNestedTotal = 64 << 10

// NestedQuery describes which paths below the workspace folders were accessed.
type NestedQuery struct {
	Roots  []string
	Paths  []string // files and folders, absolute; they need not exist
	Claude bool     // as in AgentsQuery
	Known  []string // files that are already included
}

// Nested reads the AGENTS.md files of the folders between a workspace folder and the accessed
// paths, the outermost first, each followed by the files that it imports. It omits the workspace
// folders themselves, which Agents reads, ignored folders, whose files are not the project's own,
// and paths outside the workspace.
func Nested(ctx context.Context, q NestedQuery) (files []AgentsFile, problems []string) {
	r := &agentsReader{ctx: ctx, visited: map[string]bool{}, size: maxAgentsTotal - maxNestedTotal}
	for _, path := range q.Known {
		r.visited[workspace.Resolve(path)] = true
	}
	for _, root := range q.Roots {
		r.visited[workspace.Resolve(filepath.Join(root, "AGENTS.md"))] = true
	}
	inside := workspace.New(q.Roots...)
	done := map[string]bool{}
	for _, path := range q.Paths {
		for _, dir := range foldersBetween(q.Roots, path) {
			if !done[dir] && inside.Contains(dir) {
				r.addFolder(dir, q.Claude, r.allowedFolders("", q.Roots))
			}
			done[dir] = true
		}
	}
	return r.files, r.problems
}

// foldersBetween returns the folders below a root on the way to a path, the outermost first, and the path
// itself if it is a folder. It stops at the first ignored folder.
func foldersBetween(roots []string, path string) []string {
	path = filepath.Clean(path)
	root := ""
	for _, r := range roots { // of nested roots, the innermost
		if safeio.Within(r, path) && len(r) > len(root) {
			root = r
		}
	}
	if root == "" {
		return nil
	}
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		path = filepath.Dir(path)
	}
	var dirs []string
	for dir := path; strings.HasPrefix(dir, root) && dir != filepath.Clean(root) && len(dirs) < maxAgentsParents; dir = filepath.Dir(dir) {
		dirs = append(dirs, dir)
	}
	slices.Reverse(dirs)
	return dirs[:workspace.CountBeforeIgnored(root, dirs)]
}

package contexts

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/workspace"
)

// maxNestedTotal bounds the instructions that come with one result, in bytes.
const maxNestedTotal = 64 << 10

// NestedQuery says what was touched below the workspace folders.
type NestedQuery struct {
	Roots  []string
	Paths  []string // files and folders, absolute; they need not exist
	Claude bool     // as in AgentsQuery
	Known  []string // files that are not wanted again
}

// Nested reads the AGENTS.md files of the folders that lie between a workspace folder and
// what was touched below it, the outermost first, each followed by what it imports. Those of
// the workspace folders themselves are not among them: Agents has them. Folders that the
// ignore rules leave out have no say, because their files are not the project's own, and
// neither have files outside.
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
		for _, dir := range between(q.Roots, path) {
			if !done[dir] && inside.Contains(dir) {
				r.folder(dir, q.Claude, r.limit("", q.Roots))
			}
			done[dir] = true
		}
	}
	return r.files, r.problems
}

// between lists the folders below a root on the way to a path, the outermost first; that
// itself, if it is one. It ends where the ignore rules do.
func between(roots []string, path string) []string {
	path = filepath.Clean(path)
	root := ""
	for _, r := range roots { // of roots in each other, the inner one
		if rel, err := filepath.Rel(r, path); err == nil && filepath.IsLocal(rel) && len(r) > len(root) {
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
	return dirs[:workspace.Counted(root, dirs)]
}

// Package worktree finds the repository that a linked git worktree belongs to.
//
// A folder counts as a linked worktree only if the repository confirms it, so that a folder cannot
// claim to belong to a repository. The package reads files and does not run git.
//
// Entry points: Main and Common.
package worktree

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Main returns the root of the repository that the linked worktree at a path belongs to; other
// paths are returned unchanged.
func Main(path string) string {
	if common, ok := Common(path); ok && filepath.Base(common) == ".git" {
		return filepath.Dir(common)
	}
	return path
}

// Common returns the main git folder of the linked worktree at a path. ok is false for other paths.
func Common(path string) (folder string, ok bool) {
	marker := filepath.Join(path, ".git")
	line, ok := strings.CutPrefix(firstLine(marker), "gitdir:")
	if !ok {
		return "", false
	}
	private := relativeTo(path, strings.TrimSpace(line))
	common := firstLine(filepath.Join(private, "commondir"))
	known := firstLine(filepath.Join(private, "gitdir"))
	if common == "" || known == "" || !same(relativeTo(private, known), marker) {
		return "", false
	}
	common = relativeTo(private, common)
	return common, same(filepath.Dir(private), filepath.Join(common, "worktrees"))
}

// same reports whether two paths refer to the same file.
func same(a, b string) bool {
	ia, err := os.Stat(a)
	if err != nil {
		return false
	}
	ib, err := os.Stat(b)
	return err == nil && os.SameFile(ia, ib)
}

func relativeTo(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// firstLine returns the first line of a small regular file, or an empty string.
func firstLine(path string) string {
	const most = 8 << 10
	data, err := safeio.Read(path, most)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSpace(line)
}

package importer

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/worktree"
)

// Folders returns the folders below cache (`$XDG_CACHE_HOME/eca`) in which the
// reference server keeps chats of a workspace: first the current one, then one of an
// older version. A missing cache is not an error.
func Folders(cache string, roots []string) ([]string, error) {
	entries, err := os.ReadDir(cache)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, hash := range hashes(roots) {
		for _, e := range entries {
			// The part before the hash is only for human readers.
			if e.Name() == hash || strings.HasSuffix(e.Name(), "_"+hash) {
				out = append(out, filepath.Join(cache, e.Name()))
			}
		}
	}
	return out, nil
}

// Folder returns the name of the folder in which the reference server would keep the chats of
// a workspace (eca-features.md 13.5).
func Folder(roots []string) string {
	const maxName = 30
	name := "workspace"
	if len(roots) > 0 {
		name = filepath.Base(roots[0])
	}
	name = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' || r == '.' {
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)] + "_" + hashes(roots)[0]
}

// hashes returns the hashes in the folder names of a workspace (eca-features.md 13.5): first
// the current one, and then, if it differs, that of older versions, which treated linked
// worktrees as separate workspaces.
func hashes(roots []string) []string {
	var paths, canonical []string
	for _, r := range roots {
		abs, err := filepath.Abs(r)
		if err != nil {
			abs = r
		}
		paths = append(paths, abs)
		canonical = append(canonical, worktree.Main(abs))
	}
	out := []string{hash(canonical)}
	if old := hash(paths); old != out[0] {
		out = append(out, old)
	}
	return out
}

func hash(paths []string) string {
	slices.Sort(paths)
	sum := sha256.Sum256([]byte(strings.Join(slices.Compact(paths), ":")))
	const length = 8
	return base64.RawURLEncoding.EncodeToString(sum[:])[:length]
}

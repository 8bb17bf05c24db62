package permission

import (
	"path/filepath"
	"sync"

	"github.com/seed-dec29ce4/eca/workspace"
)

// knownRoots caches which workspace folders have no symlinks in their paths, so that a judgment needs one
// stat instead of one for each component of the path. An entry is valid while stat finds the same folder
// (device and number). A symlink that replaced a moved folder is harmless: it leads to the same folder.
type knownRoots struct {
	mu    sync.Mutex // guards the fields below; not held during stat
	known map[string]fileState
}

// resolver returns the resolver of a judgment. roots are the workspace folders of the call; only the
// first one is cached.
func (k *knownRoots) resolver(roots []string) *workspace.Resolver {
	links := workspace.NewResolver()
	if len(roots) == 0 {
		return links
	}
	root := roots[0]
	state, err := stateOf(root)
	if err != nil || !state.mode.IsDir() || state.number == 0 { // systems without numbers
		return links
	}
	k.mu.Lock()
	before, known := k.known[root]
	k.mu.Unlock()
	if known && before.sameFile(state) {
		links.SetReal(root)
		return links
	}
	if root != filepath.Clean(root) || links.Resolve(root) != root {
		return links
	}
	if after, err := stateOf(root); err != nil || !after.sameFile(state) { // it was replaced meanwhile
		return links
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	addToCache(k.known, root, state)
	return links
}

// sameFile reports whether two states are of the same file, which may have changed.
func (s fileState) sameFile(other fileState) bool {
	return s.device == other.device && s.number == other.number
}

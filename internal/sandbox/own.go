package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// createOwnFolders creates eca's own folders that do not exist but are in a folder that the child may write to.
// Otherwise the child could create them, and eca would use their contents.
func (g Guard) createOwnFolders() error {
	for _, dir := range g.Own {
		real := ResolvePath(dir).Real
		writable := slices.ContainsFunc(g.write, func(w string) bool { return safeio.Within(ResolvePath(w).Real, real) })
		if _, err := os.Lstat(real); !writable || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(real, 0o700); err != nil {
			return fmt.Errorf("sandbox: cannot create eca's folder in a folder that commands may write to: %w", err)
		}
	}
	return nil
}

// protectOwnPaths protects eca's own folders and files, inside and outside the roots, and pins the
// paths to them.
func (f *finder) protectOwnPaths() {
	g := f.places.guard
	for _, path := range slices.Concat(g.Own, g.OwnFiles) {
		resolved := ResolvePath(path)
		info, err := os.Lstat(resolved.Real)
		if path == "" || err != nil {
			continue
		}
		f.pinLinkChain(resolved)
		f.pinParentsOf(resolved.Links...)
		f.places.Keep = append(f.places.Keep, resolved.Real)
		for _, root := range f.roots {
			if safeio.Within(resolved.Real, root) {
				f.places.Keep = append(f.places.Keep, root)
			}
		}
		f.protectContents(resolved.Real, info, maxLinkDepth)
	}
}

// protectHome protects configuration files in the home folder. The search of the roots can miss them:
// the home folder can be deeper below a root than the search goes, and its entries can be symlinks
// into a root.
func (f *finder) protectHome() {
	if !filepath.IsAbs(f.places.guard.Home) {
		return
	}
	resolved := ResolvePath(f.places.guard.Home)
	f.pinLinkChain(resolved)
	f.pinParentsOf(resolved.Links...)
	if slices.ContainsFunc(f.roots, func(root string) bool { return root != resolved.Real && safeio.Within(root, resolved.Real) }) {
		f.scanFolder(resolved.Real, 0)
	}
	for _, dir := range []string{resolved.Real, filepath.Join(resolved.Real, ".config"), filepath.Join(resolved.Real, ".local")} {
		linked := ResolvePath(dir).Real != dir
		entries, _ := readDir(dir)
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if (linked || e.Type()&fs.ModeSymlink != 0) && f.names.Match(at) {
				f.protectTarget(at)
			}
		}
	}
}

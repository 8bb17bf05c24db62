package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// makeOwn makes eca's own folders where a child could make them: it may write to what they would
// be in, and eca would obey what it finds there.
func (g Guard) makeOwn() error {
	for _, dir := range g.Own {
		real := Follow(dir).Real
		writable := slices.ContainsFunc(g.write, func(w string) bool { return within(Follow(w).Real, real) })
		if _, err := os.Lstat(real); !writable || !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.MkdirAll(real, 0o700); err != nil {
			return fmt.Errorf("sandbox: eca's own folder, in one that commands may write to: %w", err)
		}
	}
	return nil
}

// own keeps eca's folders and files, wherever they are, and the way to them.
func (f *finder) own() {
	g := f.places.guard
	for _, path := range slices.Concat(g.Own, g.OwnFiles) {
		way := Follow(path)
		info, err := os.Lstat(way.Real)
		if path == "" || err != nil {
			continue
		}
		f.hold(way)
		f.fix(way.Links...)
		f.places.Keep = append(f.places.Keep, way.Real)
		for _, root := range f.roots {
			if within(way.Real, root) {
				f.places.Keep = append(f.places.Keep, root)
			}
		}
		f.content(way.Real, info, maxLinkDepth)
	}
}

// home keeps what programs obey in the home folder, which can be in a root, deeper than the search
// goes, or lead into one by links.
func (f *finder) home() {
	if !filepath.IsAbs(f.places.guard.Home) {
		return
	}
	way := Follow(f.places.guard.Home)
	f.hold(way)
	f.fix(way.Links...)
	if slices.ContainsFunc(f.roots, func(root string) bool { return root != way.Real && within(root, way.Real) }) {
		f.folder(way.Real, 0)
	}
	for _, dir := range []string{way.Real, filepath.Join(way.Real, ".config"), filepath.Join(way.Real, ".local")} {
		linked := Follow(dir).Real != dir
		entries, _ := readDir(dir)
		for _, e := range entries {
			at := filepath.Join(dir, e.Name())
			if (linked || e.Type()&fs.ModeSymlink != 0) && f.names.Match(at) {
				f.target(at)
			}
		}
	}
}

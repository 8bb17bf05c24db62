package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/filelock"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// cache is a folder in which build tools keep downloads and build results.
type cache struct {
	dir      string // below the home folder
	variable string // environment variable that overrides dir; may be empty
}

// caches lists the cache folders of build tools. They also contain programs that run later, so
// bounded commands do not write to the user's caches directly.
func caches() []cache {
	return []cache{
		{".cache", "XDG_CACHE_HOME"},
		{".cache/go-build", "GOCACHE"},
		{".cache/pip", "PIP_CACHE_DIR"},
		{".cache/uv", "UV_CACHE_DIR"},
		{"go/pkg", ""},
		{"go/pkg/mod", "GOMODCACHE"},
		{".npm", "npm_config_cache"},
		{".cargo", "CARGO_HOME"},
		{".gradle", "GRADLE_USER_HOME"},
		{".m2", ""},
		{".yarn", ""},
		{".pnpm-store", ""},
		{".local/share/pnpm", ""},
		{".ivy2", ""},
		{".sbt", ""},
		{".nuget", ""},
		{".pub-cache", ""},
		{".bundle", ""},
		{".bun", ""},
		{".konan", ""},
		{"Library/Caches", ""},
	}
}

// redirectedVariables lists the variables that direct tools to a private cache, empty at first, where
// overlays are not available. Other tools continue to read the user's cache.
func redirectedVariables() []string {
	return []string{"XDG_CACHE_HOME", "GOCACHE", "PIP_CACHE_DIR", "UV_CACHE_DIR", "npm_config_cache", "CARGO_HOME"}
}

// Caches describes the private caches of a workspace: additions to the user's caches by its commands
// go to a folder of the workspace.
type Caches struct {
	Dir     string // parent of all workspaces' private caches; absolute
	Root    string // the workspace
	Overlay bool   // overlay mounts over the user's folders are possible
	Getenv  func(string) string
}

// LayerLimit bounds the private caches of a workspace, in bytes.
const LayerLimit = 5 << 30

// folder returns the folder with the caches of the workspace.
func (c Caches) folder() string {
	sum := sha256.Sum256([]byte(c.Root))
	return filepath.Join(c.Dir, filepath.Base(c.Root)+"-"+hex.EncodeToString(sum[:6]))
}

// prepare creates the folders, and returns the overlays, environment variables and writable folders
// of a child that uses them.
func (c Caches) prepare(roots []string) (layers []Overlay, env, write []string, err error) {
	home, base := c.Getenv("HOME"), c.folder()
	if home == "" || !filepath.IsAbs(home) {
		return nil, nil, nil, nil
	}
	if err := os.MkdirAll(base, 0o700); err != nil {
		return nil, nil, nil, fmt.Errorf("private caches: %w", err)
	}
	for _, k := range caches() {
		dir, fromEnv := filepath.Join(home, filepath.FromSlash(k.dir)), ""
		if k.variable != "" {
			fromEnv = c.Getenv(k.variable)
		}
		if filepath.IsAbs(fromEnv) {
			dir = fromEnv
		}
		real, err := filepath.EvalSymlinks(dir)
		covered := func(o Overlay) bool { return real == o.Dir || strings.HasPrefix(real, o.Dir+"/") }
		switch {
		case err == nil && (overlaps(real, roots) || slices.ContainsFunc(layers, covered)):
		case err == nil && c.Overlay && !safeio.Within(real, base):
			layers = append(layers, c.layer(base, k.dir, real))
		case k.variable != "" && (errors.Is(err, fs.ErrNotExist) || slices.Contains(redirectedVariables(), k.variable)):
			private := filepath.Join(base, "own", layerName(k.dir))
			if err := os.MkdirAll(private, 0o700); err != nil {
				return nil, nil, nil, fmt.Errorf("private caches: %w", err)
			}
			if k.variable == "CARGO_HOME" && real != "" { // cargo can still use sources that were fetched earlier
				for _, part := range []string{"registry", "git"} {
					_ = os.Symlink(filepath.Join(real, part), filepath.Join(private, part))
				}
			}
			env, write = append(env, k.variable+"="+private), append(write, private)
		}
	}
	return layers, env, write, nil
}

// layer returns an overlay over a folder. Claim chooses the layer for a child.
func (c Caches) layer(base, name, over string) Overlay {
	return Overlay{Dir: over, Layers: filepath.Join(base, layerName(name))}
}

func layerName(dir string) string { return strings.ReplaceAll(dir, "/", "_") }

// overlaps reports whether a folder is in a root, or a root is in the folder. Such a folder gets no
// private layer, because its files belong to the workspace.
func overlaps(dir string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool { return safeio.Within(dir, root) || safeio.Within(root, dir) })
}

// maxLayers bounds the number of children that use private caches over one folder at the same time.
const maxLayers = 32

// Claim reserves a layer for each overlay of a child: the first one that no other child uses, because
// the behavior of two overlay mounts that share a layer is undefined. The layers stay reserved until
// release is called or this process exits.
func (p *Policy) Claim() (release func(), err error) {
	var releases []func()
	release = func() {
		for _, free := range releases {
			free()
		}
	}
	for i := range p.Overlays {
		free, err := p.Overlays[i].claim()
		if err != nil {
			release()
			return func() {}, fmt.Errorf("private caches: %w", err)
		}
		releases = append(releases, free)
	}
	return release, nil
}

func (o *Overlay) claim() (free func(), err error) {
	if !filepath.IsAbs(o.Layers) {
		return nil, fmt.Errorf("%q is not an absolute path", o.Layers)
	}
	for n := range maxLayers {
		dir := filepath.Join(o.Layers, strconv.Itoa(n))
		works := filepath.Join(dir, "work")
		o.Upper = filepath.Join(dir, "upper")
		for _, d := range []string{o.Upper, works} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				return nil, err
			}
		}
		unlock, ok, err := filelock.Try(filepath.Join(dir, "lock"))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if o.Work, err = os.MkdirTemp(works, ""); err != nil {
			unlock()
			return nil, err
		}
		work := o.Work
		return func() {
			_ = os.RemoveAll(work)
			unlock()
		}, nil
	}
	return nil, fmt.Errorf("%d commands already use the private caches of %s", maxLayers, o.Dir)
}

// SharedCaches lists the user's existing caches, for commands that the user approved. Folders in own
// are left out.
func SharedCaches(getenv func(string) string, own ...string) []string {
	home := getenv("HOME")
	if home == "" {
		return nil
	}
	var out []string
	for _, name := range []string{
		".cache/go-build", ".cache/pip", ".cache/uv", ".cache/yarn", ".cache/pnpm", ".cache/node-gyp", ".cache/deno", ".cache/ccache", ".cache/sccache", ".cache/bazel",
		"go/pkg", ".npm", ".yarn", ".pnpm-store", ".local/share/pnpm/store", ".cargo/registry", ".cargo/git",
		".gradle/caches", ".gradle/daemon", ".gradle/wrapper", ".m2/repository", ".ivy2", ".nuget/packages", ".pub-cache", ".bundle/cache", ".bun/install/cache",
		"Library/Caches/go-build", "Library/Caches/pip", "Library/Caches/Yarn", "Library/Caches/pnpm",
	} {
		out = append(out, filepath.Join(home, filepath.FromSlash(name)))
	}
	for _, variable := range []string{"GOCACHE", "GOMODCACHE", "npm_config_cache", "PIP_CACHE_DIR", "UV_CACHE_DIR"} {
		if dir := getenv(variable); filepath.IsAbs(dir) {
			out = append(out, dir)
		}
	}
	return slices.DeleteFunc(out, func(dir string) bool {
		info, err := os.Stat(dir)
		return err != nil || !info.IsDir() || slices.Contains(own, dir)
	})
}

// Trim removes the oldest files of a workspace's private caches until their total size is at most
// limit bytes.
func (c Caches) Trim(limit int64) error {
	type file struct {
		path string
		size int64
		time time.Time
	}
	var files []file
	var total int64
	err := filepath.WalkDir(c.folder(), func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return nil //nolint:nilerr // unreadable entries are not counted
		}
		if info, err := e.Info(); err == nil {
			files, total = append(files, file{path, info.Size(), info.ModTime()}), total+info.Size()
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("private caches: %w", err)
	}
	slices.SortStableFunc(files, func(a, b file) int { return a.time.Compare(b.time) })
	for _, f := range files {
		if total <= limit {
			break
		}
		if err := os.Remove(f.path); err == nil {
			total -= f.size
		}
	}
	return nil
}

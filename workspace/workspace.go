// Package workspace represents the folders in which the user works. It decides which paths belong to
// them, and which of their files matter (ignore rules).
//
// A Workspace is immutable. Contains resolves symlinks before it checks a path, even if the file does
// not exist yet. Walk follows no symlinks and does not descend into ignored folders.
//
// A Finder answers queries for files from an index. The index is a sequence of immutable snapshots of
// the files below the roots: a walk creates the first one, and change notifications lead to new ones.
// A notification is only a hint that a folder has to be read again. If there are no notifications, or
// some were lost, the next query starts a walk. A query waits for the first walk, and at most 0.1
// seconds for a later one. The index has at most 1,500,000 files and folders; if there are more, it
// omits the deepest ones. It does not contain hidden and ignored files, which a query can find only
// by path.
//
// Finder.Listing lists the files below a root, and the folders that changed since an earlier listing.
// If it cannot give a complete answer, it returns no listing, and the caller has to walk.
package workspace

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Workspace is a set of root folders.
type Workspace struct {
	roots    []string // as the client named them: absolute, clean
	resolved []string // the same with links resolved
}

// New returns the workspace of the given folders. Relative paths start at the current directory.
func New(roots ...string) *Workspace {
	w := &Workspace{}
	for _, r := range roots {
		abs, err := filepath.Abs(r)
		if err != nil {
			continue
		}
		w.roots = append(w.roots, abs)
		w.resolved = append(w.resolved, Resolve(abs))
	}
	return w
}

// FromURI returns the path of a file URI. It accepts all forms that clients write: percent-encoded
// or with plain spaces, file:///C:/..., file:/... (eca-protocol.md 2.4). It returns a plain path
// unchanged.
func FromURI(uri string) string {
	rest, ok := strings.CutPrefix(uri, "file:")
	if !ok {
		return uri
	}
	rest = strings.TrimPrefix(rest, "//")
	if !strings.HasPrefix(rest, "/") && !hasDrive(rest) {
		// An authority: file://localhost/path.
		if i := strings.Index(rest, "/"); i >= 0 {
			rest = rest[i:]
		}
	}
	if p, err := url.PathUnescape(rest); err == nil {
		rest = p
	}
	if strings.HasPrefix(rest, "/") && hasDrive(rest[1:]) {
		rest = rest[1:]
	}
	return filepath.FromSlash(rest)
}

// ToURI returns the file URI of an absolute path, percent-encoded.
func ToURI(path string) string {
	path = filepath.ToSlash(path)
	if hasDrive(path) {
		path = "/" + path
	}
	u := url.URL{Scheme: "file", Path: path}
	return u.String()
}

func hasDrive(p string) bool {
	return len(p) >= 2 && p[1] == ':' && (p[0]|0x20) >= 'a' && (p[0]|0x20) <= 'z'
}

// Roots returns the root folders. The slice must not be changed.
func (w *Workspace) Roots() []string { return w.roots }

// Abs returns the absolute form of a path. `~` is the home folder, and relative paths start at the
// first root.
func Abs(roots []string, path string) string {
	if path == "~" || strings.HasPrefix(path, "~/") {
		if home, err := os.UserHomeDir(); err == nil {
			path = filepath.Join(home, path[1:])
		}
	}
	if !filepath.IsAbs(path) {
		base := "."
		if len(roots) > 0 {
			base = roots[0]
		}
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}

// Contains reports whether an absolute path resolves to a path in one of the roots.
func (w *Workspace) Contains(path string) bool { return w.ContainsResolved(Resolve(path)) }

// ContainsResolved is Contains for a path that Resolve returned. It does not read symlinks again, so
// its answer is about exactly the path that the caller passes.
func (w *Workspace) ContainsResolved(real string) bool {
	return slices.ContainsFunc(w.resolved, func(root string) bool { return within(root, real) })
}

func within(root, path string) bool {
	if below, ok := strings.CutPrefix(path, root); ok && (below == "" || below[0] == filepath.Separator) && !strings.Contains(below, "..") {
		return true
	}
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Resolve returns an absolute path with the symlinks in its longest existing part resolved.
func Resolve(path string) string {
	var r Resolver
	return r.resolve(path)
}

// Resolver resolves several paths consistently: it reads each symlink once and caches the result. The
// cache is never updated, so a Resolver should be short-lived. It is not safe for concurrent use. The
// zero Resolver has no cache.
type Resolver struct {
	links map[string]link
	real  string // a folder that exists and has no symlinks in its path; may be empty
}

// link is the cached state of a path. target is empty if the path was not a symlink.
type link struct {
	target string
	exists bool
}

// NewResolver returns a Resolver that has not read any symlinks yet.
func NewResolver() *Resolver { return &Resolver{links: map[string]link{}} }

// SetReal tells the Resolver that dir, a clean absolute path, is a folder without symlinks in its path. It
// does not check this.
func (r *Resolver) SetReal(dir string) { r.real = dir }

// Resolve is like the function Resolve.
func (r *Resolver) Resolve(path string) string { return r.resolve(path) }

// binaryHead is the number of bytes of a file that are checked for binary content.
const binaryHead = 8000

// IsBinary reports whether data is binary: its beginning contains a zero byte.
func IsBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0
}

// MaxImage is the maximum size of an image for a model, in bytes: providers accept 5 MB of base64.
const MaxImage = 3_750_000

// ImageType returns the media type of an image that models accept, or an empty string for other
// data. It looks at the content, because providers refuse images whose declared type is wrong.
func ImageType(head []byte) string {
	switch t := http.DetectContentType(head); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t
	}
	return ""
}

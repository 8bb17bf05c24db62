// Package workspace knows the folders the user works in: which paths belong to
// them and which files in them count (ignore rules).
//
// A Workspace is immutable. It guarantees that Contains judges a path by where it
// really leads (symbolic links resolved, also for files that do not exist yet), and
// that Walk neither follows a link out of a root nor descends into ignored folders.
//
// A Finder answers queries for files from an index: immutable snapshots of what lies below
// the roots, made by a walk and kept up to date where the system tells of changes. What it
// tells is a hint about what to read again; where it does not, or lost count, a walk
// decides, when the next query comes. A query waits for the first walk, and a tenth of a
// second for a later one, never longer; nothing else waits for the index. It holds at most
// 1,500,000 files and folders, those that are least deep, and none that are hidden or
// ignored: these are found by path only.
//
// It also lists what lies below a root, and where something happened since an earlier
// listing (Finder.Listing). That is exact, or it is not given: who gets none walks.
package workspace

import (
	"bytes"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Workspace is a set of root folders.
type Workspace struct {
	roots    []string // as the client named them: absolute, clean
	resolved []string // the same with links resolved
}

// New returns the workspace of the given folders. Relative ones are resolved
// against the process's directory.
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

// FromURI returns the path of a file URI as clients write them: percent-encoded or
// with plain spaces, file:///C:/..., file:/... (eca-protocol 2.4). A plain path is
// returned as it is.
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

// Abs makes a path absolute: `~` is the home folder, relative paths are below the
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

// Contains says whether an absolute path leads into one of the roots.
func (w *Workspace) Contains(path string) bool { return w.ContainsResolved(Resolve(path)) }

// ContainsResolved is Contains for a path that Resolve returned. It does not look at the file
// system, so that it decides about the path that the caller goes on to use.
func (w *Workspace) ContainsResolved(real string) bool {
	for _, root := range w.resolved {
		if within(root, real) {
			return true
		}
	}
	return false
}

func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// Resolve returns where an absolute path leads: with the links of its longest existing
// part resolved.
func Resolve(path string) string {
	var r Resolver
	return r.resolve(path)
}

// Resolver is Resolve for several paths that are to be seen in one state: what was a link when
// it was first looked at stays one, and costs nothing the next time. It is for one goroutine and
// a short time. The zero Resolver remembers nothing.
type Resolver struct{ known map[string]link }

// link is what a path was: its target is empty if it was not a link.
type link struct {
	target string
	exists bool
}

// NewResolver returns a Resolver that has not looked at anything.
func NewResolver() *Resolver { return &Resolver{known: map[string]link{}} }

// Resolve returns where an absolute path leads, as the function Resolve does.
func (r *Resolver) Resolve(path string) string { return r.resolve(path) }

// binaryHead is how much of a file is looked at to tell text from anything else.
const binaryHead = 8000

// IsBinary says whether data, or the beginning of it, is something else than text: it
// has a zero byte where one would be seen.
func IsBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), binaryHead)], 0) >= 0
}

// MaxImage is how many bytes an image may have to be shown to a model: providers take 5 MB
// of base64.
const MaxImage = 3_750_000

// ImageType returns the media type of an image that models take, by its content: what
// names and others say about it may be wrong, and providers refuse that. It is empty for
// everything else.
func ImageType(head []byte) string {
	switch t := http.DetectContentType(head); t {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return t
	}
	return ""
}

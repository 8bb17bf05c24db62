//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks limits the symlinks that are followed for one path, as in the kernel. A longer chain does
// not resolve.
const maxLinks = 40

// resolve follows a path as the kernel does, one name after the other: after a symlink, .. is the
// parent of its target. Missing parts are kept as written. A dangling symlink resolves to its
// target, not to its own path.
func (r *Resolver) resolve(path string) string {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return filepath.Clean(path)
		}
		path = dir + "/" + path
	}
	resolved, links, exists := "/", 0, true
	// isPrefix means that resolved is a prefix of path: a slice of path can replace it without a copy.
	isPrefix, offset := true, 0
	rest := path
	if below, ok := strings.CutPrefix(path, r.real); ok && len(r.real) > 1 && (below == "" || below[0] == '/') {
		resolved, rest = r.real, strings.TrimPrefix(below, "/")
		offset = len(path) - len(rest)
	}
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		start := offset
		offset += len(name) + 1
		switch name {
		case "":
			isPrefix = isPrefix && start == 0
			continue
		case ".":
			isPrefix = false
			continue
		case "..":
			resolved, exists, isPrefix = filepath.Dir(resolved), true, false
			continue
		}
		switch {
		case isPrefix:
			resolved = path[:start+len(name)]
		case resolved == "/":
			resolved += name
		default:
			resolved += "/" + name
		}
		if !exists {
			continue
		}
		found := r.readLinkOnce(resolved)
		if exists = found.exists; !exists || found.target == "" {
			continue
		}
		if links++; links > maxLinks {
			exists = false
			continue
		}
		rest, isPrefix = found.target+"/"+rest, false
		if resolved = filepath.Dir(resolved); filepath.IsAbs(found.target) {
			resolved = "/"
		}
	}
	return resolved
}

// readLinkOnce reads the symlink at a path whose folders are resolved, or returns the cached result.
func (r *Resolver) readLinkOnce(path string) link {
	if found, known := r.links[path]; known {
		return found
	}
	var buf [4096]byte // symlinks cannot be longer
	n, err := readLink(path, buf[:])
	found := link{exists: err == nil && n < len(buf) || errors.Is(err, syscall.EINVAL)}
	if err == nil && n < len(buf) {
		found.target = string(buf[:n])
	}
	if r.links != nil {
		r.links[path] = found
	}
	return found
}

// readLink determines with one system call whether a path exists and is a symlink.
func readLink(path string, buf []byte) (int, error) {
	for {
		n, err := syscall.Readlink(path, buf)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

//go:build !unix

package workspace

import (
	"os"
	"path/filepath"
)

// maxLinks limits chains of dangling links. A longer chain does not resolve.
const maxLinks = 16

// resolve follows the links of the longest existing prefix of a path. A dangling
// link resolves to its target, not to its own path. Windows removes .. before it follows links.
func (r *Resolver) resolve(path string) string {
	path = filepath.Clean(path)
	if found, known := r.links[path]; known {
		return found.target
	}
	real := resolveLinks(path, maxLinks)
	if r.links != nil {
		r.links[path] = link{target: real}
	}
	return real
}

func resolveLinks(path string, left int) string {
	rest := ""
	for p := path; ; p = filepath.Dir(p) {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		if target, err := os.Readlink(p); err == nil && left > 0 {
			if !filepath.IsAbs(target) {
				target = filepath.Join(filepath.Dir(p), target)
			}
			return resolveLinks(filepath.Join(target, rest), left-1)
		}
		if filepath.Dir(p) == p {
			return path
		}
		rest = filepath.Join(filepath.Base(p), rest)
	}
}

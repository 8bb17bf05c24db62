//go:build !windows

package workspace

import (
	"os"
	"path/filepath"
	"strings"
)

// maxLinks bounds the links of one path, as the system does; a longer chain leads nowhere.
const maxLinks = 40

// resolve follows a path as the system does, one name after the other: behind a link, .. is
// the folder around what the link leads to. What does not exist is kept as it is written. A
// dangling link leads to its target, not to its own place.
func resolve(path string) string {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return filepath.Clean(path)
		}
		path = dir + "/" + path
	}
	at, rest, links, exists := "/", path, 0, true
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at, exists = filepath.Dir(at), true
			continue
		}
		next := at + "/" + name
		if at == "/" {
			next = "/" + name
		}
		at = next
		if !exists {
			continue
		}
		info, err := os.Lstat(next)
		switch {
		case err != nil:
			exists = false
		case info.Mode()&os.ModeSymlink != 0:
			target, err := os.Readlink(next)
			if links++; err != nil || links > maxLinks {
				exists = false
				continue
			}
			rest = target + "/" + rest
			if at = filepath.Dir(next); filepath.IsAbs(target) {
				at = "/"
			}
		}
	}
	return at
}

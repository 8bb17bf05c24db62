//go:build !linux

package watch

import "strings"

// Remote says whether a folder is on a file system that others may change without this
// system hearing of it, as far as its path tells.
func Remote(dir string) bool { return strings.HasPrefix(dir, `\\`) }

//go:build !linux

package watch

import "strings"

// Remote reports whether a folder is on a file system that others may change without this
// system being notified, as its path shows.
func Remote(dir string) bool { return strings.HasPrefix(dir, `\\`) }

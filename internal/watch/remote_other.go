//go:build !linux

package watch

import "strings"

// Remote reports whether a folder is on a file system that other machines may change without a
// notification on this one, judging by its path.
func Remote(dir string) bool { return strings.HasPrefix(dir, `\\`) }

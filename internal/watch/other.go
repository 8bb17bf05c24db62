//go:build !linux

package watch

import (
	"errors"
	"os"
	"strings"
)

// ordered reports whether the events of all watched folders arrive in the order of the changes,
// which this system does not guarantee.
const ordered = false

// nameless is never called.
func nameless() (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

// Remote reports whether a folder is on a file system that other machines may change without a
// notification on this one, judging by its path.
func Remote(dir string) bool { return strings.HasPrefix(dir, `\\`) }

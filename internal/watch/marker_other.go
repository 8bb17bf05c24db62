//go:build !linux

package watch

import (
	"errors"
	"os"
)

// ordered reports whether the events of all watched folders arrive in the order of the changes,
// which this system does not guarantee.
const ordered = false

// nameless is never called.
func nameless() (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

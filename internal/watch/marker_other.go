//go:build !linux

package watch

import (
	"errors"
	"os"
)

// ordered reports whether the events of all watched folders come in the order in which things
// happened: here they come in none.
const ordered = false

// nameless is not called.
func nameless() (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

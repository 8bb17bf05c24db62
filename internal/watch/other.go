//go:build !linux

package watch

import (
	"errors"
	"os"
	"strings"
)

// eventsOrdered reports whether the events of all watched folders arrive in the order of the changes.
// This system does not guarantee that.
const eventsOrdered = false

// openUnnamed is never called, because eventsOrdered is false.
func openUnnamed() (*os.File, string, error) { return nil, "", errors.ErrUnsupported }

// Remote reports whether the path of a folder shows that other machines may change the folder without
// a notification on this machine.
func Remote(dir string) bool { return strings.HasPrefix(dir, `\\`) }

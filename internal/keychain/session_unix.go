//go:build !darwin && !windows

package keychain

import (
	"os"
	"path/filepath"
)

// noSession says that there is no session bus to find a keychain on. Asking without one
// would start a bus, and end nowhere.
func noSession(getenv func(string) string) bool {
	if getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return false
	}
	dir := getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, "bus"))
	return err != nil || info.Mode()&os.ModeSocket == 0
}

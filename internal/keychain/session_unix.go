//go:build !darwin && !windows

package keychain

import (
	"os"
	"path/filepath"
)

// noSession reports whether there is no session bus, which is needed to find a keychain. Using the
// keychain anyway would start a bus without a keychain.
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

//go:build !darwin && !windows

package browser

import "errors"

// command returns the program that opens URLs. Without a display it fails: a text browser has
// no terminal here.
func command(getenv func(string) string) (program string, args []string, err error) {
	switch {
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		return "xdg-open", nil, nil
	case getenv("WSL_DISTRO_NAME") != "":
		return "wslview", nil, nil // part of wslu, which WSL installs
	}
	return "", nil, errors.New("no display is available")
}

//go:build !darwin && !windows

package browser

import "errors"

// command finds what opens addresses. Without a display there is nothing: a browser for
// terminals has none here.
func command(getenv func(string) string) (program string, args []string, err error) {
	switch {
	case getenv("DISPLAY") != "" || getenv("WAYLAND_DISPLAY") != "":
		return "xdg-open", nil, nil
	case getenv("WSL_DISTRO_NAME") != "":
		return "wslview", nil, nil // of wslu, which WSL installs
	}
	return "", nil, errors.New("there is no display")
}

//go:build unix

package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxLinks bounds the links of one path, as the system does; a longer chain leads nowhere.
const maxLinks = 40

// resolve follows a path as the system does, one name after the other: behind a link, .. is
// the folder around what the link leads to. What does not exist is kept as it is written. A
// dangling link leads to its target, not to its own place.
func resolve(path string) string {
	if !filepath.IsAbs(path) {
		dir, err := os.Getwd()
		if err != nil {
			return filepath.Clean(path)
		}
		path = dir + "/" + path
	}
	at, rest, links, exists := "/", path, 0, true
	var buf [4096]byte // longer links do not exist
	for rest != "" {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		switch name {
		case "", ".":
			continue
		case "..":
			at, exists = filepath.Dir(at), true
			continue
		}
		next := at + "/" + name
		if at == "/" {
			next = "/" + name
		}
		at = next
		if !exists {
			continue
		}
		n, err := readLink(next, buf[:])
		switch {
		case errors.Is(err, syscall.EINVAL): // no link
		case err != nil:
			exists = false
		default:
			if links++; links > maxLinks || n == len(buf) {
				exists = false
				continue
			}
			target := string(buf[:n])
			rest = target + "/" + rest
			if at = filepath.Dir(next); filepath.IsAbs(target) {
				at = "/"
			}
		}
	}
	return at
}

// readLink asks once whether there is something, and whether it is a link.
func readLink(path string, buf []byte) (int, error) {
	for {
		n, err := syscall.Readlink(path, buf)
		if !errors.Is(err, syscall.EINTR) {
			return n, err
		}
	}
}

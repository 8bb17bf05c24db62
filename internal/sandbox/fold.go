package sandbox

import (
	"path/filepath"
	"strings"
	"unicode"
)

// Fold brings a path into the form in which file systems compare names that know no case, drop dots
// and spaces at the end, or do not see some characters.
func Fold(path string) string {
	if plain(path) {
		return strings.ToLower(path)
	}
	path = strings.ToLower(filepath.ToSlash(filepath.Clean(path)))
	path = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r) || r == 0:
			return -1
		case r == 'ſ': // its upper case is S
			return 's'
		}
		return r
	}, path)
	names := strings.Split(path, "/")
	for i, n := range names {
		if j := strings.IndexByte(n, ':'); j > 1 { // a stream of a file
			n = n[:j]
		}
		if n != "." && n != ".." {
			n = strings.TrimRight(n, ". ")
		}
		switch { // the short names of Windows
		case strings.HasPrefix(n, "git~"):
			n = ".git"
		case strings.HasPrefix(n, "eca~"):
			n = ".eca"
		}
		names[i] = n
	}
	return strings.Join(names, "/")
}

// plain says whether only the case of a path can matter. Most paths are, and many are compared.
func plain(path string) bool {
	for i := range len(path) {
		switch c := path[i]; {
		case c >= 0x80, c == 0, c == ':', c == '~', c == '\\':
			return false
		case c == '/' && i > 0 && strings.IndexByte("/. ", path[i-1]) >= 0:
			return false
		}
	}
	return path != "" && strings.IndexByte("/. ", path[len(path)-1]) < 0
}

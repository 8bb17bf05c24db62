package sandbox

import (
	"path/filepath"
	"strings"
	"unicode"
)

// Fold normalizes a path for comparison with paths on file systems that ignore case, trailing dots
// and spaces, or some invisible characters.
func Fold(path string) string {
	if plain(path) {
		return strings.ToLower(path)
	}
	path = strings.ToLower(filepath.ToSlash(filepath.Clean(path)))
	path = strings.Map(func(r rune) rune {
		switch {
		case unicode.Is(unicode.Cf, r) || r == 0:
			return -1
		case r == 'ſ': // the long s: its upper case is S
			return 's'
		}
		return r
	}, path)
	names := strings.Split(path, "/")
	for i, n := range names {
		if j := strings.IndexByte(n, ':'); j > 1 { // an alternate data stream
			n = n[:j]
		}
		if n != "." && n != ".." {
			n = strings.TrimRight(n, ". ")
		}
		switch { // short (8.3) names of Windows
		case strings.HasPrefix(n, "git~"):
			n = ".git"
		case strings.HasPrefix(n, "eca~"):
			n = ".eca"
		}
		names[i] = n
	}
	return strings.Join(names, "/")
}

// plain reports whether lowercasing alone normalizes a path, which holds for most paths.
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

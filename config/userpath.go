package config

import (
	"os"
	"path/filepath"
	"strings"
)

// UserPath resolves a path from a configuration. ~ is the home folder. If origin is a file, relative
// paths start at the folder of this file.
func UserPath(path string, origin Origin) string {
	if path == "" {
		return ""
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	if !filepath.IsAbs(path) && filepath.IsAbs(origin.Source) {
		return filepath.Join(filepath.Dir(origin.Source), path)
	}
	return path
}

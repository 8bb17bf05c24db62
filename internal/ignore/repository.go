package ignore

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// isRepository reports whether a folder is the root of a git work tree: it has a valid .git, either
// a file that points to the repository or the repository itself.
func isRepository(dir string) bool {
	git := filepath.Join(dir, ".git")
	info, err := os.Lstat(git)
	if err != nil {
		return false
	}
	if !info.IsDir() {
		return true
	}
	_, err = os.Lstat(filepath.Join(git, "HEAD"))
	return err == nil
}

// repository returns the rules in the root of a work tree.
func repository(dir string) *Rules {
	common := commonDir(dir)
	excludes, fold := "", false
	for _, path := range append(userConfigs(), filepath.Join(common, "config")) {
		readConfig(path, 0, func(section, key, value string) {
			switch {
			case section != "core":
			case key == "excludesfile":
				excludes = value
			case key == "ignorecase":
				fold = isTrue(value)
			}
		})
	}
	r := &Rules{fold: fold}
	r = r.withUserFile(dir, excludesFile(dir, excludes))
	r = r.withUserFile(dir, filepath.Join(common, "info", "exclude"))
	return r.withIgnoreFile(dir)
}

// withUserFile adds the patterns of a file outside work trees, where symlinks are followed.
func (r *Rules) withUserFile(dir, path string) *Rules {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return r.withFile(dir, path)
}

// commonDir returns the git folder that all work trees of a repository share.
func commonDir(dir string) string {
	git := filepath.Join(dir, ".git")
	if text, ok := strings.CutPrefix(string(readFile(git, false)), "gitdir:"); ok {
		git = resolvePath(dir, strings.TrimSpace(text))
	}
	if text := strings.TrimSpace(string(readFile(filepath.Join(git, "commondir"), true))); text != "" {
		return resolvePath(git, text)
	}
	return git
}

// userConfigs returns git's configuration files other than a repository's own, the one with the
// highest precedence last.
func userConfigs() []string {
	out := []string{"/etc/gitconfig"}
	home, err := os.UserHomeDir()
	if err != nil {
		return out
	}
	return append(out, filepath.Join(gitHome(home), "config"), filepath.Join(home, ".gitconfig"))
}

// gitHome returns the folder of git's own configuration.
func gitHome(home string) string {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		if xdg, err := os.UserConfigDir(); err == nil {
			return filepath.Join(xdg, "git")
		}
	}
	return filepath.Join(home, ".config", "git")
}

// excludesFile returns the path of the file with the user's own patterns.
func excludesFile(dir, configured string) string {
	home, err := os.UserHomeDir()
	rest, inHome := strings.CutPrefix(configured, "~/")
	switch {
	case err != nil && (configured == "" || inHome):
		return ""
	case configured == "":
		return filepath.Join(gitHome(home), "ignore")
	case inHome:
		return filepath.Join(home, filepath.FromSlash(rest))
	}
	return resolvePath(dir, configured)
}

// resolvePath resolves a path that may be relative to dir.
func resolvePath(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// maxIncludes is the deepest nesting of included configuration files, as in git.
const maxIncludes = 10

// readConfig reads a git configuration file and calls visit for each setting, with section and key in
// lower case. An unreadable file counts as empty.
func readConfig(path string, depth int, visit func(section, key, value string)) {
	parseConfig(string(readFile(path, true)), func(section, key, value string) {
		if section != "include" || key != "path" {
			visit(section, key, value)
			return
		}
		if depth == maxIncludes {
			return
		}
		if rest, ok := strings.CutPrefix(value, "~/"); ok {
			home, err := os.UserHomeDir()
			if err != nil {
				return
			}
			value = filepath.Join(home, filepath.FromSlash(rest))
		}
		readConfig(resolvePath(filepath.Dir(path), value), depth+1, visit)
	})
}

// parseConfig parses git's configuration format: sections in brackets, and keys whose values may be
// quoted, continued after a backslash, and followed by comments. A section with a subsection is
// named `section "sub"`.
func parseConfig(text string, visit func(section, key, value string)) {
	section := ""
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for text != "" {
		text = strings.TrimLeft(text, " \t\n")
		switch {
		case text == "":
		case text[0] == '#' || text[0] == ';':
			_, text, _ = strings.Cut(text, "\n")
		case text[0] == '[':
			line, _, _ := strings.Cut(text, "\n")
			end := strings.LastIndexByte(line, ']')
			if i := strings.IndexByte(line, ']'); !strings.Contains(line, `"`) {
				end = i
			}
			if end < 0 {
				return // git rejects the file at this point
			}
			section, text = strings.ToLower(strings.TrimSpace(line[1:end])), text[end+1:]
		default:
			end := strings.IndexAny(text, "=\n#;")
			if end < 0 || text[end] != '=' {
				key := text
				if end >= 0 {
					key, text = text[:end], text[end:]
				} else {
					text = ""
				}
				visit(section, strings.ToLower(strings.TrimSpace(key)), "true")
				continue
			}
			key := strings.ToLower(strings.TrimSpace(text[:end]))
			var value string
			value, text = configValue(text[end+1:])
			visit(section, key, value)
		}
	}
}

// configValue parses a value up to the end of its line.
func configValue(text string) (value, rest string) {
	var b strings.Builder
	text = strings.TrimLeft(text, " \t")
	quoted, trimmedLen := false, 0 // trimmedLen is the length of b without unquoted spaces at its end
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return b.String()[:trimmedLen], text[i+1:]
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(text[i:], "\n")
			return b.String()[:trimmedLen], rest
		case c == '"':
			quoted = !quoted
			trimmedLen = b.Len()
			continue
		case c == '\\' && i+1 < len(text):
			i++
			if text[i] == '\n' {
				continue
			}
			if real, ok := map[byte]byte{'n': '\n', 't': '\t', 'b': '\b'}[text[i]]; ok {
				c = real
			} else {
				c = text[i]
			}
			b.WriteByte(c)
			trimmedLen = b.Len()
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			trimmedLen = b.Len()
		}
	}
	return b.String()[:trimmedLen], ""
}

// isTrue parses git's boolean values.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && n != 0
}

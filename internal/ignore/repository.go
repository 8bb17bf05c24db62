package ignore

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
)

// isRepository reports whether a folder is the root of a git work tree: it has a file .git
// that leads to the repository, or the repository itself.
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
		config(path, 0, func(section, key, value string) {
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
	return r.with(dir)
}

// withUserFile adds the patterns of a file that no work tree holds, where links are fine.
func (r *Rules) withUserFile(dir, path string) *Rules {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return r.file(dir, path)
}

// commonDir returns the folder of a repository that its work trees share.
func commonDir(dir string) string {
	git := filepath.Join(dir, ".git")
	if text, ok := strings.CutPrefix(string(readFile(git, false)), "gitdir:"); ok {
		git = under(dir, strings.TrimSpace(text))
	}
	if text := strings.TrimSpace(string(readFile(filepath.Join(git, "commondir"), true))); text != "" {
		return under(git, text)
	}
	return git
}

// userConfigs are the configurations of git besides a repository's own, the strongest last.
func userConfigs() []string {
	out := []string{"/etc/gitconfig"}
	home, err := os.UserHomeDir()
	if err != nil {
		return out
	}
	return append(out, filepath.Join(gitHome(home), "config"), filepath.Join(home, ".gitconfig"))
}

// gitHome is the folder of git's own configuration.
func gitHome(home string) string {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		if xdg, err := os.UserConfigDir(); err == nil {
			return filepath.Join(xdg, "git")
		}
	}
	return filepath.Join(home, ".config", "git")
}

// excludesFile is where the user's own patterns are.
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
	return under(dir, configured)
}

// under resolves a path that may be relative to dir.
func under(dir, path string) string {
	path = filepath.FromSlash(path)
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// maxIncludes is how deep configurations may include each other, as for git.
const maxIncludes = 10

// config reads a file of git's configuration and calls say for what it says, sections and
// keys in lower case. An unreadable file counts as empty.
func config(path string, depth int, say func(section, key, value string)) {
	parseConfig(string(readFile(path, true)), func(section, key, value string) {
		if section != "include" || key != "path" {
			say(section, key, value)
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
		config(under(filepath.Dir(path), value), depth+1, say)
	})
}

// parseConfig reads git's format of configurations: sections in brackets, keys with values
// that may be quoted, continued after a backslash, and followed by comments. A section
// with a subsection is named `section "sub"`.
func parseConfig(text string, say func(section, key, value string)) {
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
				return // git refuses the file from here on
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
				say(section, strings.ToLower(strings.TrimSpace(key)), "true")
				continue
			}
			key := strings.ToLower(strings.TrimSpace(text[:end]))
			var value string
			value, text = configValue(text[end+1:])
			say(section, key, value)
		}
	}
}

// configValue reads a value up to the end of its line.
func configValue(text string) (value, rest string) {
	var b strings.Builder
	text = strings.TrimLeft(text, " \t")
	quoted, kept := false, 0 // kept: how much of b trailing spaces do not belong to
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n':
			return b.String()[:kept], text[i+1:]
		case !quoted && (c == '#' || c == ';'):
			_, rest, _ = strings.Cut(text[i:], "\n")
			return b.String()[:kept], rest
		case c == '"':
			quoted = !quoted
			kept = b.Len()
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
			kept = b.Len()
			continue
		}
		b.WriteByte(c)
		if quoted || c != ' ' && c != '\t' {
			kept = b.Len()
		}
	}
	return b.String()[:kept], ""
}

// isTrue reads git's words for yes.
func isTrue(value string) bool {
	switch strings.ToLower(value) {
	case "true", "yes", "on":
		return true
	}
	n, err := strconv.Atoi(value)
	return err == nil && n != 0
}

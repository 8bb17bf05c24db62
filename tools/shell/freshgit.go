package shell

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// plainSettings are the lines of a repository's configuration that git writes itself when it
// makes or clones one, and that run nothing.
func plainSettings() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*|\s*[#;].*|\[core\]|\[(remote|branch) "[^"\\]*"\]|` +
		`\s*(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks) = [a-z0-9]+|` +
		`\s*url = ((https?|ssh|git|file)://|/|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:)[^\\"]*|` +
		`\s*(fetch|merge|remote) = [^\\"]*)$`)
}

// freshRepository says whether a folder called .git is as git makes it: without hooks and with
// settings that run nothing. Such a one may stay where a command made it.
func freshRepository(path string) bool {
	if filepath.Base(path) != ".git" {
		return false
	}
	if info, err := os.Lstat(path); err != nil || !info.IsDir() {
		return false
	}
	dir, err := os.OpenRoot(path)
	if err != nil {
		return false
	}
	defer dir.Close()
	for _, name := range []string{"config.worktree", "commondir", "gitdir", "modules", "info/attributes"} {
		if _, err := dir.Lstat(filepath.FromSlash(name)); err == nil {
			return false
		}
	}
	return plainHooks(dir) && plainConfig(dir)
}

func plainHooks(dir *os.Root) bool {
	if _, err := dir.Lstat("hooks"); err != nil {
		return true
	}
	folder, err := dir.Open("hooks")
	if err != nil {
		return false
	}
	defer folder.Close()
	hooks, err := folder.ReadDir(-1)
	for _, h := range hooks {
		if !h.Type().IsRegular() || !strings.HasSuffix(h.Name(), ".sample") {
			return false
		}
	}
	return err == nil
}

func plainConfig(dir *os.Root) bool {
	const most = 64 << 10
	info, err := dir.Lstat("config")
	if err != nil || !info.Mode().IsRegular() || info.Size() > most {
		return false
	}
	data, err := fs.ReadFile(dir.FS(), "config")
	if err != nil {
		return false
	}
	plain := plainSettings()
	for line := range strings.Lines(string(data)) {
		if !plain.MatchString(strings.TrimRight(line, "\r\n")) {
			return false
		}
	}
	return true
}

package heldback

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// plainSettings matches the lines that git itself writes to a repository's configuration when it
// creates or clones one, and that run nothing.
func plainSettings() *regexp.Regexp {
	return regexp.MustCompile(`^(\s*|\s*[#;].*|\[core\]|\[(remote|branch) "[^"\\]*"\]|` +
		`\s*(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks) = [a-z0-9]+|` +
		`\s*url = ((https?|ssh|git|file)://|/|[A-Za-z0-9_.-]+@[A-Za-z0-9_.-]+:)[^\\"]*|` +
		`\s*(fetch|merge|remote) = [^\\"]*)$`)
}

// freshRepository reports whether a .git folder is as git creates it: without hooks and with
// settings that run nothing. A command may create such a folder.
func freshRepository(path string) bool {
	if sandbox.Fold(filepath.Base(path)) != ".git" {
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
		if _, err := dir.Lstat(filepath.FromSlash(name)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return plainHooks(dir) && plainConfig(dir)
}

// freshWorktree reports whether a path is one of the files that link a new worktree to a repository. The
// configuration of the repository, which git uses in the worktree, must have been protected before.
func freshWorktree(places sandbox.Places, path string) bool {
	var dir, link string // the folder in the repository, and the file .git of the worktree
	switch name := filepath.Base(path); name {
	case ".git":
		link = path
		dir = strings.TrimPrefix(singleLine(path), "gitdir: ")
	case "commondir", "gitdir":
		dir = filepath.Dir(path)
		link = singleLine(filepath.Join(dir, "gitdir"))
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || !filepath.IsAbs(dir) || real != dir || filepath.Base(filepath.Dir(dir)) != "worktrees" {
		return false
	}
	if _, err := os.Lstat(filepath.Join(dir, "config.worktree")); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return places.Known(filepath.Join(filepath.Dir(filepath.Dir(dir)), "config")) &&
		singleLine(filepath.Join(dir, "commondir")) == "../.." && singleLine(filepath.Join(dir, "gitdir")) == link && singleLine(link) == "gitdir: "+dir
}

// singleLine returns the line of a small file that has only one; empty for other files.
func singleLine(path string) string {
	const maxLen = 4096
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := safeio.Read(path, maxLen)
	text, rest, _ := strings.Cut(string(data), "\n")
	if err != nil || rest != "" {
		return ""
	}
	return text
}

func plainHooks(dir *os.Root) bool {
	switch info, err := dir.Lstat("hooks"); {
	case errors.Is(err, fs.ErrNotExist):
		return true
	case err != nil || !info.IsDir(): // opening a pipe would block
		return false
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
	const maxLen = 64 << 10
	info, err := dir.Lstat("config")
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxLen {
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

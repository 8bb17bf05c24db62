package permission

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/regular"
)

// gitReads says whether git only reads in the repository where a command runs. What git
// reads itself, a repository's own configuration can hand to other programs (diff.external,
// textconv, filters, a transport): then git does not only read.
//
// Hooks, a file system monitor and most looks into submodules are switched off when such a
// command runs (cmdline.HarmlessGit); but .gitmodules can ask for them, so submodules are
// judged too. One that has its .git in it, in a repository whose .gitmodules is only
// recorded and not there, is not found.
func (p *Policy) gitReads(c cmdline.Command, l *places) (ok bool, why string) {
	contents := c.GitContents
	for _, dir := range l.dirs {
		if c.Dir != "" {
			dir = under(dir, c.Dir)
			if !p.inside(dir) {
				return false, c.Dir + " is outside the workspace"
			}
		}
		left := maxRepositories
		if why := p.helpers(dir, contents, &left); why != "" {
			return false, why
		}
	}
	return true, ""
}

// maxRepositories bounds how many submodules are looked at.
const maxRepositories = 100

// helpers says why git may run programs in the repository that a folder belongs to, or "";
// contents says whether it looks at the contents of files. If there is no repository, git says so
// and does nothing.
func (p *Policy) helpers(dir string, contents bool, left *int) (why string) {
	repo, common, top := repository(dir)
	if repo == "" {
		return ""
	}
	if *left--; *left < 0 {
		return "the repository has too many submodules"
	}
	if why := p.configured(repo, common, contents); why != "" {
		return why
	}
	if why := p.modules(filepath.Join(common, "modules"), contents, left); why != "" {
		return why
	}
	data, err := readConfig(filepath.Join(top, ".gitmodules"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "its .gitmodules can not be read"
	}
	for line := range strings.Lines(string(data)) {
		key, path, _ := strings.Cut(strings.TrimSpace(line), "=")
		if path = strings.TrimSpace(path); strings.TrimSpace(key) != "path" {
			continue
		}
		sub := under(top, path)
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil || !p.inside(sub) {
			continue
		}
		if why := p.helpers(sub, contents, left); why != "" {
			return why
		}
	}
	return ""
}

// modules judges the submodules that a repository keeps in a folder of its own.
func (p *Policy) modules(dir string, contents bool, left *int) (why string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "its submodules can not be read"
	}
	for _, e := range entries {
		if *left--; *left < 0 {
			return "the repository has too many submodules"
		}
		sub := filepath.Join(dir, e.Name())
		if bare(sub) {
			if why = p.configured(sub, sub, contents); why == "" {
				why = p.modules(filepath.Join(sub, "modules"), contents, left)
			}
		} else if e.IsDir() { // a name with slashes
			why = p.modules(sub, contents, left)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// configured says what a repository's own configuration sets that may run programs, or "".
func (p *Policy) configured(repo, common string, contents bool) (why string) {
	for _, file := range []string{filepath.Join(common, "config"), filepath.Join(repo, "config.worktree")} {
		data, err := readConfig(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "the repository's configuration can not be read"
		}
		tree := func(value string) bool { return !strings.ContainsAny(value, "\"#;\\") && p.inside(under(repo, value)) }
		if key := foreignKey(data, contents, tree); key != "" {
			return "the repository's own configuration sets " + key + ", which may run programs or lead elsewhere"
		}
	}
	return ""
}

// repository returns the folder of the git repository that dir belongs to, the one that it
// shares with others (of a worktree), and the top of its work tree; empty if there is none.
func repository(dir string) (repo, common, top string) {
	for d := dir; ; d = filepath.Dir(d) {
		repo = filepath.Join(d, ".git")
		info, err := os.Stat(repo)
		switch {
		case err == nil && info.Mode().IsRegular():
			if data, err := readConfig(repo); err == nil {
				if to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:"); ok {
					repo = under(d, strings.TrimSpace(to))
				}
			}
		case err == nil:
		case bare(d):
			repo = d
		case filepath.Dir(d) == d:
			return "", "", ""
		default:
			continue
		}
		common = repo
		if data, err := readConfig(filepath.Join(repo, "commondir")); err == nil {
			common = under(repo, strings.TrimSpace(string(data)))
		}
		return repo, common, d
	}
}

// bare says whether a folder is itself a repository, as git would find.
func bare(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// readConfig reads a small regular file.
func readConfig(path string) ([]byte, error) {
	const most = 1 << 20
	return regular.Read(path, most)
}

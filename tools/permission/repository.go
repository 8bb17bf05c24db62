package permission

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// repositories judges what git would do in the repositories that a command uses.
type repositories struct{ *judgment }

// gitReads reports whether git only reads, and only in the workspace, in the repository where a command
// runs. The configuration of a repository can pass what git reads to other programs (diff.external,
// textconv, filters, a transport); then git does more.
//
// Hooks, the file system monitor and most access to submodules are switched off while such a command
// runs (cmdline.HarmlessGit). Since .gitmodules can enable access to submodules again, these are judged
// as well. A submodule with its own .git folder is not found if .gitmodules is missing from the work
// tree.
func (j repositories) gitReads(c cmdline.Command, l *workDirs) (ok bool, why string) {
	for _, dir := range l.possible {
		if c.Dir != "" {
			dir = joinPath(dir, c.Dir)
			if !j.inside(dir) {
				return false, c.Dir + " is outside the workspace"
			}
		}
		remaining := maxRepositories
		if why := j.whyUnsafe(dir, c.GitContents, &remaining); why != "" {
			return false, why
		}
	}
	return true, ""
}

// maxRepositories bounds the number of submodules that are judged.
const maxRepositories = 100

// enter applies a cd like workDirs.enter, and also handles a cd to the top of the repository.
func (j *judgment) enter(l *workDirs, c cmdline.Command) bool {
	if c.Name != "cd" || c.Effect != cmdline.Reads || len(c.Paths) != 1 || !c.Paths[0].Top {
		return l.enter(c)
	}
	for _, dir := range l.possible {
		r, err := repositories{j}.repository(j.links.Resolve(dir))
		switch {
		case err != nil:
			return false
		case r.top != "" && !r.unrecognized: // otherwise cd gets an empty argument and does nothing
			l.add(r.top)
		}
	}
	return len(l.possible) <= maxWorkDirs
}

// repo is a git repository as found in the file system.
type repo struct {
	dir            string // the git folder; empty if there is no repository
	common         string // the git folder that linked work trees share
	top            string // top of the work tree
	sharedConfig   []byte // shared configuration
	worktreeConfig []byte // configuration of this work tree
	unrecognized   bool   // git does not recognize it, and does nothing
}

// whyUnsafe returns why git may run programs in the repository that a folder belongs to, or read outside
// the workspace; empty if it does not. contents is true if git reads the contents of files.
func (j repositories) whyUnsafe(dir string, contents bool, remaining *int) (why string) {
	dir = j.links.Resolve(dir) // git works with the resolved path
	r, err := j.repository(dir)
	if err != nil {
		return err.Error()
	}
	if r.dir == "" {
		return ""
	}
	if *remaining--; *remaining < 0 {
		return "the repository has too many submodules"
	}
	for _, config := range [][]byte{r.sharedConfig, r.worktreeConfig} {
		if why := j.unsafeSetting(config, r.dir, r.top, contents); why != "" {
			return why
		}
	}
	if why := j.whyOutside(r); why != "" {
		return why
	}
	if why := j.unsafeSubmodules(filepath.Join(r.common, "modules"), contents, remaining); why != "" {
		return why
	}
	data, err := readConfig(filepath.Join(r.top, ".gitmodules"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "its .gitmodules cannot be read"
	}
	settings, err := j.git.parseConfig(data)
	if err != nil {
		return "its .gitmodules cannot be read: " + err.Error()
	}
	for _, s := range settings {
		if s.section != "submodule" || s.key != "path" {
			continue
		}
		sub := joinPath(r.top, s.value)
		if _, err := os.Lstat(filepath.Join(sub, ".git")); err != nil || !j.inside(sub) {
			continue
		}
		if why := j.whyUnsafe(sub, contents, remaining); why != "" {
			return why
		}
	}
	return ""
}

// repository returns the repository that a folder belongs to. It returns an error if git would use
// another one.
func (j repositories) repository(dir string) (r repo, err error) {
	r = findRepository(dir)
	if r.dir == "" && r.top != "" {
		return r, errors.New("eca does not know which repository git would use")
	}
	content := ""
	if r.dir != "" {
		for path, to := range map[string]*[]byte{filepath.Join(r.common, "config"): &r.sharedConfig, filepath.Join(r.dir, "config.worktree"): &r.worktreeConfig} {
			data, err := readConfig(path)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return r, errors.New("the repository's configuration cannot be read")
			}
			*to = data
		}
		if info, err := os.Stat(filepath.Join(r.dir, "HEAD")); err == nil && !info.Mode().IsRegular() {
			return r, errors.New("the repository has a HEAD that git cannot read")
		}
		for _, name := range []string{"HEAD", "objects", "refs"} {
			if _, err := os.Stat(filepath.Join(r.common, name)); err == nil {
				content += name
			}
		}
		content = strings.Join([]string{r.dir, r.common, r.top, string(r.sharedConfig), string(r.worktreeConfig), content}, "\x00")
	}
	a := j.git.repository(dir, content)
	switch {
	case a.err != nil:
		return r, a.err
	case a.repo == "":
		r.unrecognized = true
	case r.dir == "", !j.samePath(a.repo, r.dir), !j.samePath(a.common, r.common):
		return r, errors.New("git uses the repository " + a.repo + ", but eca found another one")
	case a.top != "" && !j.samePath(a.top, r.top): // core.worktree
		r.top = a.top
	}
	return r, nil
}

func (j *judgment) samePath(a, b string) bool {
	return a == b || j.links.Resolve(a) == j.links.Resolve(b)
}

// whyOutside returns which part of a repository is outside the workspace, although git would read it; empty
// if no part is. The git folder of a linked work tree or a submodule may be elsewhere if it refers back to
// the work tree.
func (j repositories) whyOutside(r repo) (why string) {
	switch {
	case r.unrecognized:
		return ""
	case !j.inside(r.top):
		return "its repository, " + r.top + ", is outside the workspace"
	case !j.inside(r.dir) && !j.pointsBack(r):
		return "the repository's " + r.dir + " is outside the workspace"
	case r.common != r.dir && !j.inside(r.common) && !safeio.Within(filepath.Join(j.links.Resolve(r.common), "worktrees"), j.links.Resolve(r.dir)):
		return "the repository's " + r.common + " is outside the workspace"
	}
	for _, name := range []string{"objects", "objects/pack", "objects/info", "refs", "refs/heads", "packed-refs", "logs", "index", "HEAD", "info", "info/exclude", "shallow"} {
		for _, dir := range []string{r.common, r.dir} {
			path := filepath.Join(dir, name)
			if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink != 0 && !j.inside(path) {
				return j.outsideMessage(path, path)
			}
			if r.dir == r.common {
				break
			}
		}
	}
	return j.alternatesOutside(filepath.Join(r.common, "objects"), maxAlternates)
}

// pointsBack reports whether a git folder elsewhere refers back to the work tree that names it.
func (j repositories) pointsBack(r repo) bool {
	if data, err := readConfig(filepath.Join(r.dir, "gitdir")); err == nil {
		return j.samePath(strings.TrimSpace(string(data)), filepath.Join(r.top, ".git"))
	}
	settings, err := j.git.parseConfig(r.sharedConfig)
	if err != nil {
		return false
	}
	for _, s := range settings {
		if s.section == "core" && s.key == "worktree" {
			return j.samePath(joinPath(r.dir, s.value), r.top)
		}
	}
	return false
}

// maxAlternates bounds the length of a chain of alternates files.
const maxAlternates = 5

// alternatesOutside returns why the alternates files of a repository lead outside the workspace; empty if they
// do not.
func (j repositories) alternatesOutside(objects string, remaining int) (why string) {
	data, err := readConfig(filepath.Join(objects, "info", "alternates"))
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil || remaining == 0 {
		return "the repository's list of borrowed objects cannot be read"
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\n"); line == "" || line[0] == '#' {
			continue
		}
		other := joinPath(objects, line)
		if line[0] == '"' || !j.inside(other) {
			return "the repository borrows objects from " + line + ", which is outside the workspace"
		}
		if why := j.alternatesOutside(other, remaining-1); why != "" {
			return why
		}
	}
	return ""
}

// unsafeSubmodules judges the submodules whose git folders are in a folder of their repository.
func (j repositories) unsafeSubmodules(dir string, contents bool, remaining *int) (why string) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		return "its submodules cannot be read"
	}
	for _, e := range entries {
		if *remaining--; *remaining < 0 {
			return "the repository has too many submodules"
		}
		sub := filepath.Join(dir, e.Name())
		if isBareRepository(sub) {
			for _, name := range []string{"config", "config.worktree"} {
				data, err := readConfig(filepath.Join(sub, name))
				if err != nil && !errors.Is(err, fs.ErrNotExist) {
					return "a submodule's configuration cannot be read"
				}
				if why := j.unsafeSetting(data, sub, "", contents); why != "" {
					return why
				}
			}
			why = j.unsafeSubmodules(filepath.Join(sub, "modules"), contents, remaining)
		} else if e.IsDir() { // a name with slashes
			why = j.unsafeSubmodules(sub, contents, remaining)
		}
		if why != "" {
			return why
		}
	}
	return ""
}

// unsafeSetting returns which key of a repository's configuration may run programs; empty if there is no
// such key. top is the top of the work tree; empty if it is not known.
func (j repositories) unsafeSetting(config []byte, repo, top string, contents bool) (why string) {
	settings, err := j.git.parseConfig(config)
	if err != nil {
		return "the repository's configuration cannot be read: " + err.Error()
	}
	inside := func(s setting) bool {
		if s.key == "worktree" {
			return j.inside(joinPath(repo, s.value))
		}
		return top != "" && !strings.ContainsAny(s.value[:1], "~%:") && j.inside(joinPath(top, s.value)) // these stand for other folders
	}
	if key := unsafeKey(settings, contents, inside); key != "" {
		return "the repository's own configuration sets " + key + ", which may run programs or lead elsewhere"
	}
	return ""
}

// findRepository searches for the repository of a folder as git does. If .git is a file without a
// valid path, only top is set.
func findRepository(dir string) (r repo) {
	for d := dir; ; d = filepath.Dir(d) {
		r = repo{dir: filepath.Join(d, ".git"), top: d}
		info, err := os.Stat(r.dir)
		switch {
		case err == nil && !info.IsDir():
			data, err := readConfig(r.dir)
			to, ok := strings.CutPrefix(strings.TrimSpace(string(data)), "gitdir:")
			if err != nil || !ok {
				return repo{top: d}
			}
			r.dir = joinPath(d, strings.TrimSpace(to))
		case err == nil:
		case isBareRepository(d):
			r.dir = d
		case filepath.Dir(d) == d:
			return repo{}
		default:
			continue
		}
		r.common = r.dir
		if data, err := readConfig(filepath.Join(r.dir, "commondir")); err == nil {
			r.common = joinPath(r.dir, strings.TrimSpace(string(data)))
		}
		return r
	}
}

// isBareRepository reports whether a folder is itself a repository, as git would find.
func isBareRepository(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// readConfig reads a regular file of limited size.
func readConfig(path string) ([]byte, error) {
	const maxSize = 256 << 10
	return safeio.Read(path, maxSize)
}

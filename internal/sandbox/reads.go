package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Reads lists what a command that only reads needs in some workspace roots: the roots, the
// folders of their git repositories, the user's configuration of git, and the folders of
// programs. It is for Policy.Read, to which Apply adds what every program needs of the system.
func Reads(roots []string, getenv func(string) string) []string {
	out := slices.Clone(roots)
	for _, root := range roots {
		out = append(out, repositories(root)...)
	}
	out = append(out, gitConfiguration(getenv)...)
	return resolved(append(out, programs(getenv)...))
}

// resolved returns the paths that exist, each once, with links resolved.
func resolved(paths []string) []string {
	out := []string{}
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// repositories returns the git folders of a root: that of a repository around it too, that of
// the repository of which it is a linked work tree, and what says in the folders around it which
// files do not count.
func repositories(root string) []string {
	var out []string
	for dir := root; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if info, err := os.Lstat(git); err == nil {
			if out = append(out, git); info.Mode().IsRegular() {
				out = append(out, commonFolder(git)...)
			}
		}
		for _, name := range []string{".gitignore", ".gitattributes", ".ignore", ".rgignore"} {
			out = append(out, filepath.Join(dir, name))
		}
		if filepath.Dir(dir) == dir {
			return out
		}
	}
}

// commonFolder returns the git folder of a linked work tree, given its .git file. Any process can
// write such a file, so the repository has to know of the work tree: in the place where git keeps
// that, which is below the folder itself. Elsewhere, a workspace could name any folder.
func commonFolder(file string) []string {
	text, ok := strings.CutPrefix(firstLine(file), "gitdir: ")
	if !ok {
		return nil
	}
	folder := text
	if !filepath.IsAbs(folder) {
		folder = filepath.Join(filepath.Dir(file), folder)
	}
	known := firstLine(filepath.Join(folder, "gitdir"))
	if !filepath.IsAbs(known) {
		known = filepath.Join(folder, known)
	}
	common := firstLine(filepath.Join(folder, "commondir"))
	if common == "" || !sameFile(known, file) {
		return nil
	}
	if !filepath.IsAbs(common) {
		common = filepath.Join(folder, common)
	}
	if parent := filepath.Dir(folder); filepath.Base(parent) != "worktrees" || !sameFile(filepath.Dir(parent), common) {
		return nil
	}
	return []string{common}
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// firstLine returns the first line of a small file, or empty.
func firstLine(path string) string {
	line, _, _ := strings.Cut(smallFile(path), "\n")
	return strings.TrimSpace(line)
}

// smallFile returns the beginning of a regular file.
func smallFile(path string) string {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, 1<<20))
	if err != nil {
		return ""
	}
	return string(data)
}

// gitConfiguration returns the user's own configuration of git, and the files that it names.
// Without them git refuses to work.
func gitConfiguration(getenv func(string) string) []string {
	home, base := getenv("HOME"), getenv("XDG_CONFIG_HOME")
	if base == "" && home != "" {
		base = filepath.Join(home, ".config")
	}
	var files, out []string
	if base != "" {
		out = append(out, filepath.Join(base, "git"))
		files = append(files, filepath.Join(base, "git", "config"))
	}
	if home != "" {
		files = append(files, filepath.Join(home, ".gitconfig"))
	}
	if file := getenv("GIT_CONFIG_GLOBAL"); filepath.IsAbs(file) {
		files = append(files, file)
	}
	for i := 0; i < len(files) && i < 50; i++ {
		out = append(out, files[i])
		included, others := namedFiles(files[i], home)
		for _, file := range included {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		out = append(out, others...)
	}
	return out
}

// namedFiles returns the files that a configuration of git includes, and the others that it
// names.
func namedFiles(config, home string) (included, others []string) {
	for s := bufio.NewScanner(strings.NewReader(smallFile(config))); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if rest, inHome := strings.CutPrefix(value, "~/"); inHome && home != "" {
			value = filepath.Join(home, rest)
		} else if !filepath.IsAbs(value) {
			value = filepath.Join(filepath.Dir(config), value)
		}
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "path":
			included = append(included, value)
		case "excludesfile", "attributesfile", "file":
			others = append(others, value)
		}
	}
	return included, others
}

// within says whether a path is a folder or something below it.
func within(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && path != "" && filepath.IsLocal(rel)
}

// programs returns the folders of PATH, and what programs in them load.
func programs(getenv func(string) string) []string {
	var out []string
	home := getenv("HOME")
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if !filepath.IsAbs(dir) || strings.HasPrefix(dir, "/usr/") || within(dir, home) || slices.Contains(out, dir) {
			continue // a home folder is not for programs, whatever added it to PATH
		}
		out = append(out, dir)
		if prefix := filepath.Dir(dir); prefix != "/" && prefix != home && filepath.Base(dir) == "bin" {
			for _, name := range []string{"lib", "lib64", "libexec", "Cellar", "opt"} {
				out = append(out, filepath.Join(prefix, name))
			}
		}
	}
	return out
}

package sandbox

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/worktree"
)

// Reads lists the paths that a read-only command needs in the given workspace roots: the roots, their
// git folders, the user's git configuration, and the folders of programs. The list is for
// Policy.Read; Apply adds the system paths that every program needs.
func Reads(roots []string, getenv func(string) string) []string {
	out := slices.Clone(roots)
	for _, root := range roots {
		out = append(out, repositoryPaths(root)...)
	}
	out = append(out, gitConfiguration(getenv)...)
	return resolveAll(append(out, programFolders(getenv)...))
}

// resolveAll returns the paths that exist, with symlinks resolved and without duplicates.
func resolveAll(paths []string) []string {
	out := []string{}
	for _, path := range paths {
		if real, err := filepath.EvalSymlinks(path); err == nil && !slices.Contains(out, real) {
			out = append(out, real)
		}
	}
	return out
}

// repositoryPaths returns, for a root and each folder above it, the git folder and the ignore files. For a
// linked worktree, it also returns the main git folder.
func repositoryPaths(root string) []string {
	var out []string
	for dir := root; ; dir = filepath.Dir(dir) {
		git := filepath.Join(dir, ".git")
		if info, err := os.Lstat(git); err == nil {
			out = append(out, git)
			if common, ok := worktree.Common(dir); ok && info.Mode().IsRegular() {
				out = append(out, common)
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

// readSmallFile returns the first MiB of a regular file, or an empty string if it cannot be read.
func readSmallFile(path string) string {
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

// gitConfiguration returns the user's git configuration files, and the files to which they refer. Without
// them, git fails or warns.
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
		included, others := referencedFiles(files[i], home)
		for _, file := range included {
			if !slices.Contains(files, file) {
				files = append(files, file)
			}
		}
		out = append(out, others...)
	}
	return out
}

// referencedFiles returns the files that a git configuration file includes, and other files to which it
// refers.
func referencedFiles(config, home string) (included, others []string) {
	for s := bufio.NewScanner(strings.NewReader(readSmallFile(config))); s.Scan(); {
		key, value, _ := strings.Cut(s.Text(), "=")
		value = strings.Trim(strings.TrimSpace(value), `"`)
		if rest, inHome := strings.CutPrefix(value, "~/"); inHome && home != "" {
			value = filepath.Join(home, rest)
		} else if !filepath.IsAbs(value) {
			value = filepath.Join(filepath.Dir(config), value)
		}
		switch strings.ToLower(strings.TrimSpace(key)) { // the section is not checked
		case "path":
			included = append(included, value)
		case "excludesfile", "attributesfile", "file":
			others = append(others, value)
		}
	}
	return included, others
}

// programFolders returns the folders of PATH, and the library folders next to them.
func programFolders(getenv func(string) string) []string {
	var out []string
	home := getenv("HOME")
	for _, dir := range filepath.SplitList(getenv("PATH")) {
		if !filepath.IsAbs(dir) || strings.HasPrefix(dir, "/usr/") || safeio.Within(dir, home) || slices.Contains(out, dir) {
			continue // Apply adds /usr; the home folder and folders around it must not be readable as a whole
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

package permission

import (
	"os"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// folders and files, wherever they are, whose content programs run or take orders from.
func protectedFolders() []string {
	return []string{
		".git", ".hg", ".jj", ".svn", ".eca", ".husky", ".githooks", ".ssh", ".gnupg", ".direnv",
		".vscode", ".idea", ".zed", ".devcontainer", ".cursor", ".claude", ".gemini", ".codex", ".mvn", ".gradle/init.d", ".local/bin",
		".config/fish", ".config/git", ".config/nvim", ".config/mise", ".config/autostart", ".config/systemd", ".config/environment.d", ".config/eca",
		"library/launchagents", "library/launchdaemons", "start menu/programs/startup", "windowspowershell",
	}
}

func protectedFiles() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
		".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".pam_environment", ".tmux.conf", ".envrc",
		".gitconfig", ".hgrc", ".netrc", ".npmrc", ".pnpmfile.cjs", ".pypirc", ".bazelrc", ".gdbinit", ".rprofile",
		".vimrc", ".exrc", ".nvim.lua", ".emacs", ".dir-locals.el",
		"mise.toml", ".mise.toml", ".pre-commit-config.yaml", ".pre-commit-config.yml",
		"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json",
		".mcp.json", "agents.md", "claude.md", "gemini.md", "profile.ps1", "microsoft.powershell_profile.ps1", "crontab",
	}
}

// protectedPatterns are for files that have no fixed name (path.Match), by their last two names.
func protectedPatterns() []string {
	return []string{"*/*.code-workspace", "*/.yarnrc*", "*/mise.*.toml", "*/.mise.*.toml", "*/lefthook-local.*", "*/.lefthook-local.*", ".cargo/config", ".cargo/config.toml"}
}

// writesProtected returns a protected place that a call may write to, or "".
func (p *Policy) writesProtected(spec tools.Spec, plan tools.Plan, to resolved) string {
	if spec.ReadOnly || plan.ReadOnly {
		return ""
	}
	if plan.Command == nil {
		for _, path := range plan.Paths {
			if p.protects(path) || p.protects(to.of(path)) {
				return path
			}
		}
		return ""
	}
	places := newPlaces(plan.Command.Dir)
	resolved := map[string]string{} // folders by name
	in := func(name string) string {
		if strings.HasPrefix(name, "-") && !strings.Contains(name, "/") {
			return "" // an option
		}
		name = strings.TrimPrefix(name, "file://")
		for _, dir := range places.dirs {
			path := under(dir, expandHome(name))
			if p.protects(path) || p.protects(resolveIn(resolved, path)) {
				return path
			}
		}
		return ""
	}
	known := true // where it runs; else the names that say so themselves still count
	for _, c := range plan.Command.Program.Commands {
		known = known && places.enter(c)
		switch {
		case c.Effect == cmdline.Reads:
			continue
		case c.Name == "git": // its commands change .git, that is what they are for
			if slices.Contains(c.Args, "config") {
				return "git's configuration"
			}
			continue
		}
		for _, word := range append([]string{"."}, c.Args...) { // it works here, and on these
			if at := in(afterOption(word)); at != "" {
				return at
			}
		}
	}
	for _, name := range plan.Command.Program.Writes {
		if at := in(name); at != "" {
			return at
		}
	}
	return ""
}

// resolveIn is workspace.Resolve for many names in few folders, which it keeps.
func resolveIn(known map[string]string, path string) string {
	dir, name := filepath.Split(path)
	info, err := os.Lstat(path)
	if name == "" || name == ".." || err == nil && info.Mode()&(os.ModeSymlink|os.ModeIrregular) != 0 {
		return workspace.Resolve(path)
	}
	parent, ok := known[dir]
	if !ok {
		parent = workspace.Resolve(dir)
		known[dir] = parent
	}
	return filepath.Join(parent, name)
}

// afterOption returns the value of an option (--target=x, of=x), or the word.
func afterOption(word string) string {
	if i := strings.IndexByte(word, '='); i >= 0 {
		return word[i+1:]
	}
	return word
}

// expandHome replaces what a shell takes for the home folder.
func expandHome(name string) string {
	name = strings.Trim(name, `"'`)
	for _, home := range []string{"$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(name, home); ok {
			name = "~/" + rest
		}
	}
	if strings.HasPrefix(name, "~/") {
		return workspace.Abs(nil, name)
	}
	return name
}

// protects says whether a path is protected, not looking where it leads.
func (p *Policy) protects(path string) bool {
	if partOfBareRepository(filepath.ToSlash(path)) {
		return true
	}
	path = fold(path)
	if slices.ContainsFunc(p.protected, func(own string) bool { return path == own || strings.HasPrefix(path, own+"/") }) {
		return true
	}
	whole := path + "/"
	if slices.ContainsFunc(protectedFolders(), func(f string) bool { return strings.Contains(whole, "/"+f+"/") }) {
		return true
	}
	dir, name := pathpkg.Split(path)
	twoNames := pathpkg.Join(pathpkg.Base(dir), name)
	return slices.Contains(protectedFiles(), name) || slices.ContainsFunc(protectedPatterns(), func(pattern string) bool {
		matches, _ := pathpkg.Match(pattern, twoNames)
		return matches
	})
}

// partOfBareRepository says whether a path belongs to a bare git repository, or would make one:
// git runs what the configuration of the folder says that it is called in. A folder counts as a
// repository that has HEAD, objects and refs.
func partOfBareRepository(path string) bool {
	for dir, name := pathpkg.Split(path); name != ""; dir, name = pathpkg.Split(strings.TrimRight(dir, "/")) {
		switch strings.ToLower(name) {
		case "head", "objects", "refs", "config", "config.worktree", "hooks", "info", "commondir":
		default:
			continue
		}
		missing := 0
		for _, part := range []string{"HEAD", "objects", "refs"} {
			if strings.EqualFold(part, name) {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.FromSlash(dir), part)); err != nil {
				missing++
			}
		}
		if missing == 0 {
			return true
		}
	}
	return false
}

// fold brings a path into the form in which file systems that know no case, drop dots
// and spaces at the end, or do not see some characters compare names.
func fold(path string) string {
	path = strings.ToLower(filepath.ToSlash(filepath.Clean(path)))
	path = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || r == 0 {
			return -1
		}
		return r
	}, path)
	names := strings.Split(path, "/")
	for i, n := range names {
		if j := strings.IndexByte(n, ':'); j > 1 { // a stream of a file
			n = n[:j]
		}
		if n != "." && n != ".." {
			n = strings.TrimRight(n, ". ")
		}
		switch { // the short names of Windows
		case strings.HasPrefix(n, "git~"):
			n = ".git"
		case strings.HasPrefix(n, "eca~"):
			n = ".eca"
		}
		names[i] = n
	}
	return strings.Join(names, "/")
}

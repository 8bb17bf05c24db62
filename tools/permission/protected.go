package permission

import (
	"os"
	pathpkg "path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/cmdline"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// folders and files, wherever they are, whose content programs run or take orders from.
func protectedFolders() []string {
	return []string{
		".git", ".hg", ".jj", ".svn", ".eca", ".husky", ".githooks", ".ssh", ".gnupg", ".direnv",
		".vscode", ".idea", ".zed", ".devcontainer", ".cursor", ".windsurf", ".claude", ".gemini", ".codex", ".mvn", ".gradle/init.d", ".local/bin",
		".config/fish", ".config/git", ".config/nvim", ".config/mise", ".config/autostart", ".config/systemd", ".config/environment.d", ".config/eca",
		"library/launchagents", "library/launchdaemons", "start menu/programs/startup", "windowspowershell",
	}
}

func protectedFiles() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
		".kshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".pam_environment", ".tmux.conf", ".envrc",
		".gitconfig", ".hgrc", ".netrc", ".npmrc", ".pnpmfile.cjs", ".pypirc", ".bazelrc", ".gdbinit", ".lldbinit", ".rprofile",
		".vimrc", ".exrc", ".nvim.lua", ".emacs", ".dir-locals.el",
		"mise.toml", ".mise.toml", ".pre-commit-config.yaml", ".pre-commit-config.yml",
		"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json",
		".mcp.json", ".cursorrules", ".windsurfrules", "agents.md", "claude.md", "claude.local.md", "gemini.md", "profile.ps1", "microsoft.powershell_profile.ps1", "crontab",
	}
}

// protectedPatterns are for files that have no fixed name (path.Match), by their last two names.
func protectedPatterns() []string {
	return []string{"*/*.code-workspace", "*/.yarnrc*", "*/mise.*.toml", "*/.mise.*.toml", "*/lefthook-local.*", "*/.lefthook-local.*", ".cargo/config", ".cargo/config.toml"}
}

// writesProtected returns a protected place that a call may write to, or "".
func (j *judgment) writesProtected(spec tools.Spec, plan tools.Plan) string {
	if spec.ReadOnly || plan.ReadOnly {
		return ""
	}
	if plan.Command == nil {
		for _, path := range plan.Paths {
			if j.protects(path) || j.protects(j.leads(path)) {
				return path
			}
		}
		return ""
	}
	places := j.newPlaces(plan.Command.Dir)
	in := func(name string) string {
		if strings.HasPrefix(name, "-") && !strings.Contains(name, "/") {
			return "" // an option
		}
		name = strings.TrimPrefix(name, "file://")
		for _, dir := range places.dirs {
			path := under(dir, expandHome(name))
			if j.protects(path) {
				return path
			}
			if real := j.links.Resolve(path); real != path && j.protects(real) {
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

// protectedNames are protectedFolders, protectedFiles and protectedPatterns in a form that is
// quick to look in.
type protectedNames struct {
	folders  []string        // of several names
	folder   map[string]bool // of one name
	files    map[string]bool
	patterns []string // of the last two names
}

func newProtectedNames() protectedNames {
	n := protectedNames{folder: map[string]bool{}, files: map[string]bool{}}
	for _, name := range protectedFolders() {
		if strings.Contains(name, "/") {
			n.folders = append(n.folders, "/"+name+"/")
		} else {
			n.folder[name] = true
		}
	}
	for _, name := range protectedFiles() {
		n.files[name] = true
	}
	n.patterns = protectedPatterns()
	return n
}

// match says whether a folded path is, or is in, one of them.
func (n protectedNames) match(path string) bool {
	for rest := path; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if n.folder[name] {
			return true
		}
	}
	dir, name := pathpkg.Split(path)
	if n.files[name] {
		return true
	}
	whole := path + "/"
	if slices.ContainsFunc(n.folders, func(f string) bool { return strings.Contains(whole, f) }) {
		return true
	}
	twoNames := pathpkg.Base(dir) + "/" + name
	return slices.ContainsFunc(n.patterns, func(pattern string) bool {
		matches, _ := pathpkg.Match(pattern, twoNames)
		return matches
	})
}

// protects says whether a path is protected, not looking where it leads.
func (p *Policy) protects(path string) bool {
	if partOfBareRepository(filepath.ToSlash(path)) {
		return true
	}
	path = sandbox.Fold(path)
	return slices.ContainsFunc(p.protected, func(own string) bool { return path == own || strings.HasPrefix(path, own+"/") }) || p.names.match(path)
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

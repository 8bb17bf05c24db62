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

// The following functions list folders and files that programs run or obey when the user opens a
// folder, starts a shell, an editor, a debugger or an interpreter, or commits. They are protected in
// every folder. Files that the user runs explicitly (Makefile, package.json) are not protected, and
// neither is .gitattributes, which only selects programs that a protected configuration names.

func protectedFolders() []string {
	return []string{
		".git", ".hg", ".jj", ".svn", ".bzr", ".sl", "_darcs", ".repo", ".husky", ".githooks", ".git-hooks", ".ssh", ".gnupg", ".direnv",
		".vscode", ".idea", ".fleet", ".vs", ".zed", ".helix", ".devcontainer", ".vim", ".emacs.d",
		".eca", ".cursor", ".windsurf", ".claude", ".gemini", ".codex", ".kiro", ".roo", ".clinerules", ".continue", ".opencode", ".crush", ".junie", ".amazonq", ".augment",
		".qwen", ".trae", ".factory", ".agents", ".openhands", ".github/instructions", ".github/hooks",
		".mvn", ".gradle/init.d", ".yarn/releases", ".yarn/plugins", ".cargo/bin", ".local/bin", ".bashrc.d", ".oh-my-zsh", ".ipython", ".jupyter",
		".mise", "mise/conf.d", ".config/mise", ".config/fish", ".config/bash", ".config/zsh", ".config/nushell", ".config/xonsh", ".config/direnv", ".config/tmux", ".config/kitty",
		".config/alacritty", ".config/wezterm", ".config/git", ".config/jj", ".config/hg", ".config/nvim", ".config/vim", ".config/emacs", ".config/helix", ".config/zed", ".config/gdb", ".config/pip", ".config/go",
		".config/autostart", ".config/systemd", ".config/environment.d", ".config/eca", ".config/kak", ".julia/config", ".local/share/applications", ".local/share/systemd",
		"library/launchagents", "library/launchdaemons", "start menu/programs/startup", "windowspowershell",
	}
}

func protectedFiles() []string {
	return []string{
		".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".bash_completion", ".profile", ".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout",
		".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".logout", ".xonshrc", ".inputrc", ".xprofile", ".xinitrc", ".xsession", ".xsessionrc", ".pam_environment", "crontab",
		".tmux.conf", ".screenrc", ".wezterm.lua", ".envrc", ".direnvrc", ".autoenv", ".autoenv.zsh", "profile.ps1", "microsoft.powershell_profile.ps1",
		".gitconfig", ".hgrc", ".arcconfig", ".arcrc", ".netrc", ".curlrc", ".wgetrc", ".lesskey", ".lessfilter", ".mailcap", ".forward", ".procmailrc",
		".vimrc", ".gvimrc", ".nvimrc", ".lvimrc", ".exrc", ".nvim.lua", ".ycm_extra_conf.py", ".emacs", ".emacs.el", ".dir-locals.el", ".dir-locals-2.el", ".devcontainer.json", ".gitpod.yml",
		".gdbinit", ".gdbearlyinit", ".lldbinit", ".pdbrc", ".pdbrc.py", ".perldb", ".byebugrc", ".irbrc", ".pryrc", ".rprofile", ".renviron", ".ghci", ".ocamlinit", ".iex.exs",
		".pythonrc", ".psqlrc", ".sqliterc", ".my.cnf", "ipython_config.py",
		".npmrc", ".pnpmfile.cjs", ".pypirc", ".condarc", ".gemrc", ".bazelrc", ".bazeliskrc", ".buckconfig", ".mavenrc", ".sbtrc", ".sbtopts", ".terraformrc", "bunfig.toml", ".bunfig.toml",
		"rust-toolchain", "rust-toolchain.toml", ".tool-versions", "mise.toml", ".mise.toml", ".rtx.toml", "flake.nix", "shell.nix", "devenv.nix", "devenv.yaml", "devbox.json",
		".pre-commit-config.yaml", ".pre-commit-config.yml", "prek.toml", ".overcommit.yml", "captainhook.json", "grumphp.yml", "hk.pkl", ".rusty-hook.toml",
		"lefthook.yml", "lefthook.yaml", "lefthook.toml", "lefthook.json", ".lefthook.yml", ".lefthook.yaml", ".lefthook.toml", ".lefthook.json",
		".mcp.json", ".cursorrules", ".windsurfrules", ".roorules", ".roomodes", ".continuerules", ".rules", ".goosehints", ".augment-guidelines", ".aider.conf.yml",
		"opencode.json", "opencode.jsonc", "crush.json", ".crush.json", "copilot-instructions.md",
		"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "qwen.md", "warp.md",
	}
}

// protectedPatterns returns patterns (path.Match) for files without a fixed name. They match the last two
// components of a path.
func protectedPatterns() []string {
	return []string{
		"*/*.code-workspace", "*/*.sublime-project", "*/.yarnrc*", "*/mise.*.toml", "*/.mise.*.toml", "*/lefthook-local.*", "*/.lefthook-local.*", "*/.huskyrc*",
		"*/.lintstagedrc*", "*/lint-staged.config.*", "*/.simple-git-hooks.*", "*/simple-git-hooks.*", "*/.commitlintrc*", "*/commitlint.config.*", "*/jupyter_*config.*",
		".cargo/config", ".cargo/config.toml", ".cargo/env*", ".gradle/init.gradle*", ".gradle/gradle.properties", ".m2/settings.xml", "mise/config.toml", ".config/starship.toml",
		".docker/config.json", ".kube/config", ".aws/config", ".aws/credentials", "tools/bazel",
	}
}

// writesProtected returns a protected place that a call may write to; empty if there is no such place.
func (j *judgment) writesProtected(spec tools.Spec, plan tools.Plan, printed *tools.Printed) string {
	if spec.ReadOnly || plan.ReadOnly {
		return ""
	}
	if plan.Command == nil {
		for _, path := range plan.Paths {
			if j.protects(path) || j.protects(j.resolve(path)) {
				return path
			}
		}
		return ""
	}
	var dirs *workDirs
	checked := map[string]bool{}
	protectedPath := func(name string) string {
		if len(dirs.possible) == 1 {
			if checked[name] {
				return ""
			}
			checked[name] = true
		}
		if len(name) > 2 && name[0] == '-' && name[1] != '-' { // its value may follow the letter
			name = name[2:]
		} else if strings.HasPrefix(name, "-") && !strings.Contains(name, "/") {
			return "" // an option
		}
		name = strings.TrimPrefix(name, "file://")
		for _, dir := range dirs.possible {
			path := dir
			if name != "." {
				path = joinPath(dir, expandHome(name))
			}
			if j.protects(path) {
				return path
			}
			if real := j.links.Resolve(path); real != path && j.protects(real) {
				return path
			}
		}
		return ""
	}
	for _, program := range []cmdline.Program{plan.Command.Program, printed.Program} { // globs and braces are expanded in the second
		dirs = j.newWorkDirs(plan.Command.Dir)
		known := true // the folder of the command; if it is not known, absolute paths still count
		for _, c := range program.Commands {
			known = known && dirs.enter(c)
			words := append(c.Args[:len(c.Args):len(c.Args)], c.Values...)
			switch {
			case c.Effect == cmdline.Reads:
				continue
			case c.Name == "git": // it is meant to change .git
				if slices.Contains(words, "config") || configuresSubmodules(words) {
					return "git's configuration"
				}
				words = filesOfGit(words)
			case slices.Contains([]string{"sed", "awk", "gawk", "mawk"}, c.Name): // a script may name files
				for _, word := range words {
					words = append(words, strings.FieldsFunc(word, func(r rune) bool { return strings.ContainsRune(" \t\n\"';{}()>|", r) })...)
				}
				words = append(words, ".")
			default:
				words = append(words, ".") // it may write to the current folder, too
			}
			for _, word := range words {
				if at := protectedPath(afterOption(word)); at != "" {
					return at
				}
			}
		}
		for _, name := range program.Writes {
			if at := protectedPath(name); at != "" {
				return at
			}
		}
	}
	return ""
}

// filesOfGit returns the words of a git command that name files which git writes or removes, other than
// those of its repository.
func filesOfGit(args []string) (names []string) {
	for i, word := range args {
		name, value, attached := strings.Cut(word, "=")
		switch isOutput := len(name) >= len("--out") && strings.HasPrefix("--output-directory", name); {
		case isOutput && attached:
			names = append(names, value)
		case (isOutput || word == "-o") && i+1 < len(args):
			names = append(names, args[i+1])
		case strings.HasPrefix(word, "-o"):
			names = append(names, strings.TrimPrefix(word, "-o"))
		}
	}
	i := 0
	for i < len(args) && strings.HasPrefix(args[i], "-") {
		if slices.Contains([]string{"-C", "-c", "--git-dir", "--work-tree"}, args[i]) {
			i++
		}
		i++
	}
	if i >= len(args) {
		return names
	}
	sub, operands := args[i], args[i+1:]
	has := func(options ...string) bool {
		return slices.ContainsFunc(operands, func(word string) bool { return slices.Contains(options, word) })
	}
	switch sub {
	case "mv", "checkout", "bundle", "clone", "worktree":
		names = append(names, operands...)
	case "rm":
		if !has("--cached") {
			names = append(names, operands...)
		}
	case "restore":
		if !has("--staged", "-S") || has("--worktree", "-W") {
			names = append(names, operands...)
		}
	}
	return names
}

// configuresSubmodules reports whether a command writes git's configuration and that of a submodule. The
// sandbox would prevent only a part of that.
func configuresSubmodules(args []string) bool {
	i := slices.Index(args, "submodule")
	return i >= 0 && slices.ContainsFunc(args[i:], func(word string) bool {
		return slices.Contains([]string{"add", "init", "--init", "deinit", "sync", "set-url", "absorbgitdirs"}, word)
	})
}

// afterOption returns the value of an option (--target=x, of=x), or the word.
func afterOption(word string) string {
	if i := strings.IndexByte(word, '='); i >= 0 {
		return word[i+1:]
	}
	return word
}

// expandHome replaces a leading ~ or $HOME with the home folder, and removes quotes around a word.
func expandHome(name string) string {
	plain := withoutQuotes(name)
	for _, home := range []string{"~", "$HOME", "${HOME}"} {
		if rest, ok := strings.CutPrefix(plain, home); ok && (rest == "" || rest[0] == '/') {
			return workspace.Abs(nil, "~/"+strings.TrimLeft(rest, "/"))
		}
	}
	return strings.Trim(name, `"'`)
}

func withoutQuotes(word string) string {
	return strings.ReplaceAll(strings.ReplaceAll(word, `"`, ""), `'`, "")
}

// expandVariable replaces an environment variable at the beginning of a word with its value, if that
// is an absolute path. It leaves PWD, which depends on where the command runs.
func (p *Policy) expandVariable(word string) string {
	rest, ok := strings.CutPrefix(withoutQuotes(word), "$")
	if !ok || p.getenv == nil {
		return word
	}
	rest = strings.TrimPrefix(rest, "{")
	end := strings.IndexFunc(rest, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z')
	})
	if end < 0 {
		end = len(rest)
	}
	value := p.getenv(rest[:end])
	if rest[:end] == "PWD" || !filepath.IsAbs(value) || strings.Contains(value, string(filepath.ListSeparator)) {
		return word
	}
	return value + strings.TrimPrefix(rest[end:], "}")
}

// protectedNames is an index of protectedFolders, protectedFiles and protectedPatterns.
type protectedNames struct {
	folders    map[string]protectedFolder // by the first component
	firstBytes [256]bool                  // the bytes with which the names in folders begin
	files      map[string]bool
	twoNames   map[string]bool // patterns without *: the last two components
	patterns   []namePattern
}

// protectedFolder is the first component of protected folders.
type protectedFolder struct {
	itself bool     // it is protected
	longer []string // folders of several components, as /a/b/
}

// namePattern is a pattern for the last two components of a path, with the beginning and end of the
// last one.
type namePattern struct{ pattern, begin, end string }

func newProtectedNames() protectedNames {
	n := protectedNames{folders: map[string]protectedFolder{}, files: map[string]bool{}, twoNames: map[string]bool{}}
	for _, name := range protectedFolders() {
		first, _, several := strings.Cut(name, "/")
		f := n.folders[first]
		if several {
			f.longer = append(f.longer, "/"+name+"/")
		} else {
			f.itself = true
		}
		n.folders[first], n.firstBytes[first[0]] = f, true
	}
	for _, name := range protectedFiles() {
		n.files[name] = true
	}
	for _, pattern := range protectedPatterns() {
		last := pathpkg.Base(pattern)
		begin, _, found := strings.Cut(last, "*")
		if !found && !strings.Contains(pattern, "*") {
			n.twoNames[pattern] = true
			continue
		}
		n.patterns = append(n.patterns, namePattern{pattern, begin, last[strings.LastIndexByte(last, '*')+1:]})
	}
	return n
}

// match reports whether a folded path is protected, or is in a protected folder.
func (n protectedNames) match(path string) bool {
	for rest := path; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if name == "" || !n.firstBytes[name[0]] {
			continue
		}
		if f := n.folders[name]; f.itself || slices.ContainsFunc(f.longer, func(f string) bool { return strings.Contains(path+"/", f) }) {
			return true
		}
	}
	name := path[strings.LastIndexByte(path, '/')+1:]
	if n.files[name] {
		return true
	}
	twoNames := path[strings.LastIndexByte(path[:max(len(path)-len(name)-1, 0)], '/')+1:]
	return n.twoNames[twoNames] || slices.ContainsFunc(n.patterns, func(p namePattern) bool {
		if !strings.HasPrefix(name, p.begin) || !strings.HasSuffix(name, p.end) {
			return false
		}
		matches, _ := pathpkg.Match(p.pattern, twoNames)
		return matches
	})
}

// protects reports whether a path is protected. It does not resolve symlinks.
func (p *Policy) protects(path string) bool {
	if partOfBareRepository(filepath.ToSlash(path)) {
		return true
	}
	path = sandbox.Fold(path)
	return slices.ContainsFunc(p.protected, func(own string) bool { return path == own || strings.HasPrefix(path, own+"/") }) || p.names.match(path)
}

// partOfBareRepository reports whether a path belongs to a bare git repository, or would complete one.
// git runs programs from the configuration of a folder in which it is called, if that has HEAD, objects
// and refs.
func partOfBareRepository(path string) bool {
	for dir, name := pathpkg.Split(path); name != ""; dir, name = pathpkg.Split(strings.TrimRight(dir, "/")) {
		if strings.IndexByte("hHoOrRcCiI", name[0]) < 0 { // none of the following names begins like this
			continue
		}
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

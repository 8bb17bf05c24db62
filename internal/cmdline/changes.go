package cmdline

import (
	"slices"
	"strings"
)

// changes says whether a command is there to change something. It is for telling users
// and agents that only read; what it misses is merely not known.
func changes(name string, args []word) bool {
	switch base(name) {
	case "rm", "mv", "cp", "touch", "mkdir", "rmdir", "ln", "chmod", "chown", "chgrp", "tee", "dd", "truncate", "install", "shred", "unlink",
		"mkfs", "mknod", "mkfifo", "rsync", "patch", "kill", "pkill", "killall", "shutdown", "reboot", "crontab", "useradd", "passwd":
		return true
	case "perl", "ruby":
		return slices.ContainsFunc(args, func(a word) bool {
			return strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "i") && strings.ContainsAny(a.text, "pn")
		})
	}
	if p, known := reader(base(name)); known {
		return p.parse(args).mark == writes
	}
	changing := map[string][]string{
		"git": {
			"add", "am", "apply", "bisect", "checkout", "cherry-pick", "clean", "clone", "commit", "fetch", "filter-branch", "gc", "init", "merge", "mv",
			"pull", "push", "rebase", "reset", "restore", "revert", "rm", "switch", "update-ref", "update-index",
		},
		"npm": {"install", "i", "ci", "add", "uninstall", "update", "publish", "link"}, "pnpm": {"install", "i", "add", "remove", "update", "publish"},
		"yarn": {"install", "add", "remove", "upgrade", "publish"}, "bun": {"install", "add", "remove"},
		"pip": {"install", "uninstall"}, "pip3": {"install", "uninstall"}, "uv": {"add", "remove", "sync"}, "poetry": {"add", "remove", "install"},
		"cargo": {"install", "add", "remove", "publish", "update"}, "go": {"install", "get"}, "gem": {"install", "uninstall"},
		"brew": {"install", "uninstall", "upgrade"}, "apt": {"install", "remove", "upgrade"}, "apt-get": {"install", "remove", "upgrade"}, "dnf": {"install", "remove"},
	}[base(name)]
	return len(changing) > 0 && slices.Contains(changing, subcommand(name, args))
}

// subcommand returns the first word that is no option, for programs with subcommands.
func subcommand(name string, args []word) string {
	if !slices.Contains(multiCommands(), base(name)) {
		return ""
	}
	for i := 0; i < len(args); i++ {
		switch a := args[i].text; {
		case a == "-C" || a == "-c" || a == "--git-dir" || a == "--work-tree":
			i++
		case !strings.HasPrefix(a, "-"):
			return a
		}
	}
	return ""
}

// runsByOption finds the option, as it is written, with which a program runs others, whatever
// it is for; empty if there is none.
func runsByOption(name string, args []word) string {
	name = base(name)
	p, known := runnersByOption(name)
	if !known {
		return ""
	}
	if name == "tar" && len(args) > 0 && !strings.HasPrefix(args[0].text, "-") && strings.ContainsAny(args[0].text, "IF") {
		return args[0].text // letters without a dash
	}
	if name == "git" {
		sub := subcommand(name, args)
		i := slices.IndexFunc(args, func(a word) bool { return a.text == sub })
		if slices.ContainsFunc(args[:max(i, 0)], func(a word) bool { return strings.HasPrefix(a.text, "-c") }) {
			return "-c" // sets the configuration
		}
		switch sub {
		case "rebase":
			p.options += " !-x=X"
		case "clone":
			p.options += " !-u=X !-c,--config=X"
		case "difftool":
			p.options += " !-x,--extcmd=X"
		}
	}
	return p.parse(args).refused
}

// multiCommands take a subcommand that decides what they do.
func multiCommands() []string {
	return []string{
		"git", "gh", "go", "npm", "pnpm", "yarn", "bun", "deno", "cargo", "rustup", "docker", "podman", "kubectl", "helm",
		"terraform", "aws", "gcloud", "az", "pip", "pip3", "uv", "poetry", "conda", "brew", "apt", "apt-get", "dnf", "systemctl",
		"mvn", "gradle", "dotnet", "mix", "bundle", "gem", "composer", "flutter", "dart", "swift", "nix", "clojure", "clj", "lein",
	}
}

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
	case "sed":
		return slices.ContainsFunc(args, func(a word) bool {
			return strings.HasPrefix(a.text, "--in") || strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "i")
		})
	case "perl", "ruby":
		return slices.ContainsFunc(args, func(a word) bool {
			return strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "i") && strings.ContainsAny(a.text, "pn")
		})
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

// runsByOption finds options with which programs run others, whatever they are for.
func runsByOption(name string, args []word) (judgement, bool) {
	options := map[string][]string{
		"tar":   {"--to-c", "--checkpoint-a", "--use-c", "-I", "--rsh", "--rmt", "-F", "--info-s", "--new-v"},
		"rsync": {"-e", "--rsh", "--rsync-path"},
		"zip":   {"-TT", "--unzip-command"},
		"go":    {"-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"},
		"git":   {"--upload-pack", "--receive-pack", "--exec", "--config-env", "--git-dir", "--work-tree", "--ext", "--textc"},
		"fd":    {"-x", "-X", "--exec"}, "fdfind": {"-x", "-X", "--exec"},
		"cargo": {"--config"}, "man": {"-P", "--pager", "-H", "--html"},
		"curl": {"-K", "--config"}, "wget": {"--use-askpass", "-e", "--execute"},
		"less": {"-"}, "vim": {"-"}, "vi": {"-"}, "ed": {"-"}, "emacs": {"-"},
	}[base(name)]
	if len(options) == 0 {
		return judgement{}, false
	}
	sub := subcommand(name, args)
	inFront := true // of the subcommand, where git's -c sets the configuration
	for _, a := range args {
		if a.text == "--" {
			break
		}
		inFront = inFront && a.text != sub
		for _, o := range options {
			if strings.HasPrefix(a.text, o) || base(name) == "git" && (inFront && a.text == "-c" || sub == "rebase" && strings.HasPrefix(a.text, "-x")) {
				return judgement{why: a.text + " lets " + name + " run other programs", option: bare(a.text)}, true
			}
		}
	}
	return judgement{}, false
}

// key names a command for "remember".
func key(words []string) string {
	name := words[0]
	switch {
	case name == "" || strings.ContainsAny(name, "/*?["):
		return ""
	case slices.Contains(runners(), name):
		return ""
	case slices.Contains(multiCommands(), name):
		if len(words) == 1 {
			return name
		}
		// An option before the subcommand may change what runs.
		if words[1] == "" || strings.HasPrefix(words[1], "-") {
			return ""
		}
		if slices.Contains([]string{"run", "exec", "x", "dlx"}, words[1]) { // what runs is the next word
			if len(words) == 2 || strings.HasPrefix(words[2], "-") {
				return ""
			}
			return name + " " + words[1] + " " + words[2]
		}
		return name + " " + words[1]
	}
	return name
}

// runners run other programs, or code, given as arguments or on standard input.
func runners() []string {
	return []string{
		"sudo", "doas", "su", "env", "xargs", "nohup", "nice", "ionice", "time", "timeout", "watch", "setsid", "stdbuf", "chroot", "unshare", "script",
		"sh", "bash", "zsh", "dash", "ksh", "fish", "eval", "exec", "command", "builtin", "source", ".", "ssh", "scp", "sftp", "find", "parallel", "busybox",
		"python", "python3", "perl", "ruby", "node", "php", "lua", "tclsh", "awk", "gawk", "mawk", "sed", "ed", "vim", "vi", "emacs", "tee", "dd", "make", "npx", "uvx", "bunx",
		"osascript", "powershell", "pwsh", "cmd", "gdb", "strace", "expect", "nc", "socat", "rsync", "at", "batch", "crontab",
	}
}

// multiCommands take a subcommand that decides what they do.
func multiCommands() []string {
	return []string{
		"git", "gh", "go", "npm", "pnpm", "yarn", "bun", "deno", "cargo", "rustup", "docker", "podman", "kubectl", "helm",
		"terraform", "aws", "gcloud", "az", "pip", "pip3", "uv", "poetry", "conda", "brew", "apt", "apt-get", "dnf", "systemctl",
		"mvn", "gradle", "dotnet", "mix", "bundle", "gem", "composer", "flutter", "dart", "swift", "nix", "clojure", "clj", "lein",
	}
}

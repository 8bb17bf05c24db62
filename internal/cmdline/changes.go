package cmdline

import (
	"slices"
	"strings"
)

// changes reports whether the purpose of a command is to change something. Users and read-only
// agents are shown that as the reason. false only means that no change is known.
func changes(name string, args []word) bool {
	switch programName(name) {
	case "rm", "mv", "cp", "touch", "mkdir", "rmdir", "ln", "chmod", "chown", "chgrp", "tee", "dd", "truncate", "install", "shred", "unlink",
		"mkfs", "mknod", "mkfifo", "rsync", "patch", "kill", "pkill", "killall", "shutdown", "reboot", "crontab", "useradd", "passwd":
		return true
	case "perl", "ruby":
		return slices.ContainsFunc(args, func(a word) bool {
			return strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.Contains(a.text, "i") && strings.ContainsAny(a.text, "pn")
		})
	}
	if p, known := readerTable(programName(name)); known {
		return p.parse(args).mark == writesFile
	}
	sub := subcommand(name, args)
	if sub == "" {
		return false
	}
	for other := range strings.FieldsSeq(changingSubcommands(programName(name))) {
		if other == sub {
			return true
		}
	}
	return false
}

// changingSubcommands returns the subcommands of a program whose purpose is to change something.
func changingSubcommands(name string) string {
	switch name {
	case "git":
		return "add am apply bisect checkout cherry-pick clean clone commit fetch filter-branch gc init merge mv pull push rebase reset restore revert rm switch update-ref update-index"
	case "npm":
		return "install i ci add uninstall update publish link"
	case "pnpm":
		return "install i add remove update publish"
	case "yarn":
		return "install add remove upgrade publish"
	case "bun", "dnf":
		return "install add remove"
	case "pip", "pip3", "gem":
		return "install uninstall"
	case "uv":
		return "add remove sync"
	case "poetry":
		return "add remove install"
	case "cargo":
		return "install add remove publish update"
	case "go":
		return "install get"
	case "brew":
		return "install uninstall upgrade"
	case "apt", "apt-get":
		return "install remove upgrade"
	}
	return ""
}

// subcommand returns the first word that is not an option, for programs with subcommands.
func subcommand(name string, args []word) string {
	if !hasSubcommands(programName(name)) {
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

// runsByOption returns the option, as written, that makes a program run another one; empty if there is
// no such option.
func runsByOption(name string, args []word) string {
	refused, _ := runnerOptions(name, args)
	return refused
}

// runnerOptions returns the result of runsByOption, and the values of all such options.
func runnerOptions(name string, args []word) (refused string, values []string) {
	name = programName(name)
	p, known := runnersByOption(name)
	if !known {
		return "", nil
	}
	if name == "tar" && len(args) > 0 && !strings.HasPrefix(args[0].text, "-") && strings.ContainsAny(args[0].text, "IF") {
		return args[0].text, texts(args[1:]) // letters without a dash
	}
	if name == "git" {
		sub := subcommand(name, args)
		i := slices.IndexFunc(args, func(a word) bool { return a.text == sub })
		before := args[:max(i, 0)]
		if slices.ContainsFunc(before, func(a word) bool { return strings.HasPrefix(a.text, "-c") }) {
			return "-c", texts(before) // sets the configuration
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
	parsed := p.parse(args)
	for _, given := range parsed.options {
		if o, _ := p.lookup(given.name); o.mark == doesMore {
			values = append(values, given.value)
		}
	}
	return parsed.refused, values
}

// hasSubcommands reports whether a program has subcommands.
func hasSubcommands(program string) bool {
	switch program {
	case "git", "gh", "go", "npm", "pnpm", "yarn", "bun", "deno", "cargo", "rustup", "docker", "podman", "kubectl", "helm",
		"terraform", "aws", "gcloud", "az", "pip", "pip3", "uv", "poetry", "conda", "brew", "apt", "apt-get", "dnf", "systemctl",
		"mvn", "gradle", "dotnet", "mix", "bundle", "gem", "composer", "flutter", "dart", "swift", "nix", "clojure", "clj", "lein":
		return true
	}
	return false
}

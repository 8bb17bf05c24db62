package shell

import (
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/event"
)

// reads says whether commands are known to change nothing. It is for agents that only
// read, and it errs on the side of no: a command, a subcommand or an option that it does
// not know may change something. It is no sandbox; who may run a command is asked
// besides.
func reads(commands []event.Command) bool {
	return len(commands) > 0 && !slices.ContainsFunc(commands, func(c event.Command) bool { return !readsOnly(c.Name, c.Args) })
}

func readsOnly(name string, args []string) bool {
	switch name {
	case "pwd", "ls", "cat", "head", "tail", "wc", "stat", "du", "df", "which", "whoami", "id", "uname",
		"echo", "printf", "true", "false", "basename", "dirname", "realpath", "readlink", "cut", "nl", "tac", "cmp", "comm", "diff",
		"grep", "egrep", "fgrep", "cd", "test", "md5sum", "sha256sum":
		return true
	case "date":
		return !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "+") && a != "-u" })
	case "find":
		return !anyPrefix(args, "-exec", "-ok", "-delete", "-fprint", "-fls")
	case "rg":
		return !anyPrefix(args, "--pre", "--hostname-bin", "--search-zip", "-z")
	case "git":
		return len(args) > 0 && readsGit(args[0], args[1:])
	}
	return false
}

// readsGit leaves out options that write files or run programs.
func readsGit(sub string, args []string) bool {
	if anyPrefix(args, "--ou", "--op", "-O", "--ext", "--textconv", "--filters") {
		return false
	}
	switch sub {
	case "status", "log", "show", "diff", "blame", "rev-parse", "ls-files", "ls-tree", "describe", "shortlog", "rev-list", "merge-base", "name-rev", "grep":
		return true
	case "branch", "tag", "remote":
		lists := []string{"-a", "-r", "-v", "-vv", "--all", "--remotes", "--list", "-l", "--show-current", "--verbose"}
		return !slices.ContainsFunc(args, func(a string) bool { return !slices.Contains(lists, a) })
	}
	return false
}

func anyPrefix(args []string, prefixes ...string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return slices.ContainsFunc(prefixes, func(p string) bool { return strings.HasPrefix(a, p) })
	})
}

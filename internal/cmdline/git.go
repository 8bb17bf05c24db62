package cmdline

import (
	"path"
	"slices"
	"strings"
)

// gitReads are the subcommands that read, as long as no option says otherwise.
func gitReads() []string {
	return []string{
		"status", "log", "show", "diff", "blame", "annotate", "rev-parse", "ls-files", "ls-tree", "describe", "shortlog", "rev-list", "merge-base",
		"name-rev", "grep", "branch", "tag", "remote", "stash", "reflog", "worktree", "cat-file", "for-each-ref", "show-ref", "count-objects",
		"check-ignore", "cherry", "whatchanged", "symbolic-ref", "diff-tree", "diff-index", "diff-files", "show-branch", "var", "version", "--version",
	}
}

// GitReads says whether a subcommand of git reads, as long as no option says otherwise.
func GitReads(sub string) bool { return slices.Contains(gitReads(), sub) }

// GitContents says whether a git command that reads may look at the contents of files, where git
// runs filters and programs that show differences. If it is not known, it may.
func GitContents(args []string) bool {
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-C" && len(args) > 1 {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return true
	}
	switch args[0] {
	case "branch", "tag", "remote", "for-each-ref", "show-ref", "merge-base", "name-rev", "rev-parse", "symbolic-ref", "worktree", "count-objects":
		return false
	case "log", "reflog":
	default:
		return true
	}
	for _, a := range args[1:] {
		if a == "--" {
			break
		}
		option, _, _ := strings.Cut(a, "=")
		switch {
		case !strings.HasPrefix(a, "-"), len(a) > 1 && strings.Trim(a[1:], "0123456789") == "":
		case strings.HasPrefix(a, "-n") && strings.Trim(a[2:], "0123456789") == "":
		case slices.Contains([]string{
			"--oneline", "--graph", "--decorate", "--no-decorate", "--all", "--branches", "--tags", "--remotes", "--format", "--pretty", "--abbrev-commit", "--date", "--since", "--until", "--after", "--before",
			"--author", "--committer", "--max-count", "--skip", "--merges", "--no-merges", "--first-parent", "--reverse", "--color", "--no-color",
		}, option):
		default:
			return true
		}
	}
	return false
}

// judgeGit judges git by its subcommand and options.
func judgeGit(args []word) judgement {
	dir := ""
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") && args[0].text != "--version" {
		switch o := args[0].text; {
		case o == "-C" && len(args) > 1 && dir == "":
			dir, args = args[1].text, args[2:]
		case o == "--no-pager", o == "-P", o == "--no-optional-locks", o == "--literal-pathspecs":
			args = args[1:]
		default:
			return judgement{why: "git " + o + " may change what runs", option: bare(o)}
		}
	}
	if len(args) == 0 {
		return judgement{why: "git without a subcommand"}
	}
	sub, args := args[0].text, args[1:]
	if !slices.Contains(gitReads(), sub) {
		return judgement{why: "git " + sub + " is not known to read only"}
	}
	if o, why := gitOption(sub, args); why != "" {
		j := judgement{why: why, option: o}
		if strings.HasPrefix(o, "--ou") {
			j.effect = Changes
		}
		return j
	}
	lists := func(allowed ...string) judgement {
		for _, a := range args {
			if !slices.Contains(allowed, a.text) {
				return judgement{why: "git " + sub + " " + a.text + " may change something", option: a.text}
			}
		}
		return judgement{effect: Reads, git: true, dir: dir, paths: gitPaths(sub, dir, args)}
	}
	switch sub {
	case "diff":
		if firstWith(args, "--no-ind") != "" { // compares any two files, like diff
			return judgement{effect: Reads, git: true, dir: dir, paths: paths("diff", args)}
		}
	case "branch", "tag":
		return lists("-a", "-r", "-v", "-vv", "--all", "--remotes", "--list", "-l", "--show-current", "--verbose", "--no-color")
	case "remote":
		return lists("-v", "--verbose")
	case "stash", "worktree":
		if len(args) == 0 || args[0].text != "list" {
			return judgement{why: "git " + sub + " may change something"}
		}
		return lists("list", "--porcelain")
	case "reflog":
		if len(args) > 0 && args[0].text != "show" && !strings.HasPrefix(args[0].text, "-") {
			return judgement{why: "git reflog " + args[0].text + " may change something"}
		}
	case "symbolic-ref":
		return lists("HEAD", "--short", "-q")
	case "var", "show-branch", "count-objects":
		return lists("-v", "-H", "-a", "--all")
	}
	return judgement{effect: Reads, git: true, dir: dir, paths: gitPaths(sub, dir, args)}
}

// gitOption returns the first option that makes a reading subcommand do more, and what.
// Options may be shortened, so beginnings count.
func gitOption(sub string, args []word) (option, why string) {
	for _, a := range args {
		if a.text == "--" {
			return "", ""
		}
		option, value, _ := strings.Cut(a.text, "=")
		more := a.text + " makes git " + sub + " do more than read"
		for _, p := range []string{"--ou", "--op", "-O", "--ext", "--textc", "--fi", "--show-sig", "--contents", "--te", "--reme", "--diff-m", "--subm", "--recu"} {
			switch {
			case !strings.HasPrefix(a.text, p), strings.HasPrefix(a.text, "--first"), strings.HasPrefix(a.text, "--fixed"):
			case p == "--ou":
				return option, a.text + " writes a file"
			default:
				return option, more
			}
		}
		switch {
		case option == "--help":
			return option, "it runs man"
		case strings.HasPrefix(option, "--ignore-su") && value != "" && value != "all" && value != "dirty":
			return option, "git would look into submodules"
		case sub == "describe" && (strings.HasPrefix(option, "--d") || strings.HasPrefix(option, "--b")):
			return option, more // it writes the index
		case sub == "grep" && firstLetter([]word{a}, "O") != "":
			return option, more
		case strings.Contains(a.text, "%G"):
			return "%G", "%G makes git run gpg"
		case strings.Contains(a.text, "%(") && strings.Contains(a.text, "signature"):
			return "signature", "checking a signature makes git run gpg"
		}
	}
	return "", ""
}

// gitPaths lists the words that lead out of the repository: git does not follow links in
// it, and most words are no paths. Files that options name are all listed, seen from where
// git runs: git follows links to these.
func gitPaths(sub, dir string, args []word) []Path {
	var out []Path
	for i, a := range args {
		if a.text == "--" {
			break
		}
		if name := gitFile(sub, a.text, args[i+1:]); name != "" {
			if !path.IsAbs(name) && !strings.Contains(name, ":") { // which may be a drive's
				name = path.Join(dir, name)
			}
			out = append(out, Path{Name: name, Glob: a.glob})
		}
	}
	for _, a := range args {
		text := a.text
		if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
			text = value
		}
		if strings.HasPrefix(text, "/") || strings.HasPrefix(text, "../") || strings.Contains(text, "/../") || text == ".." || strings.HasSuffix(text, "/..") || a.glob {
			out = append(out, Path{Name: text, Glob: a.glob})
		}
	}
	return out
}

// gitFile returns the file that an option has a subcommand read; empty if it is none of these
// options. Its name is attached, perhaps behind other letters, or the next word.
func gitFile(sub, option string, next []word) string {
	letter, long := "", ""
	switch sub {
	case "grep":
		letter = "f"
	case "ls-files":
		letter, long = "X", "--exclude-f"
	case "blame", "annotate":
		letter, long = "S", "--ignore-revs"
	default:
		return ""
	}
	name, found := "", false
	if long != "" && strings.HasPrefix(option, long) {
		_, name, _ = strings.Cut(option, "=")
		found = true
	} else if !strings.HasPrefix(option, "--") && strings.HasPrefix(option, "-") {
		_, name, found = strings.Cut(option, letter)
	}
	if found && name == "" && len(next) > 0 {
		return next[0].text
	}
	return name
}

package cmdline

import (
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

// judgeGit judges git by its subcommand and options. Options may be shortened, so
// beginnings of the dangerous ones count.
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
	for _, a := range args {
		if a.text == "--" {
			break
		}
		for _, p := range []string{"--ou", "--op", "-O", "--ext", "--textc", "--fi", "--show-sig", "--contents", "--te"} {
			if strings.HasPrefix(a.text, p) && !strings.HasPrefix(a.text, "--first") && !strings.HasPrefix(a.text, "--fixed") {
				j := judgement{why: a.text + " makes git " + sub + " do more than read", option: bare(a.text)}
				if p == "--ou" {
					j.effect, j.why = Changes, a.text+" writes a file"
				}
				return j
			}
		}
		if strings.Contains(a.text, "%G") {
			return judgement{why: "%G makes git run gpg", option: "%G"}
		}
	}
	lists := func(allowed ...string) judgement {
		for _, a := range args {
			if !slices.Contains(allowed, a.text) {
				return judgement{why: "git " + sub + " " + a.text + " may change something", option: a.text}
			}
		}
		return judgement{effect: Reads, git: true, dir: dir, paths: gitPaths(args)}
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
	return judgement{effect: Reads, git: true, dir: dir, paths: gitPaths(args)}
}

// gitPaths lists the words that lead out of the repository: git does not follow links in
// it, and most words are no paths.
func gitPaths(args []word) []Path {
	var out []Path
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

package cmdline

import (
	"path"
	"slices"
	"strings"
)

// loss is what a command ends that nothing brings back.
type loss struct {
	why      string   // what goes, whatever the words name; empty if it depends on them
	deletes  []string // folders and files that go with all that is in them
	discards []string // words that, if they name files, bring these back to an older state
}

// losses tells commands that end somebody's work for good: what was not committed or
// pushed, what others have, whole folders. It knows what it is told by the text, and only
// the usual ways: it is there against accidents. What a program that it does not know does,
// only a sandbox holds.
func losses(name string, args []word) loss {
	switch name = base(name); name {
	case "rm":
		return deletions(args, "r", "R")
	case "find":
		if firstWith(args, "-delete") != "" {
			return loss{deletes: startsOf(args)}
		}
	case "rsync":
		if o := firstWith(args, "--del"); o != "" {
			return loss{why: "rsync " + o + " deletes what is not in its source"}
		}
	case "shred", "wipefs":
		return loss{why: name + " makes contents unreadable"}
	case "git":
		return gitLosses(args)
	case "gh":
		if len(args) > 1 && args[1].text == "delete" {
			return loss{why: "gh " + args[0].text + " delete can not be taken back"}
		}
	}
	if strings.HasPrefix(name, "mkfs") {
		return loss{why: name + " empties a file system"}
	}
	return loss{}
}

// deletions are the operands of rm, if one of the letters is among its options.
func deletions(args []word, letters ...string) loss {
	recursive, options := false, true
	var names []string
	for _, a := range args {
		switch {
		case options && a.text == "--":
			options = false
		case options && strings.HasPrefix(a.text, "--"):
			recursive = recursive || len(a.text) > 2 && strings.HasPrefix("--recursive", a.text)
		case options && strings.HasPrefix(a.text, "-") && len(a.text) > 1:
			recursive = recursive || slices.ContainsFunc(letters, func(l string) bool { return strings.Contains(a.text, l) })
		default:
			names = append(names, a.text)
		}
	}
	if !recursive {
		return loss{}
	}
	if len(names) == 0 { // given by xargs
		return loss{why: "what is deleted is not known"}
	}
	return loss{deletes: names}
}

// startsOf are the folders that find searches.
func startsOf(args []word) []string {
	var out []string
	for _, a := range args {
		if strings.HasPrefix(a.text, "-") || a.text == "(" || a.text == "!" {
			if slices.Contains([]string{"-H", "-L", "-P"}, a.text) {
				continue
			}
			break
		}
		out = append(out, a.text)
	}
	if len(out) == 0 {
		out = []string{"."}
	}
	return out
}

// gitLosses judges git by its subcommand.
func gitLosses(args []word) loss {
	sub := subcommand("git", args)
	i := slices.IndexFunc(args, func(a word) bool { return a.text == sub })
	if sub == "" || i < 0 {
		return loss{}
	}
	o := gitOptions(args[i+1:])
	first := ""
	if len(o.words) > 0 {
		first = o.words[0]
	}
	switch sub {
	case "reset":
		if o.has("", "--hard", "--merge") {
			return loss{why: "git reset throws away changes that are not committed"}
		}
	case "clean":
		if !o.has("n", "--dry-run") {
			return loss{why: "git clean deletes files that are in no commit"}
		}
	case "checkout":
		return o.checkout()
	case "switch":
		if o.has("f", "--force", "--discard-changes") {
			return loss{why: "git switch throws away changes that are not committed"}
		}
	case "restore":
		if !o.has("S", "--staged") || o.has("W", "--worktree") {
			return loss{why: "git restore throws away changes that are not committed"}
		}
	case "push":
		if o.has("fd", "--force", "--force-with-lease", "--mirror", "--delete", "--prune") || slices.ContainsFunc(o.words, func(w string) bool { return strings.HasPrefix(w, "+") || strings.HasPrefix(w, ":") }) {
			return loss{why: "git push replaces or deletes what others have"}
		}
	case "branch":
		if o.has("DMCf", "--force") {
			return loss{why: "git branch drops commits that may be nowhere else"}
		}
	case "tag":
		if o.has("df", "--delete", "--force") {
			return loss{why: "git tag drops or moves a tag"}
		}
	case "rm":
		if o.has("f", "--force") && !o.has("", "--cached") {
			return loss{why: "git rm deletes files with changes that are not committed"}
		}
	case "stash", "reflog":
		if slices.Contains([]string{"drop", "clear", "expire", "delete"}, first) {
			return loss{why: "git " + sub + " " + first + " drops what is nowhere else"}
		}
	case "worktree", "submodule":
		if slices.Contains([]string{"remove", "deinit"}, first) && o.has("f", "--force") {
			return loss{why: "git " + sub + " " + first + " deletes a work tree with its changes"}
		}
	case "update-ref":
		if o.has("d", "--stdin") {
			return loss{why: "git update-ref drops a branch or tag"}
		}
	case "gc", "prune", "filter-branch", "filter-repo":
		if sub != "gc" || o.has("", "--prune") {
			return loss{why: "git " + sub + " drops commits for good"}
		}
	}
	return loss{}
}

// gitWords are the words of a git command by kind.
type gitWords struct {
	options []string // as written
	words   []string // that are none, those behind -- too
	paths   bool     // there is a --
}

func gitOptions(args []word) gitWords {
	var o gitWords
	for _, a := range args {
		switch {
		case a.text == "--" && !o.paths:
			o.paths = true
		case !o.paths && strings.HasPrefix(a.text, "-") && a.text != "-":
			o.options = append(o.options, bare(a.text))
		default:
			o.words = append(o.words, a.text)
		}
	}
	return o
}

// has says whether one of the letters is among the short options, or one of the long
// ones is given, perhaps shortened as git permits.
func (o gitWords) has(letters string, long ...string) bool {
	return slices.ContainsFunc(o.options, func(option string) bool {
		if !strings.HasPrefix(option, "--") {
			return strings.ContainsAny(option[1:], letters)
		}
		const shortest = len("--fo") // shorter ones stand for several, which git refuses
		return slices.ContainsFunc(long, func(l string) bool {
			return option == l || len(option) >= shortest && strings.HasPrefix(l, option)
		})
	})
}

// checkout tells whether git changes to a branch or throws changes away.
func (o gitWords) checkout() loss {
	const why = "git checkout throws away changes that are not committed"
	switch {
	case o.has("f", "--force", "--pathspec-from-file"), o.paths && len(o.words) > 0:
		return loss{why: why}
	case o.has("bBt", "--orphan", "--track", "--detach"):
		return loss{}
	case len(o.words) > 1:
		return loss{why: why}
	}
	if len(o.words) == 1 && slices.Contains([]string{".", "..", "/"}, path.Clean(o.words[0])) {
		return loss{why: why}
	}
	return loss{discards: o.words}
}

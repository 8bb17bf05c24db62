package cmdline

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// loss is work that a command loses irreversibly.
type loss struct {
	why      string   // what is lost in any case; empty if it depends on the operands
	deletes  []string // folders and files that are deleted with their contents
	discards []string // words that lose their changes if they name files
}

// add adds what another command loses.
func (l *loss) add(other loss) {
	l.why = cmp.Or(l.why, other.why)
	for _, name := range other.deletes {
		if !slices.Contains(l.deletes, name) {
			l.deletes = append(l.deletes, name)
		}
	}
	l.discards = append(l.discards, other.discards...)
}

func (c *Command) setLosses(l loss) { c.Destroys, c.Deletes, c.Discards = l.why, l.deletes, l.discards }

// findLosses recognizes commands that lose work irreversibly: uncommitted or unpushed changes, data on
// a server, whole folders. It prevents accidents, and knows only the usual ways and only the text.
// Only the sandbox protects from unknown programs.
func findLosses(name string, args []word) loss {
	switch name = programName(name); name {
	case "rm":
		g := lossOptions(name).parse(args)
		if !g.has("-r") {
			return loss{}
		}
		if len(g.operands) == 0 { // xargs appends them
			return loss{why: "it deletes unknown files"}
		}
		return loss{deletes: texts(g.operands)}
	case "find":
		starts, g := findWords(args)
		if !g.has("-delete") {
			return loss{}
		}
		if len(starts) == 0 {
			return loss{deletes: []string{"."}}
		}
		return loss{deletes: texts(starts)}
	case "rsync":
		if lossOptions(name).parse(args).has("--delete") {
			return loss{why: "rsync deletes files that its source does not have"}
		}
	case "shred", "wipefs":
		return loss{why: name + " makes contents unreadable"}
	case "git":
		return findGitLosses(args)
	case "gh":
		if len(args) > 1 && args[1].text == "delete" {
			return loss{why: "gh " + args[0].text + " delete is irreversible"}
		}
	}
	if strings.HasPrefix(name, "mkfs") {
		return loss{why: name + " erases a file system"}
	}
	return loss{}
}

// findLossesInArguments returns what a command loses if its program, which is not known, runs the command
// that its arguments contain (taskset, busybox).
func findLossesInArguments(words []word, steps *int) loss {
	name, args := words[0].text, words[1:]
	for i, word := range args {
		program := programName(word.text)
		if isShell(program) {
			return findLossesInTexts(args[i+1:])
		}
		switch program {
		case "rm", "find", "rsync", "shred", "git":
			if programName(name) != "git" && program != subcommand(name, args) {
				return findLossesForValues(args[i:], steps)
			}
		}
	}
	return loss{}
}

func texts(words []word) []string {
	out := make([]string, len(words))
	for i, w := range words {
		out[i] = w.text
	}
	return out
}

// findGitLosses judges git by its subcommand.
func findGitLosses(args []word) loss {
	sub := subcommand("git", args)
	i := slices.IndexFunc(args, func(a word) bool { return a.text == sub })
	if sub == "" || i < 0 {
		return loss{}
	}
	if !args[i].known {
		return loss{why: "eca does not know what git " + sub + " does"}
	}
	o := lossOptions("git " + sub).parse(args[i+1:])
	first := ""
	if len(o.operands) > 0 {
		first = o.operands[0].text
	}
	switch sub {
	case "reset":
		if o.has("--hard") {
			return loss{why: "git reset discards uncommitted changes"}
		}
	case "clean":
		if !o.has("-n") {
			return loss{why: "git clean deletes untracked files"}
		}
	case "checkout":
		return findCheckoutLosses(o)
	case "switch":
		if o.has("-f") {
			return loss{why: "git switch discards uncommitted changes"}
		}
	case "restore":
		if !o.has("-S") || o.has("-W") {
			return loss{why: "git restore discards uncommitted changes"}
		}
	case "push":
		if o.has("-f") || slices.ContainsFunc(o.operands, func(w word) bool { return strings.HasPrefix(w.text, "+") || strings.HasPrefix(w.text, ":") }) {
			return loss{why: "git push overwrites or deletes branches or tags on the server"}
		}
	case "branch":
		if o.has("-f") {
			return loss{why: "git branch may drop the only reference to commits"}
		}
	case "tag":
		if o.has("-d") {
			return loss{why: "git tag deletes or moves a tag"}
		}
	case "rm":
		if o.has("-f") && !o.has("--cached") {
			return loss{why: "git rm deletes files with uncommitted changes"}
		}
	case "stash", "reflog":
		if slices.Contains([]string{"drop", "clear", "expire", "delete"}, first) {
			return loss{why: "git " + sub + " " + first + " deletes the only copy"}
		}
	case "worktree", "submodule":
		if slices.Contains([]string{"remove", "deinit"}, first) && o.has("-f") {
			return loss{why: "git " + sub + " " + first + " deletes a work tree with its changes"}
		}
	case "update-ref":
		if o.has("-d") {
			return loss{why: "git update-ref deletes a branch or tag"}
		}
	case "gc", "prune", "filter-branch", "filter-repo":
		if sub != "gc" || o.has("--prune") {
			return loss{why: "git " + sub + " deletes commits irreversibly"}
		}
	}
	return loss{}
}

// findCheckoutLosses decides whether git checkout switches to a branch or discards changes.
func findCheckoutLosses(g parsedWords) loss {
	const why = "git checkout discards uncommitted changes"
	switch {
	case g.has("-f", "--pathspec-from-file"), g.ended && len(g.operands) > 0:
		return loss{why: why}
	case g.has("-b"):
		return loss{}
	case len(g.operands) > 1:
		return loss{why: why}
	}
	names := texts(g.operands)
	if len(names) == 1 && slices.Contains([]string{".", "..", "/"}, path.Clean(names[0])) {
		return loss{why: why}
	}
	return loss{discards: names}
}

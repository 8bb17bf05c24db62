package cmdline

import (
	"slices"
	"strings"
)

// GitReads reports whether a subcommand of git only reads, unless an option changes that.
func GitReads(sub string) bool {
	_, known := gitTable(sub)
	return known
}

// gitContents reports whether a git command that only reads may read the contents of files. Then git
// runs filters and diff programs.
func gitContents(sub string, g parsedWords) bool {
	switch sub {
	case "branch", "tag", "remote", "config", "for-each-ref", "show-ref", "merge-base", "name-rev", "rev-parse", "symbolic-ref", "worktree", "count-objects":
		return false
	case "log", "reflog":
		history := program{options: gitHistory}
		for _, o := range g.options {
			if _, known := history.lookup(o.name); !known {
				return true
			}
		}
		return false
	}
	return true
}

// gitFront parses the options of git before its subcommand. The operands begin with the subcommand.
func gitFront(args []word) parsedWords {
	return program{stopAtOperand: true, noAbbreviations: true, options: "-C=DIR -P,--no-pager --no-optional-locks --literal-pathspecs --glob-pathspecs --noglob-pathspecs --icase-pathspecs --version"}.parse(args)
}

// judgeGit judges git by its subcommand and options.
func judgeGit(args []word) judgement {
	front := gitFront(args)
	if front.why != "" {
		return judgement{why: "git " + front.refused + " may change which programs run", option: optionName(front.refused)}
	}
	dir, dirs := "", 0
	for _, o := range front.options {
		if o.name == "-C" {
			dir = o.value
			dirs++
		}
	}
	args = front.operands
	switch {
	case front.has("--version"):
		return judgement{effect: Reads, git: true}
	case len(args) == 0:
		return judgement{why: "git without a subcommand"}
	case front.hiddenOption, front.globValue, front.ended, dirs > 1:
		return judgement{why: "eca does not know the folder or the subcommand of git"}
	}
	sub, args := args[0].text, args[1:]
	p, known := gitReader(sub)
	if !known {
		return judgement{why: "git " + sub + " is not known to only read"}
	}
	g := p.parse(args)
	if j := g.refusal("git " + sub); j.why != "" {
		return j
	}
	if g.hiddenOption {
		return judgement{why: "arguments of git may become options"}
	}
	if o, why := gitValue(g); why != "" {
		return judgement{why: why, option: o}
	}
	if o, why := gitOperands(sub, g); why != "" {
		return judgement{why: why, option: o}
	}
	if p.check != nil {
		if o, why := p.check(g); why != "" {
			return judgement{why: why, option: o}
		}
	}
	return judgement{effect: Reads, git: true, contents: gitContents(sub, g), dir: dir, paths: gitPaths(p, dir, g)}
}

// gitValue returns the first option whose value makes a reading subcommand do more, and why.
func gitValue(g parsedWords) (option, why string) {
	for _, o := range g.options {
		switch {
		case o.name == "--ignore-submodules" && o.value != "" && o.value != "all" && o.value != "dirty":
			return o.name, "git would look into submodules"
		case strings.Contains(o.value, "%G"):
			return "%G", "%G makes git run gpg"
		case strings.Contains(o.value, "signature"):
			return "signature", "checking a signature makes git run gpg"
		}
	}
	return "", ""
}

// gitOperands returns the operand with which a subcommand may change something, and why.
func gitOperands(sub string, g parsedWords) (option, why string) {
	first := ""
	if len(g.operands) > 0 {
		first = g.operands[0].text
	}
	why = "git " + sub + " " + first + " may change something"
	switch {
	case sub == "remote" && first != "" && first != "get-url",
		sub == "stash" && first != "list" && first != "show", sub == "worktree" && first != "list",
		sub == "reflog" && (first == "expire" || first == "delete" || first == "drop" || first == "write"),
		sub == "symbolic-ref" && len(g.operands) != 1,
		(sub == "var" || sub == "show-branch") && first != "":
		return first, strings.ReplaceAll(why, "  ", " ")
	}
	return "", ""
}

// checkGitList refuses names without an option that lists: git would create them. Older versions of
// git branch do not have -l.
func checkGitList(g parsedWords) (option, why string) {
	if len(g.operands) > 0 && !g.has("--list", "--contains", "--no-contains", "--merged", "--no-merged", "--points-at") {
		return g.operands[0].text, "it may create " + g.operands[0].text
	}
	return "", ""
}

// checkGitConfig allows only to show a setting that holds no secret. A second word would be a value to
// set.
func checkGitConfig(g parsedWords) (option, why string) {
	if len(g.operands) != 1 || g.operands[0].glob || g.globValue {
		return "", "git config may change something"
	}
	key := strings.ToLower(g.operands[0].text)
	for _, section := range []string{"user.", "remote.", "branch.", "core.", "init.", "pull.", "push."} {
		if strings.HasPrefix(key, section) {
			return "", ""
		}
	}
	return "", "git config may show a secret"
}

// gitPaths returns the arguments that may name files, relative to the folder where git is called.
func gitPaths(p program, dir string, g parsedWords) []Path {
	operands := g.operands
	if p.operandsAreText {
		operands = nil
	}
	if p.firstIsText && len(operands) > 0 && !operands[0].glob && !g.globValue && !g.has(strings.Fields(p.patternOptions)...) {
		operands = operands[1:]
	}
	var out []Path
	for _, list := range [][]word{g.files, operands} {
		for _, w := range list {
			name := w.text
			// A name after a revision and a colon is a path in the repository.
			if dir != "" && !strings.HasPrefix(name, "/") && !strings.Contains(name, ":") {
				name = dir + "/" + name
			}
			out = append(out, Path{Name: name, Glob: w.glob})
		}
	}
	return out
}

// gitWrapper lists the commands that a subcommand of git runs.
func (w textLister) gitWrapper(r run) (wrapperKind, bool) {
	args, action := r.words[1:], ""
	sub := subcommand("git", args)
	switch sub {
	case "bisect":
		action = "run"
	case "submodule":
		action = "foreach"
	case "filter-branch":
	default:
		return opaque, false
	}
	if action != "" {
		i := slices.IndexFunc(args, func(a word) bool { return a.text == action })
		if i < 0 {
			return opaque, false
		}
		command := args[i+1:]
		for len(command) > 0 && strings.HasPrefix(command[0].text, "-") {
			command = command[1:]
		}
		if sub == "bisect" && len(command) > 0 || len(command) > 1 { // a single word of foreach is a text
			w.inner(r, command, false)
			return opaque, true
		}
	}
	w.markUnresolved("git " + sub + " runs texts")
	return w.list(r), true
}

package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// expansions judges the words of a command that the shell computes.
type expansions struct{ *walker }

// hidesOption reports whether a computed argument of a command may become one of the options that a
// pattern must mention (Command.Demands). Arguments whose values are known do not count: the command is
// judged with each of them.
func (w expansions) hidesOption(words []word) bool {
	name, args := programName(words[0].text), slices.Clone(words[1:])
	computed := false
	for i, arg := range args {
		if arg.known {
			continue
		}
		_, known := arg.possibleTexts()
		args[i].known = known || arg.top || w.isOneOperand(arg) && (name != "tar" || i > 0) // letters without a dash are options of tar
		computed = computed || !args[i].known
	}
	if !computed {
		return false
	}
	switch name {
	case "git":
		return hidesGitOption(args)
	case "find":
		_, parsed := findWords(args)
		return parsed.hiddenOption
	}
	for _, table := range []func(string) (program, bool){readerTable, runnersByOption} {
		if p, known := table(name); known && p.hasMarkedOptions() && p.parse(args).hiddenOption {
			return true
		}
	}
	return false
}

// hidesGitOption is hidesOption for git. Only some subcommands have options that run or write something.
func hidesGitOption(args []word) bool {
	front := gitFront(args)
	if front.hiddenOption || len(front.operands) == 0 {
		return true
	}
	sub, args := front.operands[0].text, front.operands[1:]
	p, known := gitReader(sub)
	if !known {
		switch sub {
		case "archive", "bisect", "bundle", "clone", "difftool", "fetch", "format-patch", "ls-remote", "mergetool", "pull", "push", "rebase", "submodule":
			p, _ = runnersByOption("git")
		default:
			return false
		}
	}
	return p.hasMarkedOptions() && p.parse(args).hiddenOption
}

// hasMarkedOptions reports whether a program has options that do more than read.
func (p program) hasMarkedOptions() bool {
	for entry := range strings.FieldsSeq(p.options) {
		if entry[0] == doesMore || entry[0] == writesFile {
			return true
		}
	}
	return false
}

// isOneOperand reports whether a computed word is always one operand: it is in double quotes, and begins
// with a text other than a dash, or with the path of a folder that the shell knows.
func (w expansions) isOneOperand(word word) bool {
	if !word.quoted {
		return false
	}
	first := word.from.Parts[0]
	if quotes, ok := first.(*syntax.DblQuoted); ok && len(quotes.Parts) > 0 {
		first = quotes.Parts[0]
	}
	switch first := first.(type) {
	case *syntax.Lit:
		return !strings.HasPrefix(strings.TrimLeft(first.Value, `\`), "-")
	case *syntax.SglQuoted:
		return !first.Dollar && first.Value != "" && !strings.HasPrefix(first.Value, "-")
	case *syntax.ParamExp:
		return isPlainVariable(first) && (first.Param.Value == "HOME" || first.Param.Value == "PWD") && !w.assigns(first.Param.Value)
	}
	return false
}

// assigns reports whether the text may assign a value to a variable.
func (w expansions) assigns(variable string) bool {
	if w.scope == nil {
		return true
	}
	w.scope.collectAssignments()
	return w.scope.assigned[variable] != nil
}

// likelyWords returns the words that a computed word becomes if variables without a known value are not
// set, defaults apply (${x:-text}), and commands in substitutions print their arguments (echo, printf).
// It is nil for a word whose values are known, and for a word with other expansions. Warnings consider
// such words; nothing is allowed because of them.
func (w expansions) likelyWords(word word) []string {
	if _, known := word.possibleTexts(); known || word.top || word.from == nil {
		return nil
	}
	var text strings.Builder
	ok, computed, quoted := true, false, false
	var part func(p syntax.WordPart)
	part = func(p syntax.WordPart) {
		switch p := p.(type) {
		case *syntax.Lit:
			text.WriteString(unquoted(p.Value, "$`\"\\\n"))
		case *syntax.SglQuoted:
			quoted = true
			text.WriteString(p.Value)
		case *syntax.DblQuoted:
			quoted = true
			for _, inner := range p.Parts {
				part(inner)
			}
		case *syntax.ParamExp:
			computed = true
			switch value, known := derivedOperand(p); {
			case isPlainVariable(p) && p.Param.Value == "IFS":
				text.WriteByte(' ')
			case known && (p.Exp.Op == syntax.DefaultUnset || p.Exp.Op == syntax.DefaultUnsetOrNull):
				text.WriteString(value)
			}
		case *syntax.CmdSubst:
			computed = true
			var output *hereText
			if len(p.Stmts) == 1 {
				output = textLister(w).outputOf(p.Stmts[0])
			}
			if ok = ok && output.known(); ok {
				text.WriteString(output.text)
			}
		default:
			ok = false
		}
	}
	for _, p := range word.from.Parts {
		part(p)
	}
	switch {
	case !ok || !computed:
		return nil
	case quoted:
		return []string{text.String()}
	}
	return strings.Fields(text.String())
}

// judge adds to a command what follows from its computed words: whether they may hide an option, the
// likely words, and what the command loses with these.
func (w expansions) judge(c *Command, words []word) {
	if !slices.ContainsFunc(words, func(w word) bool { return !w.known }) {
		return
	}
	c.HiddenOption = w.hidesOption(words)
	command, likely := w.withLikelyWords(words)
	c.Values = append(c.Values, likely...)
	if len(likely) > 0 && c.Effect != Reads && words[0].known {
		l := loss{c.Destroys, c.Deletes, c.Discards}
		l.add(findLosses(words[0].text, command[1:]))
		c.setLosses(l)
	}
}

// withLikelyWords returns a command with the likely words in the place of computed ones, and these words.
func (w expansions) withLikelyWords(words []word) (command []word, likely []string) {
	for _, one := range words {
		found := w.likelyWords(one)
		if found == nil {
			command = append(command, one)
			continue
		}
		likely = append(likely, found...)
		for _, text := range found {
			command = append(command, word{text: text, known: true})
		}
	}
	return command, likely
}

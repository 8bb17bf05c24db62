package cmdline

import (
	"slices"
	"strings"
)

// judgement is what is known about a command from its arguments.
type judgement struct {
	effect   Effect
	why      string // why effect is not Reads
	option   string // the option because of which the command does more than read
	paths    []Path
	git      bool
	contents bool // git reads the contents of files
	dir      string
}

// judge looks up a command in the tables. loose is true if a wrapper such as xargs
// appends unknown arguments.
//
// The tables are conservative: commands, subcommands and options that they do not have may change
// something.
func judge(name string, args []word, loose bool) judgement {
	if o := runsByOption(name, args); o != "" {
		return judgement{why: o + " lets " + name + " run other programs", option: optionName(o)}
	}
	if _, known := readerTable(name); !known && changes(name, args) {
		return judgement{effect: Changes, why: strings.TrimSpace(name+" "+subcommand(name, args)) + " makes changes"}
	}
	var j judgement
	safeForAnyArgs := false
	switch name {
	case "git":
		j = judgeGit(args)
	case "find":
		j = judgeFind(args)
	case "make", "gcc", "bash":
		// Not node, python, cargo or go: with version managers and toolchains, files of the folder
		// decide which version runs, or whether one is downloaded first.
		if len(args) != 1 || args[0].text != "--version" {
			return judgement{why: "eca does not know what " + name + " does"}
		}
		j = judgement{effect: Reads}
	case "command":
		if g := commandOptions().parse(args); !g.has("-v", "-V") || g.why != "" {
			return judgement{why: "it runs an unknown command"}
		}
		j = judgement{effect: Reads}
	default:
		p, known := readerTable(name)
		if !known {
			return judgement{why: "eca does not know what " + name + " does"}
		}
		safeForAnyArgs = p.safeForAnyArgs || name == "printf" && len(args) > 0 // after a format
		j = p.judge(name, args)
	}
	if loose && j.effect == Reads {
		if !safeForAnyArgs {
			return judgement{why: "arguments of " + name + " may become options"}
		}
		// Unknown arguments may name any file, so that the command has a path outside the workspace.
		if p, _ := readerTable(name); !p.noOptions || !p.operandsAreText { // not echo, which reads no files
			j.paths = append(j.paths, Path{Name: "/", Anywhere: true})
		}
	}
	return j
}

// judge judges a program by its table.
func (p program) judge(name string, args []word) judgement {
	g := p.parse(args)
	if j := g.refusal(name); j.why != "" {
		if p.runsScript {
			j.option = ""
		}
		return j
	}
	if g.hiddenOption && !p.safeForAnyArgs {
		return judgement{why: "arguments of " + name + " may become options"}
	}
	if p.check != nil {
		if o, why := p.check(g); why != "" {
			j := judgement{why: why, option: optionName(o)}
			if strings.HasSuffix(why, " is written") {
				j.effect = Changes
			}
			return j
		}
	}
	j := judgement{effect: Reads}
	add := func(words []word, text bool) {
		for _, w := range words {
			if w.top || w.known && (!text || w.glob) {
				j.paths = append(j.paths, Path{Name: w.text, Glob: w.glob, Top: w.top, Follows: p.followsLinks && !g.has("--no-dereference")})
			}
		}
	}
	add(g.files, false)
	operands := g.operands
	if p.firstIsText && len(operands) > 0 && !operands[0].glob && !g.globValue && !g.has(strings.Fields(p.patternOptions)...) {
		operands = operands[1:]
	}
	add(operands, p.operandsAreText)
	return j
}

// refusal returns the judgement of a program with a refused option; without a reason if it has none.
func (g parsedWords) refusal(name string) judgement {
	switch {
	case g.why == "":
		return judgement{}
	case g.mark == writesFile:
		return judgement{effect: Changes, why: g.refused + " of " + name + " " + g.why, option: optionName(g.refused)}
	case g.mark == doesMore:
		return judgement{why: g.refused + " makes " + name + " do more than read, or read files that its arguments do not name", option: optionName(g.refused)}
	}
	return judgement{why: "the option " + g.refused + " of " + name + " " + g.why}
}

// runsScript reports whether a command runs a script that is one of its arguments.
func runsScript(name string) bool {
	p, known := readerTable(name)
	return known && p.runsScript
}

// safeForAnyArgs reports whether a command only reads, whatever its arguments are.
func safeForAnyArgs(name string) bool {
	p, known := readerTable(name)
	return known && p.safeForAnyArgs
}

// readerTable returns the table of a program that only reads with the options in it.
func readerTable(name string) (p program, known bool) {
	for _, table := range []func(string) (program, bool){fileReaders, textReaders, systemReaders, searchers} {
		if p, known = table(name); known {
			return p, true
		}
	}
	return program{}, false
}

// assignsLength reports whether a format of printf has %n, which sets a variable such as PATH.
func assignsLength(format string) bool {
	for {
		_, rest, found := strings.Cut(format, "%")
		if !found {
			return false
		}
		if strings.HasPrefix(rest, "%") { // an escaped percent sign
			format = rest[1:]
			continue
		}
		if format = strings.TrimLeft(rest, "-+ #0'*.123456789hjlLtzq"); strings.HasPrefix(format, "n") {
			return true
		}
	}
}

// optionName returns an option without its value.
func optionName(option string) string {
	option, _, _ = strings.Cut(option, "=")
	return option
}

// judgeFind judges find by its expression. The commands of -exec are judged separately; if all of
// them only read, so does find.
func judgeFind(args []word) judgement {
	starts, g := findWords(args)
	j := g.refusal("find")
	if g.has("-exec") && j.option == "" {
		j.option = "-exec"
	}
	if j.why == "" && g.hiddenOption {
		j.why = "arguments of find may become options"
	}
	if j.why == "" {
		j.effect = Reads
	}
	for _, w := range slices.Concat(starts, g.files) {
		j.paths = append(j.paths, Path{Name: w.text, Glob: w.glob})
	}
	return j
}

// findWords splits the arguments of find into the folders that it searches and its expression.
func findWords(args []word) (starts []word, g parsedWords) {
	global := program{options: "-H !-L -P -E -x -d -s", singleDash: true}
	i := 0
	for i < len(args) && !args[i].glob {
		if _, found := global.lookup(args[i].text); !found {
			break
		}
		global.option(&g, args[i], nil)
		i++
	}
	for i < len(args) && (args[i].text == "" || !strings.Contains("-(!),", args[i].text[:1])) {
		g.hiddenOption = g.hiddenOption || args[i].mayBecomeOption()
		starts = append(starts, args[i])
		i++
	}
	expression := findExpression()
	for i < len(args) {
		a := args[i]
		i++
		switch {
		case a.mayBecomeOption():
			g.hiddenOption = true
		case slices.Contains([]string{"(", ")", "!", ","}, a.text):
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, a.text):
			end := commandEnd(args, i)
			if a.text != "-exec" || end < 0 { // the others run in other folders, or prompt on the terminal
				g.refuse(a, doesMore, "runs a program")
			}
			if end < 0 {
				return starts, g
			}
			g.options = append(g.options, givenOption{name: a.text})
			i = end + 1
		case !strings.HasPrefix(a.text, "-"):
			g.refuse(a, 0, "is not where find expects it")
		case strings.HasPrefix(a.text, "-newer") && len(a.text) == len("-newerXY"):
			if i == len(args) {
				g.refuse(a, 0, "has no value")
			} else if g.files = append(g.files, args[i]); args[i].glob {
				g.refuse(a, 0, "may have several values")
			}
			i++
		default:
			before := len(g.options)
			n := expression.option(&g, a, args[i:])
			if n > 0 && args[i].glob && before < len(g.options) {
				g.refuse(a, 0, "may have several values") // of which all but the first are operators
			}
			i += n
		}
	}
	return starts, g
}

// commandEnd returns the index of the word that ends the command of -exec which begins at i; -1 if
// no word does.
func commandEnd(args []word, i int) int {
	for end := i; end < len(args); end++ {
		if args[end].text == ";" || args[end].text == "+" && end > i && args[end-1].text == "{}" {
			return end
		}
	}
	return -1
}

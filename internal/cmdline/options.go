package cmdline

import (
	"strings"
)

// program describes how a program parses its arguments. Options that are not in its table are
// unknown, and eca asks about a command with one of them.
type program struct {
	// options is the table, in the form of a usage message. An entry has the spellings of an
	// option, separated by commas. `-n,--lines=N` takes a value, `--color[=WHEN]` may have an
	// attached value, -NUM stands for digits. A value called FILE names a file that is read; a
	// value called A:B is two words. The table has all options of the program, because the
	// meaning of an abbreviation depends on all of them. A mark before an option refuses or
	// restricts it:
	//
	//	!  does more than read, or reads files that the arguments do not name
	//	>  writes a file
	//	~  takes a value on some systems only
	options string

	operandsAreText bool   // operands do not name files
	firstIsText     bool   // the first operand is a pattern or a script
	patternOptions  string // options that give the pattern or script in place of the first operand
	safeForAnyArgs  bool   // only reads, with any arguments, provided that no glob expands to an option
	noOptions       bool   // has no options
	noAbbreviations bool   // long options cannot be abbreviated
	singleDash      bool   // options are whole words after a single dash (find, go)
	stopAtOperand   bool   // options end at the first operand
	separateValues  bool   // values are never attached to letters
	partialTable    bool   // the table has only the options that matter; others are ignored
	noDash          bool   // separate values do not begin with a dash, except patterns (-e)
	followsLinks    bool   // descends into folders among its operands, and follows symlinks there
	runsScript      bool   // runs a script that can change files: a user's pattern may allow it, but an approval is never remembered
	check           func(parsedWords) (option, why string)
}

// Marks of options.
const (
	doesMore    = '!'
	writesFile  = '>'
	valueVaries = '~'
)

// option is an entry of a table.
type option struct {
	name     string // first spelling
	mark     byte
	values   string // names of its values
	optional bool   // the value is attached or missing
}

// parsedWords are the options and operands among the arguments of a program.
type parsedWords struct {
	options            []givenOption
	operands           []word
	files              []word // values of options that name files
	ended              bool   // there is a --
	hiddenOption       bool   // a word may expand to an option
	globValue          bool   // a value is a glob, which may become several words
	optionAfterOperand bool   // an option follows an operand, where some systems accept none

	// The refused option with the strongest mark (>, then !, then none), as written; the first one of
	// those with the same mark.
	refused string
	why     string
	mark    byte
}

type givenOption struct {
	name  string // first spelling in the table
	value string
}

// has reports whether one of the options is given. They are named by their first spelling.
func (g parsedWords) has(names ...string) bool {
	for _, o := range g.options {
		for _, name := range names {
			if o.name == name {
				return true
			}
		}
	}
	return false
}

func (g *parsedWords) refuse(written word, mark byte, why string) {
	if g.why == "" || g.mark == 0 && mark != 0 || g.mark == doesMore && mark == writesFile {
		g.refused, g.mark, g.why = written.text, mark, why
	}
}

// parse parses arguments as getopt_long does: options may follow operands, and letters may be
// grouped.
func (p program) parse(args []word) parsedWords {
	var g parsedWords
	if p.noOptions {
		g.operands = args
		return g
	}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case g.ended || a.text == "-" || !strings.HasPrefix(a.text, "-"):
			g.hiddenOption = g.hiddenOption || !g.ended && a.mayBecomeOption()
			g.operands = append(g.operands, a)
			if p.stopAtOperand && !g.ended {
				g.operands = append(g.operands, args[i+1:]...)
				return g
			}
		case a.mayBecomeOption(): // may be any option
			g.hiddenOption = true
			g.operands = append(g.operands, a)
			if _, value, attached := strings.Cut(a.text, "="); attached {
				g.files = append(g.files, word{text: value, known: a.known, glob: a.glob})
			}
		case a.text == "--":
			g.ended = true
			if p.stopAtOperand {
				g.operands = append(g.operands, args[i+1:]...)
				return g
			}
		default:
			g.optionAfterOperand = g.optionAfterOperand || len(g.operands) > 0
			i += p.option(&g, a, args[i+1:])
		}
	}
	return g
}

// option parses one word of options, and returns how many of the next words are its values.
func (p program) option(g *parsedWords, a word, next []word) (used int) {
	if p.singleDash || strings.HasPrefix(a.text, "--") {
		name, value, attached := strings.Cut(a.text, "=")
		if p.singleDash {
			name = "-" + strings.TrimLeft(name, "-")
		}
		o, found := p.lookupLong(name)
		if !found {
			p.refuseUnknown(g, a)
			p.refuseAbbreviation(g, a, name)
			return 0
		}
		if o.values == "" && attached || strings.Contains(o.values, ":") && attached {
			p.refuseUnknown(g, a)
			return 0
		}
		return p.addOption(g, o, a, word{text: value, known: true, glob: a.glob}, attached, next)
	}
	if strings.Trim(a.text[1:], "0123456789") == "" && p.digits() {
		g.options = append(g.options, givenOption{name: "-NUM", value: a.text[1:]})
		return 0
	}
	for j := 1; j < len(a.text); j++ {
		o, found := p.lookup("-" + a.text[j:j+1])
		if !found {
			p.refuseUnknown(g, a)
			continue // one of the other letters may be a refused option
		}
		if o.values == "" {
			if p.addOption(g, o, a, word{}, false, nil); o.mark == valueVaries && j+1 == len(a.text) && len(next) > 0 && strings.HasPrefix(next[0].text, "-") {
				g.refuse(a, 0, "has a value on some systems")
			}
			continue
		}
		rest := a.text[j+1:]
		if p.separateValues && rest != "" {
			p.refuseUnknown(g, a)
			return 0
		}
		return p.addOption(g, o, a, word{text: rest, known: true, glob: a.glob}, rest != "", next)
	}
	return 0
}

// addOption records an option with its value, and returns how many of the next words are its values.
func (p program) addOption(g *parsedWords, o option, written, value word, attached bool, next []word) (used int) {
	switch o.mark {
	case doesMore:
		g.refuse(written, o.mark, "does more than read, or reads files that its arguments do not name")
	case writesFile:
		g.refuse(written, o.mark, "writes a file")
	}
	if o.values == "" || o.optional {
		g.options = append(g.options, givenOption{o.name, value.text})
		if strings.HasPrefix(o.values, "FILE") && attached {
			g.files = append(g.files, value)
		}
		return 0
	}
	if attached {
		g.options = append(g.options, givenOption{o.name, value.text})
		if o.values == "FILE" || value.glob {
			g.files = append(g.files, value)
		}
		return 0
	}
	for kind := range strings.SplitSeq(o.values, ":") {
		if used == len(next) {
			g.refuse(written, 0, "has no value")
			return used
		}
		value = next[used]
		used++
		switch {
		case !value.known && !value.quoted, value.glob && value.mayBecomeOption():
			g.hiddenOption = true
		case strings.HasPrefix(value.text, "-") && (o.mark == valueVaries || p.noDash && value.text != "-" && o.name != "-e"):
			g.refuse(written, 0, "has a value that may be taken for an option")
		}
		g.globValue = g.globValue || value.glob
		// A program that accepts no options after operands takes the value for a file, and a glob may
		// become more than one word.
		if kind == "FILE" || value.glob || o.mark == valueVaries || len(g.operands) > 0 && !p.singleDash && !p.noDash {
			g.files = append(g.files, value)
		}
	}
	g.options = append(g.options, givenOption{o.name, value.text})
	return used
}

func (p program) refuseUnknown(g *parsedWords, a word) {
	if !p.partialTable {
		g.refuse(a, 0, "is unknown")
	}
}

// refuseAbbreviation refuses a possible abbreviation of a refused option.
func (p program) refuseAbbreviation(g *parsedWords, a word, spelling string) {
	for entry := range strings.FieldsSeq(p.options) {
		o, names := parseEntry(entry)
		if o.mark != doesMore && o.mark != writesFile {
			continue
		}
		for name := range strings.SplitSeq(names, ",") {
			if strings.HasPrefix(name, "--") && strings.HasPrefix(name, spelling) {
				g.refuse(a, o.mark, "may do more than read")
			}
		}
	}
}

// lookup returns the option with a spelling.
func (p program) lookup(spelling string) (option, bool) {
	const space = " \t\n"
	for rest := p.options; ; {
		at := strings.Index(rest, spelling)
		if at < 0 || !strings.HasPrefix(spelling, "-") {
			return option{}, false
		}
		entry := rest[strings.LastIndexAny(rest[:at], space)+1:]
		rest = ""
		if end := strings.IndexAny(entry, space); end >= 0 {
			entry, rest = entry[:end], entry[end:]
		}
		o, names := parseEntry(entry)
		for name := range strings.SplitSeq(names, ",") {
			if name == spelling {
				return o, true
			}
		}
	}
}

// lookupLong returns the option with a spelling, or the one that the spelling abbreviates. An ambiguous
// abbreviation gives the first match in a partial table, and no option in any other table.
func (p program) lookupLong(spelling string) (o option, found bool) {
	if o, found = p.lookup(spelling); found || p.noAbbreviations || p.singleDash {
		return o, found
	}
	for entry := range strings.FieldsSeq(p.options) {
		if !strings.Contains(entry, spelling) {
			continue
		}
		other, names := parseEntry(entry)
		for name := range strings.SplitSeq(names, ",") {
			if !strings.HasPrefix(name, spelling) {
				continue
			}
			if found && other.name != o.name {
				return o, p.partialTable // it may mean several
			}
			o, found = other, true
		}
	}
	return o, found
}

// digits reports whether the program accepts numbers as options (-5).
func (p program) digits() bool {
	_, found := p.lookup("-NUM")
	return found
}

// parseEntry parses an entry of a table.
func parseEntry(entry string) (o option, names string) {
	if entry[0] == doesMore || entry[0] == writesFile || entry[0] == valueVaries {
		o.mark, entry = entry[0], entry[1:]
	}
	names, o.values, _ = strings.Cut(entry, "=")
	if strings.HasSuffix(names, "[") {
		names, o.values, o.optional = names[:len(names)-1], strings.TrimSuffix(o.values, "]"), true
	}
	o.name, _, _ = strings.Cut(names, ",")
	return o, names
}

// Options returns the entries of a program's table in the form of a usage message, including refused
// options. It knows subcommands of git ("git log") and wrappers. It is empty for programs without a
// table.
func Options(program string) []string {
	if sub, ok := strings.CutPrefix(program, "git "); ok {
		p, _ := gitReader(sub)
		return strings.Fields(p.options)
	}
	if program == "find" {
		return strings.Fields(findExpression().options)
	}
	p, known := readerTable(program)
	if !known {
		p, _ = wrapperOptions(program)
	}
	return strings.Fields(p.options)
}

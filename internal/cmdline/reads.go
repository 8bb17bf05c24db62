package cmdline

import (
	"cmp"
	"slices"
	"strings"
)

// judgement is what is known of a command from its words.
type judgement struct {
	effect Effect
	why    string
	option string // that makes of a reading command another, or runs something
	paths  []Path
	git    bool
	dir    string
}

// judge looks a command up. loose says that words are added to it that nobody knows.
//
// The list errs on the side of no: a command, a subcommand or an option that it does not
// know may change something.
func judge(name string, args []word, loose bool) judgement {
	if j, ok := runsByOption(name, args); ok {
		return j
	}
	if changes(name, args) {
		return judgement{effect: Changes, why: strings.TrimSpace(name+" "+subcommand(name, args)) + " is there to change something"}
	}
	if !slices.ContainsFunc(args, word.loose) && !loose {
		return judgeKnown(name, args)
	}
	if !anyWords(name) {
		return judgement{why: "words of " + name + " may turn out to be options"}
	}
	if loose {
		// Names that come from elsewhere may lead anywhere; the caller sees a path
		// that is nowhere inside.
		j := judgeKnown(name, args)
		if name != "echo" {
			j.paths = append(j.paths, Path{Name: "/"})
		}
		return j
	}
	return judgeKnown(name, args)
}

// anyWords tells the commands that only read whatever words they are given.
func anyWords(name string) bool {
	switch name {
	case "pwd", "ls", "cat", "head", "tail", "wc", "stat", "du", "df", "which", "whoami", "id", "uname", "arch", "nproc",
		"echo", "true", "false", ":", "basename", "dirname", "realpath", "readlink", "cut", "nl", "tac", "rev", "fold", "tr", "paste", "join", "expand", "unexpand", "column",
		"cmp", "comm", "grep", "egrep", "fgrep", "cd", "md5sum", "sha1sum", "sha256sum", "sha512sum", "cksum", "od", "strings", "seq", "sleep", "jq":
		return true
	}
	return false
}

// judgeKnown judges a command none of whose words may turn out to be an option.
func judgeKnown(name string, args []word) judgement {
	reads := judgement{effect: Reads, paths: paths(name, args)}
	if o := leadsAway(name, args); o != "" {
		return judgement{why: o + " makes " + name + " read what it does not name", option: bare(o)}
	}
	if anyWords(name) {
		if name == "cd" && len(args) != 1 {
			return judgement{why: "where cd leads is not known"}
		}
		return reads
	}
	if option, known := doesMore(name, args); option != "" {
		return readsNoMore(name, option)
	} else if known {
		return reads
	}
	switch name {
	case "sort":
		if o := sortWrites(args); o != "" {
			j := readsNoMore(name, o)
			if !strings.HasPrefix(o, "--c") {
				j.effect = Changes
			}
			return j
		}
		return reads
	case "uniq":
		if len(operands(args)) > 1 {
			return judgement{effect: Changes, why: "the second file of uniq is written"}
		}
		return reads
	case "find":
		switch o := firstWith(args, "-exec", "-ok", "-delete", "-fprint", "-fls"); {
		case o == "-delete", strings.HasPrefix(o, "-fprint"), o == "-fls":
			return judgement{effect: Changes, why: o + " of find changes files", option: o}
		case o != "":
			j := readsNoMore(name, o)
			j.paths = reads.paths
			return j
		}
		return reads
	case "git":
		return judgeGit(args)
	case "type", "command":
		if name == "command" && (len(args) == 0 || args[0].text != "-v" && args[0].text != "-V") {
			return judgement{why: "what it runs is not known"}
		}
		return judgement{effect: Reads}
	case "make", "gcc", "bash":
		// Not node, python, cargo, go and their like: files of the folder say which of them
		// runs, where version managers and toolchains are, or that one be fetched first.
		if len(args) == 1 && args[0].text == "--version" {
			return judgement{effect: Reads}
		}
	}
	return judgement{why: "what " + name + " does is not known"}
}

// readsNoMore is the judgement of a command that only reads without an option.
func readsNoMore(name, option string) judgement {
	return judgement{why: option + " makes " + name + " do more than read", option: bare(option)}
}

// doesMore returns the option (or word) with which a command does more than read; empty if
// there is none. It knows those of which nothing else has to be known.
func doesMore(name string, args []word) (option string, known bool) {
	switch name {
	case "test", "[":
		return firstOf(args, "-v", "-R"), true // evaluate a subscript
	case "printf":
		switch {
		case len(args) > 0 && strings.HasPrefix(args[0].text, "-"):
			return args[0].text, true
		case len(args) > 0 && assignsLength(args[0].text):
			return "%n", true
		}
		return "", true
	case "diff":
		return cmp.Or(firstWith(args, "--pag"), firstLetter(args, "l")), true // runs pr
	case "date":
		for _, a := range args {
			if !strings.HasPrefix(a.text, "+") && a.text != "-u" && a.text != "--utc" && a.text != "-R" && !strings.HasPrefix(a.text, "-I") {
				return cmp.Or(a.text, "''"), true
			}
		}
		return "", true
	case "file":
		return cmp.Or(firstWith(args, "--co", "--ma", "--u", "--p"), firstLetter(args, "CmzZp")), true
	case "tree":
		for _, a := range args {
			if strings.HasPrefix(a.text, "-") && (strings.HasPrefix(a.text, "--out") || !strings.HasPrefix(a.text, "--") && strings.ContainsAny(a.text, "oR")) {
				return a.text, true
			}
		}
		return "", true
	case "rg":
		return cmp.Or(firstWith(args, "--pre", "--hostname-bin", "--search-zip"), firstLetter(args, "z")), true
	}
	return "", false
}

// operands are the words that are no options.
func operands(args []word) (out []word) {
	for i, a := range args {
		if a.text == "--" {
			return append(out, args[i+1:]...)
		}
		if !strings.HasPrefix(a.text, "-") || a.text == "-" {
			out = append(out, a)
		}
	}
	return out
}

// readable says whether some invocation of a command only reads, so that one which does
// more must not be remembered under the same key.
func readable(name string, args []string) bool {
	if name == "git" {
		return len(args) > 0 && slices.Contains(gitReads(), args[0])
	}
	return anyWords(name) || slices.Contains([]string{"test", "[", "printf", "date", "sort", "diff", "uniq", "file", "tree", "find", "rg"}, name)
}

// sortWrites returns the option with which sort writes a file or runs a program.
func sortWrites(args []word) string {
	for _, a := range args {
		switch {
		case a.text == "--":
			return ""
		case strings.HasPrefix(a.text, "--o"), strings.HasPrefix(a.text, "--co"), strings.HasPrefix(a.text, "--t"):
			return a.text
		case strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.ContainsAny(a.text, "oT"):
			return a.text
		}
	}
	return ""
}

func firstOf(args []word, options ...string) string {
	for _, a := range args {
		if slices.Contains(options, a.text) {
			return a.text
		}
	}
	return ""
}

func firstWith(args []word, prefixes ...string) string {
	for _, a := range args {
		for _, p := range prefixes {
			if strings.HasPrefix(a.text, p) {
				return a.text
			}
		}
	}
	return ""
}

// firstLetter returns the first option with one of some letters, alone or among others. What
// is a value that only looks like letters counts too.
func firstLetter(args []word, letters string) string {
	for _, a := range args {
		if a.text == "--" {
			return ""
		}
		if strings.HasPrefix(a.text, "-") && !strings.HasPrefix(a.text, "--") && strings.ContainsAny(a.text, letters) {
			return a.text
		}
	}
	return ""
}

// assignsLength says that a format of printf has %n, which sets a variable: PATH, say.
func assignsLength(format string) bool {
	for {
		_, rest, found := strings.Cut(format, "%")
		if !found {
			return false
		}
		if strings.HasPrefix(rest, "%") { // stands for itself
			format = rest[1:]
			continue
		}
		if format = strings.TrimLeft(rest, "-+ #0'*.123456789hjlLtzq"); strings.HasPrefix(format, "n") {
			return true
		}
	}
}

// bare is an option without its value.
func bare(option string) string {
	option, _, _ = strings.Cut(option, "=")
	return option
}

// paths lists the words that may name files.
func paths(name string, args []word) []Path {
	var out []Path
	if name == "echo" || name == "printf" { // their words are texts, but for globs
		for _, a := range args {
			if a.glob {
				out = append(out, Path{Name: a.text, Glob: true})
			}
		}
		return out
	}
	skip := pattern(name, args)
	for i, a := range args {
		if i == skip || !a.known {
			continue
		}
		if !strings.HasPrefix(a.text, "-") || a.text == "-" {
			out = append(out, Path{Name: a.text, Glob: a.glob})
			continue
		}
		// A value may be attached: --file=x, -fx, -vfx.
		if _, value, ok := strings.Cut(a.text, "="); ok {
			out = append(out, Path{Name: value, Glob: a.glob})
		}
		if strings.HasPrefix(a.text, "--") {
			continue
		}
		if i := strings.IndexByte(a.text, '/'); i >= 0 {
			out = append(out, Path{Name: a.text[i:]})
		}
		if i := strings.Index(a.text, ".."); i >= 0 {
			out = append(out, Path{Name: a.text[i:]})
		}
		out = append(out, attached(a.text)...)
	}
	return out
}

// attached lists what may be the value of an option behind one or several letters: of -vfx
// that is fx or x.
func attached(option string) (out []Path) {
	const most = 8 // letters
	letter := func(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }
	for n := 2; n < min(len(option), 2+most) && letter(option[n-1]) && strings.Trim(option[1:], "0123456789") != ""; n++ {
		out = append(out, Path{Name: option[n:]})
	}
	return out
}

// givesPattern says whether an option may have the pattern as its value, so that no other
// word is it, or the name of a file. The letters may stand behind others (-ne.), long options
// may be shortened.
func givesPattern(option string) bool {
	if !strings.HasPrefix(option, "--") {
		return strings.HasPrefix(option, "-") && strings.ContainsAny(option, "ef")
	}
	return firstWith([]word{{text: option}}, "--reg", "--file", "--from", "--exclude-f", "--ignore-file") != ""
}

// pattern returns which argument is the pattern of a search, which is no path; -1 if
// there is none.
func pattern(name string, args []word) int {
	switch name {
	case "grep", "egrep", "fgrep", "rg", "jq":
	default:
		return -1
	}
	first := -1
	for i, a := range args {
		switch {
		case a.loose():
			return -1
		case givesPattern(a.text):
			return -1
		case first < 0 && !strings.HasPrefix(a.text, "-"):
			first = i
		}
	}
	// An option in front may have taken the word as its value.
	if first > 0 && len(args[first-1].text) == 2 && strings.ContainsAny(args[first-1].text[1:], "ABCmdDgtTjM") {
		return -1
	}
	return first
}

package cmdline

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// call lists a simple command and the commands that it runs.
func (w *walker) call(c *syntax.CallExpr, depth int, input *hereText) {
	first := len(w.out.Commands)
	listCall(w, c, depth, input)
	for i := first; i < len(w.out.Commands); i++ {
		if w.out.Commands[i].Effect != Reads {
			w.out.tree.changingCalls = append(w.out.tree.changingCalls, c)
			return
		}
	}
}

func listCall(w *walker, c *syntax.CallExpr, depth int, input *hereText) {
	var before []string // assignments as written
	var demands []string
	for _, a := range c.Assigns {
		before = append(before, w.source(a))
		if a.Index != nil || a.Array != nil || a.Name == nil {
			w.markUnresolved("it assigns to a list")
			w.listSubstitutions(a, depth)
			continue
		}
		if a.Value != nil {
			w.out.Values = append(w.out.Values, w.word(a.Value, depth).text)
		}
		if !harmlessVariable(a.Name.Value) || len(c.Args) == 0 {
			demands = append(demands, a.Name.Value+"=")
		}
	}
	if names := readNames(c); w.scope != nil && len(names) > 0 {
		w.read(c, names)
		return
	}
	words := make([]word, len(c.Args))
	for i, arg := range c.Args {
		words[i] = w.word(arg, depth)
	}
	if len(words) == 0 {
		if w.recordAssignments(c) {
			w.add(Command{Text: strings.Join(before, " "), Source: strings.Join(before, " "), Effect: Reads})
		} else if len(before) > 0 {
			w.markComputed("it sets a variable")
			w.add(Command{Text: strings.Join(before, " "), Source: strings.Join(before, " "), Why: "it sets a variable", Demands: demands})
		}
		return
	}
	w.command(run{words: words, before: before, demands: demands, depth: depth, input: input, source: w.source(c)})
}

// harmlessVariable reports whether an environment variable only changes how output looks.
func harmlessVariable(name string) bool {
	switch name {
	case "LANG", "TZ", "NO_COLOR", "CLICOLOR", "FORCE_COLOR", "COLUMNS", "LINES", "TERM":
		return true
	}
	return strings.HasPrefix(name, "LC_")
}

// run is a command to be listed.
type run struct {
	words            []word
	before           []string // assignments as written
	demands          []string
	depth            int
	input            *hereText // its standard input, if the program's text contains it
	appendsArguments bool      // unknown arguments are appended (xargs)
	source           string    // as written; empty for a command that a wrapper runs
}

// command lists a command and, if it is a wrapper, the command that it runs.
func (w *walker) command(r run) {
	first := r.words[0]
	texts := make([]string, len(r.words))
	for i, word := range r.words {
		texts[i] = word.text
	}
	c := Command{
		Name: first.text, Args: texts[1:],
		Text:    strings.Join(texts, " "),
		Demands: r.demands,
		Source:  r.source,
	}
	if len(r.before) > 0 {
		c.Text = strings.Join(r.before, " ") + " " + c.Text
	}
	if c.Source == "" {
		c.Source = c.Text
	}
	for _, word := range r.words {
		if b := word.possible; b != nil && !b.data && !b.status {
			c.Values = append(c.Values, b.values...)
		}
	}
	if !first.known || first.glob {
		w.markUnresolved("the name of a command is computed")
		c.Why = "the name of a command is computed"
		c.Forms = expandedTexts(r.words, &w.steps)
		c.setLosses(findLossesForValues(r.words, &w.steps))
		textLister{w}.listVariableCommand(r, &c)
		expansions{w}.judge(&c, r.words)
		w.add(c)
		return
	}
	for _, word := range r.words[1:] {
		if !word.known && word.possible == nil && first.text != "echo" && (first.text != "cd" || !word.top) {
			w.markComputed("some of its arguments are computed")
		}
	}
	j := r.assess(w)
	c.Effect, c.Why, c.Paths, c.Git, c.GitContents, c.Dir = j.effect, j.why, j.paths, j.git, j.contents, j.dir
	c.Forms = append(slices.Clip(j.forms), r.otherForms()...)
	if c.Effect != Reads {
		c.setLosses(findLossesForValues(r.words, &w.steps))
	}
	if len(r.demands) > 0 && c.Effect == Reads {
		c.Effect, c.Why = Unknown, "it sets "+strings.TrimSuffix(r.demands[0], "=")
	}
	if j.option != "" {
		c.Demands = append(slices.Clone(c.Demands), j.option)
	}
	listed := len(w.out.Commands)
	inner, ok := w.wrapper(r)
	if c.Effect == Unknown && (len(w.out.Commands) == listed || inner == runsTexts) && c.Destroys == "" && len(c.Deletes) == 0 {
		c.setLosses(findLossesInArguments(r.words, &w.steps))
	}
	if inner == runsUnknownText {
		c.setLosses(unknownTextLoss(first.text))
	}
	if ok {
		if programName(first.text) != first.text { // any program with that file name
			inner = opaque
		}
		// A wrapper has no key, and does what its command does.
		c.Key = ""
		if c.Effect == Unknown && inner == transparent && len(r.demands) == 0 {
			c.Effect, c.Why = Reads, ""
		}
	} else if len(r.demands) == 0 && j.option == "" && c.Destroys == "" && len(c.Deletes) == 0 {
		c.Key = j.key
	}
	switch {
	case c.Effect == Reads && w.loops > 0 && (first.text == "cd" || first.text == "pushd" || first.text == "popd"):
		w.markComputed("a loop changes the folder")
	case c.Effect != Reads && slices.ContainsFunc(r.words, func(word word) bool { return word.possible != nil }):
		w.markComputed("some of its arguments are computed")
	}
	expansions{w}.judge(&c, r.words)
	w.out.Data = w.out.Data || c.Effect == Reads && slices.ContainsFunc(c.Paths, func(path Path) bool { return path.Anywhere })
	w.add(c)
}

// otherForms returns a command as rules may name it: git without the options before its subcommand, and
// with the arguments that xargs appends.
func (r run) otherForms() (forms []string) {
	all := texts(r.words)
	if r.appendsArguments {
		forms = append(forms, strings.Join(all, " ")+" "+r.input.arguments())
	}
	if programName(all[0]) != "git" {
		return forms
	}
	sub := subcommand("git", r.words[1:])
	if at := slices.Index(all[1:], sub); sub != "" && at > 0 {
		forms = append(forms, strings.Join(append([]string{"git"}, all[at+1:]...), " "))
	}
	return forms
}

// programName returns the name of a program without its folder.
func programName(name string) string {
	if plainName(name, "+-_") {
		return name
	}
	return strings.TrimSuffix(path.Base(strings.ReplaceAll(name, `\`, "/")), ".exe")
}

// Kinds of wrappers.
type wrapperKind int

const (
	opaque          wrapperKind = iota // may do more than run the listed commands
	transparent                        // only runs the listed commands
	runsTexts                          // opaque, and the commands in its texts are listed
	runsUnknownText                    // opaque, and runs a text that is not known
)

// wrapper lists the commands that a command runs according to its arguments. ok reports whether it
// runs any.
func (w *walker) wrapper(r run) (kind wrapperKind, ok bool) {
	args := r.words[1:]
	name := programName(r.words[0].text)
	if isShell(name) {
		return w.shell(r, name), true
	}
	switch name {
	case "timeout", "nice", "nohup", "stdbuf", "time", "command", "builtin", "ionice", "setsid", "env", "sudo", "doas", "exec":
		own := parseWrapper(name, args)
		switch {
		case name == "command" && own.has("-v", "-V"):
			return opaque, false
		case own.hiddenOption, own.globValue, own.has("-S"), own.why != "" && own.mark == 0:
			w.markUnresolved("eca does not know what " + name + " runs")
		}
		if own.has("-S") {
			return textLister{w}.list(r), true
		}
		if len(own.operands) == 0 || own.hiddenOption {
			return opaque, true
		}
		w.inner(r, own.operands, false)
		if slices.Contains([]string{"setsid", "nohup", "sudo", "doas", "exec"}, name) || own.why != "" || own.assigns {
			return opaque, true
		}
		return transparent, true
	case "xargs":
		own := parseWrapper(name, args)
		replaced, rest := own.replacementText(), own.operands
		switch {
		case own.hiddenOption, own.globValue, own.why != "", replaced != "" && len(rest) > 0 && (strings.Contains(rest[0].text, replaced) || !safeForAnyArgs(rest[0].text)):
			w.markUnresolved("eca does not know what xargs runs")
			if slices.ContainsFunc(rest, func(word word) bool {
				return replaced != "" && word.text == replaced && (isShell(rest[0].text) || word.from == rest[0].from)
			}) && !r.input.known() {
				return runsUnknownText, true
			}
			return textLister{w}.list(r), true
		case len(rest) == 0:
			return transparent, true // echo
		}
		w.inner(r, rest, true)
		inner := &w.out.Commands[len(w.out.Commands)-1]
		inner.HiddenOption = inner.HiddenOption || expansions{w}.hidesOption(append(slices.Clip(rest), word{}))
		return transparent, true
	case "find":
		return w.find(r)
	case "git":
		return textLister{w}.gitWrapper(r)
	case "eval":
		text, known := joinArguments(args)
		if !known {
			w.markUnresolved("it evaluates a text that is computed")
			return textLister{w}.list(r), true
		}
		if stmts := w.text(text, r.depth+1, false); len(args) == 1 {
			w.nest(args[0].from, nestedText{stmts: stmts})
		} else if w.out.tree != nil {
			w.out.tree.unprintable = "it evaluates a text of several words"
		}
		return transparent, true
	case "source", ".", "parallel", "watch", "ssh", "su", "pkexec", "runuser", "chroot", "unshare", "nsenter", "strace", "script", "flock", "busybox", "chrt", "trap", "alias", "enable", "hash", "mapfile", "readarray", "complete", "coproc":
		w.markUnresolved(name + " runs texts")
		return textLister{w}.list(r), true
	}
	return opaque, false
}

// inner lists the command that a wrapper runs.
func (w *walker) inner(r run, words []word, loose bool) {
	if r.depth > maxNesting {
		w.markUnresolved("it is nested too deep")
		return
	}
	w.command(run{words: words, demands: []string{}, depth: r.depth + 1, input: r.input, appendsArguments: loose || r.appendsArguments})
	last := &w.out.Commands[len(w.out.Commands)-1]
	last.Demands = append(slices.Clone(last.Demands), programName(words[0].text))
}

// wrapperWords are the arguments of a wrapper. The operands are the command that it runs.
type wrapperWords struct {
	parsedWords
	assigns bool // it sets variables first
}

// parseWrapper parses the arguments of a wrapper. After an unknown option, the command that is
// found may not be the one that runs; it is listed, and the option is refused.
func parseWrapper(name string, args []word) wrapperWords {
	p, _ := wrapperOptions(name)
	own := wrapperWords{parsedWords: p.parse(args)}
	switch name {
	case "timeout": // its first operand is the duration
		own.dropLeading(func(w word) bool { return true }, 1)
	case "env", "sudo", "doas":
		own.dropLeading(func(w word) bool {
			if name == "env" && w.text == "-" { // the same as env -i
				own.refuse(w, doesMore, "takes the environment away")
				return true
			}
			variable, _, sets := strings.Cut(w.text, "=")
			own.assigns = own.assigns || sets && !harmlessVariable(variable)
			return sets
		}, len(own.operands))
	}
	return own
}

// dropLeading removes leading operands that precede the command, up to a limit. A computed word may become
// any number of operands.
func (o *wrapperWords) dropLeading(precedes func(word) bool, limit int) {
	for ; limit > 0 && len(o.operands) > 0 && precedes(o.operands[0]); limit-- {
		if o.operands[0].mayBecomeOption() || o.operands[0].glob {
			o.hiddenOption = true
		}
		o.operands = o.operands[1:]
	}
}

// replacementText returns the text that xargs -I replaces in the arguments of its command; empty if xargs
// appends its input instead.
func (o *wrapperWords) replacementText() (text string) {
	for _, option := range o.options {
		if option.name == "-I" {
			text = option.value
		}
	}
	return text
}

// find lists the commands that -exec, -execdir, -ok and -okdir run.
func (w *walker) find(r run) (wrapperKind, bool) {
	args := r.words[1:]
	found := false
	if slices.ContainsFunc(args, func(arg word) bool {
		return arg.possible != nil && slices.ContainsFunc(arg.possible.values, isExecDelimiter)
	}) {
		w.markUnresolved("eca does not know what find runs")
		return opaque, true
	}
	for i := 0; i < len(args); i++ {
		switch args[i].text {
		case "-exec", "-execdir", "-ok", "-okdir":
			end := commandEnd(args, i+1)
			if end <= i+1 {
				w.markUnresolved("eca does not know what find runs")
				return opaque, true
			}
			w.inner(r, args[i+1:end], true)
			found, i = true, end
		}
	}
	return opaque, found
}

// isExecDelimiter reports whether a word begins or ends a command in the arguments of find.
func isExecDelimiter(value string) bool {
	return slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir", ";", "+", "{}"}, value)
}

// shell lists the commands of a program that a shell gets as an argument or on standard input.
func (w *walker) shell(r run, name string) wrapperKind {
	args := r.words[1:]
	supported := name == "sh" || name == "bash" || name == "dash"
	var text, flags string
	login := false
	from, script := (*syntax.Word)(nil), len(args) == 0
	if r.input != nil {
		text, from = r.input.text, r.input.from
	}
	if len(args) > 0 {
		option := args[0]
		var ok bool
		flags, ok = strings.CutSuffix(strings.TrimPrefix(option.text, "-"), "c")
		login = strings.Contains(flags, "l")
		flags = strings.ReplaceAll(flags, "l", "")
		if option.mayBecomeOption() || !strings.HasPrefix(option.text, "-") || !ok || strings.Trim(flags, "eux") != "" || len(args) == 1 || !args[1].known || args[1].glob {
			text = computedInput
		} else {
			text, from = args[1].text, args[1].from
		}
	} else if r.input == nil || r.input.piped {
		text = computedInput
	}
	if text == computedInput {
		w.markUnresolved(name + " runs a program whose text eca does not know")
		return textLister{w}.list(r)
	}
	before := w.out
	w.out.Unresolved, w.out.Computed = "", ""
	stmts := w.text(text, r.depth+1, true)
	inner := w.out
	w.out.Unresolved, w.out.Computed = cmp.Or(before.Unresolved, inner.Unresolved), cmp.Or(before.Computed, inner.Computed)
	if login {
		inner.Commands, inner.Writes = inner.Commands[len(before.Commands):], inner.Writes[len(before.Writes):]
		if reads, _ := inner.Reads(); reads { // print it without -l
			w.out.tree.replaceOption(args[0].from, "-"+flags+"c")
		}
		w.markUnresolved(name + " -l first runs the start-up files of a login shell")
	}
	w.nest(from, nestedText{stmts: stmts, posix: name != "bash", script: script})
	if !supported {
		w.markUnresolved("eca does not know what " + name + " runs: it is another shell")
		return opaque
	}
	if r.appendsArguments {
		return opaque
	}
	return transparent
}

// joinArguments returns the text that eval builds from its arguments.
func joinArguments(args []word) (string, bool) {
	texts := make([]string, len(args))
	for i, a := range args {
		if !a.known || a.glob {
			return "", false
		}
		texts[i] = a.text
	}
	return strings.Join(texts, " "), true
}

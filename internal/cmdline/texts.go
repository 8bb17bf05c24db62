package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Some commands run shell code from their arguments or their input (here called a text) in ways
// that eca does not follow exactly: a shell that reads a pipe, su -c, parallel. A Program with such
// a command stays Unresolved. If eca knows the text, it lists the commands in it nevertheless, so
// that rules and warnings apply to them.

// textLister lists the commands in such texts.
type textLister struct{ *walker }

// hereText is standard input that the program's text contains or a command prints.
type hereText struct {
	text  string       // computedInput if it is not known
	from  *syntax.Word // the delimiter of the here-document, or the here-string
	piped bool         // the command does not redirect its input itself; from is nil
}

func isShell(name string) bool {
	switch programName(name) {
	case "sh", "bash", "dash", "zsh", "ksh", "ash", "fish":
		return true
	}
	return false
}

// known reports whether the text is known.
func (h *hereText) known() bool { return h != nil && h.text != computedInput }

// arguments returns the text as xargs appends it to its command, or some word if the text is not known.
func (h *hereText) arguments() string {
	if !h.known() {
		return "x"
	}
	return strings.Join(strings.Fields(h.text), " ")
}

// inherited returns the standard input that a group passes to its commands.
func (h *hereText) inherited() *hereText {
	if h == nil {
		return nil
	}
	return &hereText{text: h.text, piped: true}
}

// list lists the commands in the texts that a command may run: its arguments of several words, and
// its standard input. It returns runsUnknownText if eca does not know such a text.
func (w textLister) list(r run) wrapperKind {
	kind, name := runsTexts, programName(r.words[0].text)
	args := r.words[1:]
	readsInput := len(args) == 0 || isShell(args[len(args)-1].text)
	operands := false
	for i, arg := range args {
		option := args[max(i-1, 0)].text // one that ends with c or S takes a text: sh -c, env -S
		expected := name == "eval" || strings.HasPrefix(option, "-") && strings.ContainsAny(option[len(option)-1:], "cS")
		if values, known := arg.possibleTexts(); known {
			for _, text := range values {
				if text = withoutOption(text, name); strings.ContainsAny(text, " \t\n") {
					w.text(text, r.depth+1, true)
				}
			}
		} else if expected || arg.printedByCommand() && (isShell(name) || name == "source" || name == ".") {
			kind = runsUnknownText
		}
		operands = operands || !strings.HasPrefix(arg.text, "-")
		readsInput = readsInput || isShell(name) && slices.Contains([]string{"-", "-s", "/dev/stdin"}, arg.text)
	}
	last := args[max(len(args)-1, 0):]
	switch {
	case r.appendsArguments && len(last) > 0 && isShell(name) && strings.HasPrefix(last[0].text, "-"):
		kind = runsUnknownText // xargs appends the text after the option, as in xargs sh -c
	case r.input.known():
		w.text(r.input.text, r.depth+1, true)
	case r.input != nil && (readsInput || !operands || name == "su" || name == "runuser"):
		kind = runsUnknownText
	}
	return kind
}

// possibleTexts returns the possible values of a word, if they are known.
func (a word) possibleTexts() (values []string, known bool) {
	if a.known {
		return []string{a.text}, true
	}
	if b := a.possible; b != nil && !b.data && !b.status {
		return b.values, true
	}
	return nil, false
}

// printedByCommand reports whether a word begins with a process substitution: <(...).
func (a word) printedByCommand() bool {
	_, is := a.from.Parts[0].(*syntax.ProcSubst)
	return is
}

// withoutOption removes an option before a text, as in -S'rm x', --command='rm x', or alias 'x=rm y'.
func withoutOption(text, name string) string {
	head, value, cut := strings.Cut(text, "=")
	if i := strings.IndexAny(text, "cS"); strings.HasPrefix(text, "-") && !strings.HasPrefix(text, "--") && i > 0 {
		return text[i+1:]
	}
	if cut && !strings.Contains(head, " ") && (name == "alias" || strings.HasPrefix(text, "--")) {
		return value
	}
	return text
}

// listVariableCommand lists the command in the value of a variable, if command c consists of that variable and
// arguments: x='rm y'; $x.
func (w textLister) listVariableCommand(r run, c *Command) {
	parts := r.words[0].from.Parts
	p, ok := parts[0].(*syntax.ParamExp)
	if !ok || len(parts) > 1 || !isPlainVariable(p) {
		return
	}
	b, unknown := w.variable(p, 0)
	if b.data { // the value comes from the input or the output of a command
		c.setLosses(unknownTextLoss(c.Name))
	}
	if unknown != "" || b.data || b.status {
		return
	}
	for _, value := range b.values {
		if splits(value) {
			w.text(value+" "+strings.Join(texts(r.words[1:]), " "), r.depth+1, true)
		}
	}
}

// unknownTextLoss returns the loss that a command causes by running a text that eca does not know.
func unknownTextLoss(name string) loss {
	return loss{why: "eca does not know the text that " + name + " runs"}
}

// findLossesInTexts returns the losses that the commands in a shell's arguments cause.
func findLossesInTexts(args []word) (all loss) {
	for _, arg := range args {
		if !arg.known || !strings.Contains(arg.text, " ") {
			continue
		}
		for _, c := range Parse(arg.text).Commands {
			all.add(loss{c.Destroys, c.Deletes, c.Discards})
		}
	}
	return all
}

// outputOf returns what a statement prints, as the standard input of the next command of a pipe.
func (w textLister) outputOf(s *syntax.Stmt) *hereText {
	out := &hereText{text: computedInput, piped: true}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if pipe, is := s.Cmd.(*syntax.BinaryCmd); is && (pipe.Op == syntax.Pipe || pipe.Op == syntax.PipeAll) {
		call, ok = pipe.Y.Cmd.(*syntax.CallExpr)
	}
	if !ok || len(call.Args) == 0 {
		return out
	}
	name := constant(call.Args[0])
	switch name {
	case "cat", "tee":
		if (name == "tee" || len(call.Args) == 1) && w.lastInput.known() {
			out.text = w.lastInput.text
		}
		return out
	case "echo", "printf":
	default:
		return out
	}
	var words []string
	for _, arg := range call.Args[1:] {
		b, unknown := w.valuesOf(arg, 0)
		if unknown != "" || b.data || b.status || len(b.values) != 1 {
			return out
		}
		words = append(words, b.values[0])
	}
	lines := strings.NewReplacer(`\n`, "\n", `\t`, "\t")
	if name == "echo" {
		for len(words) > 0 && slices.Contains([]string{"-e", "-n", "-E", "-en", "-ne"}, words[0]) {
			words = words[1:]
		}
		out.text = lines.Replace(strings.Join(words, " "))
	} else if len(words) > 0 {
		out.text = formatPrintf(lines.Replace(strings.NewReplacer("%b", "%s", "%q", "%s").Replace(words[0])), words[1:])
	}
	return out
}

// formatPrintf returns what printf prints, except for conversions other than %s.
func formatPrintf(format string, args []string) string {
	parts := strings.Split(format, "%s")
	var b strings.Builder
	for first := true; first || len(args) > 0 && len(parts) > 1; first = false {
		for i, part := range parts {
			b.WriteString(part)
			if i+1 < len(parts) && len(args) > 0 {
				b.WriteString(args[0])
				args = args[1:]
			}
		}
	}
	return b.String()
}

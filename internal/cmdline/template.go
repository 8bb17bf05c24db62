package cmdline

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Template is the command of a custom tool: a shell line with placeholders {{name}} for arguments.
// Arguments never become part of the line. They are passed in environment variables, and the line
// refers to these with the quotes that each position needs.
type Template struct {
	text         string // with marks in place of {{name}}
	placeholders []placeholder
}

// placeholder is a {{name}} in the text.
type placeholder struct {
	at       int // offset of its mark in text
	name     string
	position position
	// first is true if the placeholder begins a word before any --, where a value with a leading dash
	// would be an option.
	first bool
}

// position is the position of a placeholder relative to words and quotes.
type position int

const (
	ownWord  position = iota + 1 // a whole word
	inWord                       // an unquoted part of a word
	inDouble                     // in double quotes
	inSingle                     // in single quotes
)

const (
	marker      = "ECAHOLE" // a mark, which has no special characters
	maxArgument = 100 << 10 // bytes of one argument; operating systems have a similar limit
)

var errPosition = errors.New("an argument cannot be passed there safely: put {{...}} in place of a word of a command, or in quotes")

// ParseTemplate parses a line. It returns an error if an argument could become code.
func ParseTemplate(line string) (*Template, error) {
	t := &Template{}
	var b strings.Builder
	at := 0
	for _, m := range regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_-]*)\s*\}\}`).FindAllStringSubmatchIndex(line, -1) {
		b.WriteString(line[at:m[0]])
		t.placeholders = append(t.placeholders, placeholder{at: b.Len(), name: line[m[2]:m[3]]})
		b.WriteString(marker)
		at = m[1]
	}
	b.WriteString(line[at:])
	t.text = b.String()
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(t.text), "")
	if err != nil {
		return nil, fmt.Errorf("the command is not a valid shell line: %w", err)
	}
	if len(t.placeholders) == 0 {
		return t, nil
	}
	if err := t.locateAll(file); err != nil {
		return nil, err
	}
	for _, h := range t.placeholders {
		if h.position == 0 {
			return nil, fmt.Errorf("{{%s}}: %w", h.name, errPosition)
		}
	}
	for _, c := range Parse(t.text).Commands {
		if err := checkCommand(c); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// checkCommand returns an error if an argument determines which program runs: through a program that
// runs another one, through a variable, or as the script that a shell reads.
func checkCommand(c Command) error {
	hasMarker := func(text string) bool { return strings.Contains(text, marker) }
	for _, form := range append(slices.Clone(c.Forms), c.Name) {
		if name, _, _ := strings.Cut(form, " "); hasMarker(name) {
			return errors.New("an argument cannot determine which program runs, also not through another program or a variable")
		}
	}
	name := programName(c.Name)
	if runsOperand(name) && slices.ContainsFunc(c.Args, hasMarker) {
		return fmt.Errorf("an argument may determine which program %s runs; write a script and pass the arguments to that", name)
	}
	args := make([]word, len(c.Args))
	for i, a := range c.Args {
		args[i] = word{text: a, known: true}
	}
	if p, _ := wrapperOptions(name); name == "env" && p.parse(args).has("-S") && slices.ContainsFunc(c.Args, hasMarker) {
		return errors.New("an argument cannot be part of a command line of env -S")
	}
	if option, values := runnerOptions(name, args); slices.ContainsFunc(values, hasMarker) {
		return fmt.Errorf("an argument cannot be part of %s of %s, which runs a program", option, name)
	}
	if readsScript(name) && !slices.ContainsFunc(c.Args, func(a string) bool { return !strings.HasPrefix(a, "-") }) {
		return fmt.Errorf("arguments could become code of %s, which reads its script from another command or a file", name)
	}
	return nil
}

// runsOperand reports whether a program runs one of its operands. Those of wrapperOptions, whose options
// are known, are not among them.
func runsOperand(name string) bool {
	return slices.Contains([]string{"busybox", "chroot", "chrt", "dbus-run-session", "entr", "expect", "firejail", "bwrap", "flock", "gdb", "ltrace", "nsenter", "pkexec", "prlimit", "rlwrap", "runuser", "script", "setarch", "start-stop-daemon", "strace", "systemd-run", "taskset", "toybox", "unbuffer", "unshare", "valgrind"}, name)
}

// readsScript reports whether a program without operands reads a script from standard input.
func readsScript(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "fish", "python", "perl", "ruby", "node", "php", "lua"}, name)
}

// Names returns the names of the placeholders, in the order of the line.
func (t *Template) Names() []string {
	out := make([]string, len(t.placeholders))
	for i, h := range t.placeholders {
		out[i] = h.name
	}
	return out
}

// locateAll sets the positions of the placeholders in words of commands, assigned values and
// redirections. Placeholders anywhere else keep the zero place.
func (t *Template) locateAll(file *syntax.File) error {
	var wrong error
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			if err := t.checkCall(n); err != nil && wrong == nil {
				wrong = err
			}
			options := true
			for i, w := range n.Args {
				t.locateInWord(w, ownWord)
				if at := t.startOf(w); at != nil && i == 0 {
					wrong = cmp.Or(wrong, fmt.Errorf("{{%s}}: an argument cannot determine which program runs", at.name))
				} else if at != nil {
					at.first = options
				}
				options = options && w.Lit() != "--"
			}
			for _, a := range n.Assigns {
				if a.Value != nil && a.Index == nil && a.Array == nil {
					t.locateInWord(a.Value, inWord) // with several words, the second would be a command
				}
			}
		case *syntax.Redirect:
			if n.Hdoc == nil {
				t.locateInWord(n.Word, inWord)
			}
		}
		return wrong == nil
	})
	return wrong
}

// startOf returns the placeholder at the beginning of a word; nil for other words.
func (t *Template) startOf(w *syntax.Word) *placeholder {
	at := int(w.Pos().Offset()) //nolint:gosec // an offset of a line
	for i := range t.placeholders {
		if h := &t.placeholders[i]; h.at == at || h.at == at+1 && (t.text[at] == '"' || t.text[at] == '\'') {
			return h
		}
	}
	return nil
}

// locateInWord sets the positions of the placeholders in a word. A placeholder that is the whole word
// gets the place alone.
func (t *Template) locateInWord(w *syntax.Word, alone position) {
	for _, part := range w.Parts {
		switch part := part.(type) {
		case *syntax.Lit:
			where := inWord
			if len(w.Parts) == 1 && part.Value == marker {
				where = alone
			}
			t.locateInNode(part, where)
		case *syntax.SglQuoted:
			if !part.Dollar {
				t.locateInNode(part, inSingle)
			}
		case *syntax.DblQuoted:
			if part.Dollar {
				continue
			}
			for _, inner := range part.Parts {
				if lit, ok := inner.(*syntax.Lit); ok {
					t.locateInNode(lit, inDouble)
				}
			}
		}
	}
}

func (t *Template) locateInNode(n syntax.Node, where position) {
	from, to := int(n.Pos().Offset()), int(n.End().Offset()) //nolint:gosec // offsets of a line
	for i := range t.placeholders {
		if h := &t.placeholders[i]; h.at >= from && h.at+len(marker) <= to {
			h.position = where
		}
	}
}

// checkCall returns an error if a program would take an argument for code. Programs that run scripts
// may get arguments as whole words, which they pass to the script.
func (t *Template) checkCall(c *syntax.CallExpr) error {
	has := func(w *syntax.Word) (some, whole bool) {
		from, to := int(w.Pos().Offset()), int(w.End().Offset()) //nolint:gosec // offsets of a line
		text := t.text[from:to]
		return strings.Contains(text, marker), slices.Contains([]string{marker, `"` + marker + `"`, "'" + marker + "'"}, text)
	}
	worst := ""
	for i, w := range c.Args {
		name := w.Lit()
		if name != "." {
			name = path.Base(name)
		}
		switch {
		case w.Lit() == "", name == "." && i > 0: // a folder
		case slices.Contains([]string{"eval", "ssh", "source", ".", "trap", "su", "parallel", "watch", "alias"}, name):
			worst = name
			for _, other := range c.Args {
				if some, _ := has(other); some {
					return fmt.Errorf("arguments would become code of %s; write a script and pass them to that", name)
				}
			}
		case runsCode(name):
			worst = name
		}
	}
	if worst == "" {
		return nil
	}
	code := false
	for _, w := range c.Args {
		some, whole := has(w)
		if some && (!whole || code) {
			return fmt.Errorf("arguments would become code of %s; pass them after it, each as a word: sh -c 'echo \"$1\"' name {{argument}}", worst)
		}
		lit := w.Lit()
		flag := strings.HasPrefix(lit, "-")
		switch {
		case slices.Contains([]string{"awk", "gawk", "mawk", "sed"}, path.Base(lit)):
			code = true // their first argument is code
		case flag && !strings.HasPrefix(lit, "--") && len(lit) <= 4 && strings.ContainsAny(lit[len(lit)-1:], "ceEr"):
			code = true
		case !flag:
			code = false
		}
	}
	return nil
}

// runsCode reports whether a program takes code among its arguments.
func runsCode(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	return slices.Contains([]string{"sh", "bash", "zsh", "dash", "ksh", "fish", "python", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "mawk", "sed", "osascript", "powershell", "pwsh", "psql", "sqlite", "mysql", "jq", "find", "xargs"}, name)
}

// Fill returns the line to run for some arguments, and the environment variables that it needs.
func (t *Template) Fill(args map[string]json.RawMessage) (line string, env []string, err error) {
	line, err = t.fill(args, func(h placeholder, value string) string {
		name := fmt.Sprintf("ECA_ARG_%d", len(env)+1)
		env = append(env, name+"="+value)
		switch h.position {
		case inDouble:
			return "${" + name + "}"
		case inSingle:
			return `'"${` + name + `}"'`
		}
		return `"${` + name + `}"`
	})
	return line, env, err
}

// Literal returns a line with the quoted arguments in it. It does the same as the line of Fill, and
// can be judged by its text.
func (t *Template) Literal(args map[string]json.RawMessage) (string, error) {
	return t.fill(args, func(h placeholder, value string) string {
		quoted := "'" + strings.ReplaceAll(value, "'", `'\''`) + "'"
		switch h.position {
		case inDouble:
			return `"` + quoted + `"`
		case inSingle:
			return strings.TrimSuffix(strings.TrimPrefix(quoted, "'"), "'")
		}
		return quoted
	})
}

// fill replaces each placeholder with the text that write returns for its value. It returns an error if a
// value would become an option of the command.
func (t *Template) fill(args map[string]json.RawMessage, write func(h placeholder, value string) string) (string, error) {
	var b strings.Builder
	at := 0
	for _, h := range t.placeholders {
		b.WriteString(t.text[at:h.at])
		at = h.at + len(marker)
		values, err := values(args[h.name])
		if err != nil {
			return "", fmt.Errorf("INVALID_ARGS: %s: %w", h.name, err)
		}
		if h.position != ownWord {
			values = []string{strings.Join(values, " ")}
		}
		for i, v := range values {
			if h.first && strings.HasPrefix(v, "-") && v != "-" && v != "--" {
				return "", fmt.Errorf("INVALID_ARGS: %s: %.40q begins with a dash, so the command would take it for an option", h.name, v)
			}
			if i > 0 {
				b.WriteByte(' ')
			}
			b.WriteString(write(h, v))
		}
	}
	return b.String() + t.text[at:], nil
}

// Values returns the values of the placeholders, in the order of the line.
func (t *Template) Values(args map[string]json.RawMessage) []string {
	out := []string{}
	for _, h := range t.placeholders {
		words, err := values(args[h.name])
		if err == nil {
			out = append(out, words...)
		}
	}
	return out
}

// values returns an argument as words: the elements of a list, nothing if it is missing, otherwise a
// single word. Values other than strings are written as JSON.
func values(raw json.RawMessage) ([]string, error) {
	var list []json.RawMessage
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return nil, nil
	case json.Unmarshal(raw, &list) != nil:
		list = []json.RawMessage{raw}
	}
	out := make([]string, len(list))
	for i, one := range list {
		if json.Unmarshal(one, &out[i]) != nil {
			out[i] = string(one)
		}
		if strings.ContainsRune(out[i], 0) {
			return nil, errors.New("it has a zero byte")
		}
		if len(out[i]) > maxArgument {
			return nil, fmt.Errorf("it is longer than %d bytes; write it to a file and pass that", maxArgument)
		}
	}
	return out, nil
}

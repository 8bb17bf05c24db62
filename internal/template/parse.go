package template

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// node is a part of a template: text, output, choice or loop.
type node interface{ isNode() }

type (
	text   string
	output struct {
		value   operand
		filters []filter
	}
	// choice renders the first branch whose condition holds.
	choice struct{ branches []branch }
	branch struct {
		condition condition // nil for else
		body      []node
	}
	loop struct {
		name  string
		list  operand
		body  []node
		empty []node
	}
)

func (text) isNode()   {}
func (output) isNode() {}
func (choice) isNode() {}
func (loop) isNode()   {}

// operand is a variable, or a constant if name is empty.
type operand struct {
	name     string
	constant any // string, int or bool
}

// parser parses one template.
type parser struct {
	remaining string
	line      int
	names     map[string]bool // of the variables that it uses
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", p.line, fmt.Sprintf(format, args...))
}

// skip advances by n bytes.
func (p *parser) skip(n int) string {
	piece := p.remaining[:n]
	p.line += strings.Count(piece, "\n")
	p.remaining = p.remaining[n:]
	return piece
}

// block parses nodes up to the end of the template or a tag that ends or divides blocks, which it
// returns.
func (p *parser) block(depth int) (nodes []node, end string, err error) {
	if depth > maxNesting {
		return nil, "", p.errorf("more than %d blocks within each other", maxNesting)
	}
	for p.remaining != "" {
		at, kind := nextMark(p.remaining)
		if at > 0 {
			nodes = append(nodes, text(p.skip(at)))
		}
		if kind == "" {
			continue
		}
		inside, err := p.mark(kind)
		if err != nil {
			return nil, "", err
		}
		switch kind {
		case "{{":
			out, err := p.output(inside)
			if err != nil {
				return nil, "", err
			}
			nodes = append(nodes, out)
		case "{%":
			n, end, err := p.tag(inside, depth)
			if err != nil || end != "" {
				return nodes, end, err
			}
			if n != nil {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes, "", nil
}

// nextMark finds the next {{, {% or {#; if it finds no mark, at is the end of the text.
func nextMark(s string) (at int, kind string) {
	for i := 0; ; i++ {
		next := strings.IndexByte(s[i:], '{')
		if next < 0 || i+next+1 >= len(s) {
			return len(s), ""
		}
		i += next
		switch s[i+1] {
		case '{', '%', '#':
			return i, s[i : i+2]
		}
	}
}

// mark returns the text between a mark and its end. Ends in quotes are skipped.
func (p *parser) mark(kind string) (string, error) {
	end := map[string]string{"{{": "}}", "{%": "%}", "{#": "#}"}[kind]
	quoted := false
	for i := 2; i+2 <= len(p.remaining); i++ {
		switch {
		case kind != "{#" && p.remaining[i] == '"':
			quoted = !quoted
		case !quoted && p.remaining[i:i+2] == end:
			inside := p.remaining[2:i]
			if strings.Contains(inside, "\n") && kind == "{{" {
				return "", p.errorf("%s goes on to the next line", kind)
			}
			p.skip(i + 2)
			return strings.TrimSpace(inside), nil
		}
	}
	return "", p.errorf("%s without %s", kind, end)
}

// tag parses a tag and its block; or it returns the tag, if that ends or divides the enclosing
// block.
func (p *parser) tag(inside string, depth int) (n node, end string, err error) {
	name := ""
	if words := strings.Fields(inside); len(words) > 0 {
		name = words[0]
	}
	rest := strings.TrimSpace(strings.TrimPrefix(inside, name))
	switch name {
	case "if", "ifequal", "ifunequal":
		n, err = p.choice(name, rest, depth)
	case "for":
		n, err = p.loop(rest, depth)
	case "comment", "verbatim":
		var raw string
		if raw, err = p.raw("end" + name); name == "verbatim" && err == nil {
			n = text(raw)
		}
	case "safe", "endsafe": // values are never escaped
	case "else", "elif", "empty", "endif", "endifequal", "endifunequal", "endfor", "endcomment", "endverbatim":
		return nil, inside, nil
	default:
		err = p.errorf("there is no tag %q", name)
	}
	return n, "", err
}

// raw returns the literal text up to an end tag.
func (p *parser) raw(end string) (string, error) {
	for from := 0; ; {
		i := strings.Index(p.remaining[from:], "{%")
		if i < 0 {
			return "", p.errorf("{%% %s %%} is missing", end)
		}
		i += from
		close := strings.Index(p.remaining[i:], "%}")
		if close >= 0 && strings.TrimSpace(p.remaining[i+2:i+close]) == end {
			raw := p.remaining[:i]
			p.skip(i + close + 2)
			return raw, nil
		}
		from = i + 2
	}
}

// choice parses the branches of an if.
func (p *parser) choice(name, rest string, depth int) (node, error) {
	first, err := p.condition(rest)
	if name != "if" {
		first, err = p.equality(rest, name == "ifequal")
	}
	if err != nil {
		return nil, err
	}
	c := choice{}
	for cond := first; ; {
		body, end, err := p.block(depth + 1)
		if err != nil {
			return nil, err
		}
		c.branches = append(c.branches, branch{cond, body})
		word, more, _ := strings.Cut(end, " ")
		last := cond == nil && len(c.branches) > 1 // an else
		switch {
		case word == "end"+name:
			return c, nil
		case end == "":
			return nil, p.errorf("{%% end%s %%} is missing", name)
		case word == "else" && more == "" && !last:
			cond = nil
		case word == "elif" && name == "if" && !last:
			if cond, err = p.condition(more); err != nil {
				return nil, err
			}
		default:
			return nil, p.errorf("{%% %s %%} does not belong here", end)
		}
	}
}

func (p *parser) equality(rest string, equal bool) (condition, error) {
	w, err := p.words(rest)
	if err != nil {
		return nil, err
	}
	if len(w) != 2 {
		return nil, p.errorf("ifequal and ifunequal compare two values, not %d", len(w))
	}
	a, errA := p.operand(w[0])
	b, errB := p.operand(w[1])
	if errA != nil || errB != nil {
		return nil, p.errorf("%q cannot be compared", rest)
	}
	op := "="
	if !equal {
		op = "!="
	}
	return comparison{a, op, b}, nil
}

// loop parses a for.
func (p *parser) loop(rest string, depth int) (node, error) {
	w := strings.Fields(rest)
	if len(w) != 3 || w[1] != "in" || !isName(w[0]) {
		return nil, p.errorf("a loop is {%% for NAME in LIST %%}, not %q", rest)
	}
	list, err := p.operand(w[2])
	if err != nil {
		return nil, err
	}
	l := loop{name: w[0], list: list}
	body, end, err := p.block(depth + 1)
	if err != nil {
		return nil, err
	}
	l.body = body
	if end == "empty" {
		if l.empty, end, err = p.block(depth + 1); err != nil {
			return nil, err
		}
	}
	if end != "endfor" {
		return nil, p.errorf("{%% endfor %%} is missing")
	}
	return l, nil
}

// output parses {{ value|filter:argument }}.
func (p *parser) output(inside string) (node, error) {
	pieces := splitOutside(inside, '|')
	value, err := p.operand(strings.TrimSpace(pieces[0]))
	if err != nil {
		return nil, err
	}
	out := output{value: value}
	for _, piece := range pieces[1:] {
		args := splitOutside(strings.TrimSpace(piece), ':')
		f := filter{name: strings.TrimSpace(args[0])}
		for _, a := range args[1:] {
			arg, err := p.operand(strings.TrimSpace(a))
			if err != nil {
				return nil, err
			}
			f.args = append(f.args, arg)
		}
		if !f.exists() {
			return nil, p.errorf("there is no filter %q with %d arguments", f.name, len(f.args))
		}
		out.filters = append(out.filters, f)
	}
	return out, nil
}

// splitOutside splits at a separator that is not in quotes.
func splitOutside(s string, sep byte) []string {
	var out []string
	quoted, from := false, 0
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// words splits at white space that is not in quotes.
func (p *parser) words(s string) ([]string, error) {
	var out []string
	quoted, from := false, -1
	for i, r := range s {
		switch {
		case r == '"':
			quoted = !quoted
			if from < 0 {
				from = i
			}
		case unicode.IsSpace(r) && !quoted:
			if from >= 0 {
				out = append(out, s[from:i])
			}
			from = -1
		case from < 0:
			from = i
		}
	}
	if quoted {
		return nil, p.errorf("a quote is not closed in %q", s)
	}
	if from >= 0 {
		out = append(out, s[from:])
	}
	return out, nil
}

// operand parses a name, a number, a boolean or a text in quotes.
func (p *parser) operand(s string) (operand, error) {
	if n := len(s); n >= 2 && s[0] == '"' && s[n-1] == '"' && !strings.Contains(s[1:n-1], `"`) {
		return operand{constant: s[1 : n-1]}, nil
	}
	switch s {
	case "true", "false":
		return operand{constant: s == "true"}, nil
	}
	if n, ok := number(s); ok {
		return operand{constant: n}, nil
	}
	if !isName(s) {
		return operand{}, p.errorf("%q is neither a name nor a value", s)
	}
	p.names[s] = true
	return operand{name: s}, nil
}

// number parses an integer of limited size.
func number(s string) (int, bool) {
	digits, n := strings.TrimPrefix(s, "-"), 0
	if digits == "" || len(digits) > 9 {
		return 0, false
	}
	for _, r := range digits {
		if r < '0' || r > '9' {
			return 0, false
		}
		n = n*10 + int(r-'0')
	}
	if digits != s {
		n = -n
	}
	return n, true
}

// isName reports whether a word can be the name of a variable: letters, digits, _ - and ., not
// beginning with a digit or a hyphen.
func isName(s string) bool {
	first, _ := utf8.DecodeRuneInString(s)
	if !unicode.IsLetter(first) && first != '_' || slices.Contains([]string{"and", "or", "not", "in"}, s) {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r)
	})
}

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

// syntaxError is the error of a template. The parser panics with it, and Parse returns it.
type syntaxError struct{ error }

// fail ends the parsing with an error.
func (p *parser) fail(format string, args ...any) {
	panic(syntaxError{fmt.Errorf("line %d: %s", p.line, fmt.Sprintf(format, args...))})
}

// catch recovers from fail, and sets err to its error.
func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case syntaxError:
		*err = p.error
	default:
		panic(p)
	}
}

// skip advances by n bytes.
func (p *parser) skip(n int) string {
	piece := p.remaining[:n]
	p.line += strings.Count(piece, "\n")
	p.remaining = p.remaining[n:]
	return piece
}

// block parses nodes until the template ends, or until a tag that ends or divides a block. It returns
// the nodes and that tag.
func (p *parser) block(depth int) (nodes []node, end string) {
	if depth > maxNesting {
		p.fail("more than %d blocks within each other", maxNesting)
	}
	for p.remaining != "" {
		at, kind := nextMark(p.remaining)
		if at > 0 {
			nodes = append(nodes, text(p.skip(at)))
		}
		if kind == "" {
			continue
		}
		content := p.markContent(kind)
		switch kind {
		case "{{":
			nodes = append(nodes, p.output(content))
		case "{%":
			n, end := p.tag(content, depth)
			if end != "" {
				return nodes, end
			}
			if n != nil {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes, ""
}

// nextMark finds the next {{, {% or {#. If it finds no mark, at is the length of the text.
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

// markContent consumes a mark such as {{ up to its end, and returns the text between them. An end in
// quotes does not count.
func (p *parser) markContent(kind string) string {
	end := map[string]string{"{{": "}}", "{%": "%}", "{#": "#}"}[kind]
	quoted := false
	for i := 2; i+2 <= len(p.remaining); i++ {
		switch {
		case kind != "{#" && p.remaining[i] == '"':
			quoted = !quoted
		case !quoted && p.remaining[i:i+2] == end:
			inside := p.remaining[2:i]
			if strings.Contains(inside, "\n") && kind == "{{" {
				p.fail("%s goes on to the next line", kind)
			}
			p.skip(i + 2)
			return strings.TrimSpace(inside)
		}
	}
	p.fail("%s without %s", kind, end)
	return ""
}

// tag parses a tag and its block. If the tag ends or divides the enclosing block, it returns the tag
// instead.
func (p *parser) tag(content string, depth int) (n node, end string) {
	name := ""
	if words := strings.Fields(content); len(words) > 0 {
		name = words[0]
	}
	rest := strings.TrimSpace(strings.TrimPrefix(content, name))
	switch name {
	case "if", "ifequal", "ifunequal":
		n = p.choice(name, rest, depth)
	case "for":
		n = p.loop(rest, depth)
	case "comment", "verbatim":
		if raw := p.raw("end" + name); name == "verbatim" {
			n = text(raw)
		}
	case "safe", "endsafe": // values are never escaped
	case "else", "elif", "empty", "endif", "endifequal", "endifunequal", "endfor", "endcomment", "endverbatim":
		return nil, content
	default:
		p.fail("there is no tag %q", name)
	}
	return n, ""
}

// raw returns the literal text up to an end tag.
func (p *parser) raw(end string) string {
	for from := 0; ; {
		i := strings.Index(p.remaining[from:], "{%")
		if i < 0 {
			p.fail("{%% %s %%} is missing", end)
		}
		i += from
		close := strings.Index(p.remaining[i:], "%}")
		if close >= 0 && strings.TrimSpace(p.remaining[i+2:i+close]) == end {
			raw := p.remaining[:i]
			p.skip(i + close + 2)
			return raw
		}
		from = i + 2
	}
}

// choice parses the branches of an if.
func (p *parser) choice(name, rest string, depth int) node {
	var cond condition
	if name == "if" {
		cond = p.condition(rest)
	} else {
		cond = p.equality(rest, name == "ifequal")
	}
	c := choice{}
	for {
		body, end := p.block(depth + 1)
		c.branches = append(c.branches, branch{cond, body})
		word, more, _ := strings.Cut(end, " ")
		afterElse := cond == nil && len(c.branches) > 1
		switch {
		case word == "end"+name:
			return c
		case end == "":
			p.fail("{%% end%s %%} is missing", name)
		case word == "else" && more == "" && !afterElse:
			cond = nil
		case word == "elif" && name == "if" && !afterElse:
			cond = p.condition(more)
		default:
			p.fail("{%% %s %%} does not belong here", end)
		}
	}
}

func (p *parser) equality(rest string, equal bool) condition {
	w := p.words(rest)
	if len(w) != 2 {
		p.fail("ifequal and ifunequal compare two values, not %d", len(w))
	}
	a, okA := p.tryOperand(w[0])
	b, okB := p.tryOperand(w[1])
	if !okA || !okB {
		p.fail("%q cannot be compared", rest)
	}
	op := "="
	if !equal {
		op = "!="
	}
	return comparison{a, op, b}
}

// loop parses a for.
func (p *parser) loop(rest string, depth int) node {
	w := strings.Fields(rest)
	if len(w) != 3 || w[1] != "in" || !isName(w[0]) {
		p.fail("a loop is {%% for NAME in LIST %%}, not %q", rest)
	}
	l := loop{name: w[0], list: p.operand(w[2])}
	var end string
	if l.body, end = p.block(depth + 1); end == "empty" {
		l.empty, end = p.block(depth + 1)
	}
	if end != "endfor" {
		p.fail("{%% endfor %%} is missing")
	}
	return l
}

// output parses {{ value|filter:argument }}.
func (p *parser) output(content string) node {
	pieces := splitUnquoted(content, '|')
	out := output{value: p.operand(strings.TrimSpace(pieces[0]))}
	for _, piece := range pieces[1:] {
		args := splitUnquoted(strings.TrimSpace(piece), ':')
		f := filter{name: strings.TrimSpace(args[0])}
		for _, a := range args[1:] {
			f.args = append(f.args, p.operand(strings.TrimSpace(a)))
		}
		if !f.exists() {
			p.fail("there is no filter %q with %d arguments", f.name, len(f.args))
		}
		out.filters = append(out.filters, f)
	}
	return out
}

// splitUnquoted splits at a separator that is not in quotes.
func splitUnquoted(s string, sep byte) []string {
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
func (p *parser) words(s string) []string {
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
		p.fail("a quote is not closed in %q", s)
	}
	if from >= 0 {
		out = append(out, s[from:])
	}
	return out
}

// operand parses a name, a number, a boolean or a text in quotes.
func (p *parser) operand(s string) operand {
	out, ok := p.tryOperand(s)
	if !ok {
		p.fail("%q is neither a name nor a value", s)
	}
	return out
}

// tryOperand is operand, but returns false instead of failing.
func (p *parser) tryOperand(s string) (out operand, ok bool) {
	if n := len(s); n >= 2 && s[0] == '"' && s[n-1] == '"' && !strings.Contains(s[1:n-1], `"`) {
		return operand{constant: s[1 : n-1]}, true
	}
	switch s {
	case "true", "false":
		return operand{constant: s == "true"}, true
	}
	if n, ok := number(s); ok {
		return operand{constant: n}, true
	}
	if !isName(s) {
		return operand{}, false
	}
	p.names[s] = true
	return operand{name: s}, true
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

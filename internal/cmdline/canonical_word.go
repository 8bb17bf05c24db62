package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// piece is a part of a word.
type piece struct {
	kind pieceKind
	text string
}

// mayVanish reports whether an empty value of the piece removes the word.
func (x piece) mayVanish() bool { return x.kind == expansion && !strings.HasPrefix(x.text, `"`) }

// special reports whether the shell may expand the piece.
func (x piece) special() bool {
	return x.kind != quotedText && (x.kind != bareText || strings.Contains(x.text, "~"))
}

type pieceKind int

const (
	quotedText pieceKind = iota
	bareText             // unquoted, without special characters
	globText             // * ? or a class of characters
	braceText            // unquoted { } or , before braces are expanded
	expansion            // an expansion that has been printed
)

// wordRole is the role of a word, which decides how the shell expands it.
type wordRole int

const (
	argumentWord wordRole = iota // braces, ~ and globs are expanded, and the results are split
	valueWord                    // only ~ is expanded
	patternWord                  // something is matched against it
)

// words prints the words that a word becomes, with a space between them and sep before the
// first. command is the name of the command whose argument it is.
func (p *printer) words(w *syntax.Word, command, sep string) {
	print := func(text string) {
		p.write(sep)
		p.write(text)
		sep = " "
	}
	if n := p.nested[w]; n != nil {
		p.onlyLiterals = false
		print(p.program(n))
		return
	}
	if option, replaced := p.options[w]; replaced {
		p.onlyLiterals = false
		p.nameIsNext, p.mayVanish = false, false
		print(p.quote(option))
		return
	}
	if text, ok := literal(w); ok && text != "" {
		p.nameIsNext, p.mayVanish = false, false
		p.line += strings.Count(text, "\n")
		if p.substitutions > 0 || strings.IndexByte(text, '\'') >= 0 {
			print(p.quote(text))
			return
		}
		p.write(sep)
		p.write("'")
		p.write(text)
		p.write("'")
		return
	}
	named := p.nameIsNext
	p.nameIsNext, p.mayVanish = false, true
	parts := p.pieces(w, argumentWord)
	p.onlyLiterals = p.onlyLiterals && !slices.ContainsFunc(parts, piece.special)
	for _, pieces := range p.braces(parts) {
		if named && slices.ContainsFunc(pieces, func(x piece) bool { return x.kind == globText }) {
			p.refuse("which command it runs is a glob")
		}
		p.mayVanish = p.mayVanish && !slices.ContainsFunc(pieces, func(x piece) bool { return !x.mayVanish() })
		pieces = p.tilde(pieces, false)
		for _, text := range p.printGlob(pieces, command) {
			print(text)
		}
	}
}

// plainWord returns the pieces of a word that must expand to a single word, such as the file of a
// redirection.
func (p *printer) plainWord(w *syntax.Word) []piece {
	pieces := p.tilde(p.pieces(w, argumentWord), false)
	for i, piece := range pieces {
		switch piece.kind {
		case globText, braceText:
			p.refuse("a glob is used in place of a single name")
		case bareText:
			pieces[i].kind = quotedText
		}
	}
	return pieces
}

// assignedValue returns the pieces of the value of an assignment.
func (p *printer) assignedValue(w *syntax.Word) []piece {
	return p.tilde(p.pieces(w, valueWord), true)
}

// pattern prints a word that others are matched against.
func (p *printer) pattern(w *syntax.Word) string {
	return p.join(p.tilde(p.pieces(w, patternWord), false))
}

// join prints pieces side by side.
func (p *printer) join(pieces []piece) string {
	if len(pieces) == 1 && pieces[0].kind != globText && pieces[0].kind != expansion {
		return p.quote(pieces[0].text)
	}
	var b, text strings.Builder
	quoted := false
	// Empty quotes next to an expansion preserve the word if the expansion is empty.
	computed := slices.ContainsFunc(pieces, piece.mayVanish)
	flush := func() {
		if quoted {
			b.WriteString(p.quote(text.String()))
			text.Reset()
			quoted = false
		}
	}
	for _, piece := range pieces {
		switch piece.kind {
		case quotedText, bareText, braceText:
			text.WriteString(piece.text)
			quoted = quoted || piece.text != "" || computed && piece.kind == quotedText
		case globText, expansion:
			flush()
			b.WriteString(piece.text)
		}
	}
	flush()
	if b.Len() == 0 {
		return "''"
	}
	return b.String()
}

// quote quotes a text. In a substitution in double quotes, bash 3.2 takes another double quote for
// their end when it looks for braces, unless a backslash precedes it.
func (p *printer) quote(s string) string {
	s = strings.ReplaceAll(s, "'", `'\''`)
	if p.substitutions > 0 {
		s = strings.ReplaceAll(s, `"`, `'\"'`)
	}
	return "'" + s + "'"
}

// literal returns a quoted piece, and counts its lines.
func (p *printer) literal(s string) piece {
	p.line += strings.Count(s, "\n")
	return piece{quotedText, s}
}

func (p *printer) pieces(w *syntax.Word, use wordRole) []piece {
	switch lit := w.Lit(); lit {
	case "{}", "[", "]": // not special to the shell
		return []piece{{quotedText, lit}}
	}
	out := make([]piece, 0, 2*len(w.Parts)) //nolint:mnd // most parts are quotes and their text
	for i, part := range w.Parts {
		lit, ok := part.(*syntax.Lit)
		if !ok {
			out = p.part(out, part, false)
			continue
		}
		out = p.bare(out, lit.Value, use, i+1 == len(w.Parts))
	}
	return out
}

// part appends a part of a word other than bare text. inQuotes is true in double quotes.
func (p *printer) part(out []piece, part syntax.WordPart, inQuotes bool) []piece {
	switch part := part.(type) {
	case *syntax.Lit:
		return append(out, p.literal(unquoted(part.Value, "$`\"\\\n")))
	case *syntax.SglQuoted:
		if !part.Dollar {
			return append(out, p.literal(part.Value))
		}
		p.bashOnly("$' '")
		text, ok := decodeEscapes(part.Value)
		if !ok {
			p.refuse("it has an escape in $' ' that eca does not print")
		}
		return append(out, p.literal(text))
	case *syntax.DblQuoted:
		if part.Dollar {
			p.refuse(`it has a translated text ($"...")`)
		}
		out = append(out, piece{quotedText, ""})
		for _, inner := range part.Parts {
			out = p.part(out, inner, true)
		}
		return out
	}
	text := p.expansion(part)
	if inQuotes {
		text = `"` + text + `"`
	}
	return append(out, piece{expansion, text})
}

// unquoted removes the backslashes before the characters in special.
func unquoted(s, special string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// decodeEscapes returns the value of a text in $' '. It knows only escapes of one character.
func decodeEscapes(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		if i++; i == len(s) {
			return "", false
		}
		j := strings.IndexByte(`nt\'"?`, s[i])
		if j < 0 {
			return "", false
		}
		b.WriteByte("\n\t\\'\"?"[j])
	}
	return b.String(), true
}

// bare appends an unquoted text. last is true if it ends its word.
func (p *printer) bare(out []piece, s string, use wordRole, last bool) []piece {
	start := 0
	flush := func(end int) {
		if end > start {
			out = append(out, piece{bareText, s[start:end]})
		}
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '\\':
			flush(i)
			switch i++; {
			case i == len(s):
				p.refuse("it ends in a backslash")
			case s[i] != '\n':
				out = append(out, piece{quotedText, s[i : i+1]})
			}
			start = i + 1
		case use == valueWord:
		case c == '*' || c == '?':
			flush(i)
			out = append(out, piece{globText, s[i : i+1]})
			start = i + 1
		case c == '[' && (strings.Contains(s[i:], "]") || !last):
			end := classEnd(s[i:])
			if end == 0 {
				p.refuse("it has a class of characters that eca does not print")
				return out
			}
			flush(i)
			out = append(out, piece{globText, s[i : i+end]})
			i += end - 1
			start = i + 1
		case use == argumentWord && (c == '{' || c == '}' || c == ','):
			flush(i)
			out = append(out, piece{braceText, s[i : i+1]})
			start = i + 1
		}
	}
	flush(len(s))
	return out
}

// classEnd returns the length of the class of characters at the beginning of a text, if all shells
// interpret it alike; otherwise 0.
func classEnd(s string) int {
	end := strings.IndexByte(s, ']')
	if end < 2 {
		return 0
	}
	inner := s[1:end]
	if inner[0] == '!' {
		inner = inner[1:]
	}
	if inner == "" || strings.IndexFunc(inner, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_.,:@%+=-", r)
	}) >= 0 {
		return 0
	}
	return end + 1
}

// tilde replaces a leading ~ with the home folder. assigned is true for the value of an
// assignment.
func (p *printer) tilde(pieces []piece, assigned bool) []piece {
	for i, at := range pieces {
		if at.kind != bareText {
			continue
		}
		if assigned && strings.Contains(at.text, ":~") || i == 0 && !assigned && assignsHome(at.text) {
			p.refuse("it has ~ within a word")
		}
	}
	if len(pieces) == 0 || pieces[0].kind != bareText || pieces[0].text[0] != '~' {
		return pieces
	}
	user, _, slash := strings.Cut(pieces[0].text, "/")
	switch {
	case !slash && len(pieces) > 1, user != "~", p.Home == "", strings.Contains(p.source, "HOME"):
		p.refuse("it has a ~ that may not be your home folder")
		return pieces
	}
	out := append([]piece{{quotedText, p.Home}}, pieces...)
	out[1].text = out[1].text[1:]
	return out
}

// assignsHome reports whether a word looks like an assignment with a ~ in its value, which bash
// expands in arguments too.
func assignsHome(s string) bool {
	name, value, ok := strings.Cut(s, "=")
	return ok && isName(strings.TrimSuffix(name, "+")) && strings.Contains("="+strings.ReplaceAll(value, ":", "="), "=~")
}

// printGlob returns a printed word, or the names that its globs match.
func (p *printer) printGlob(pieces []piece, command string) []string {
	for len(pieces) > 1 && pieces[0].kind != globText && pieces[0].text == "" && !pieces[1].mayVanish() {
		pieces = pieces[1:]
	}
	if !slices.ContainsFunc(pieces, func(x piece) bool { return x.kind == globText }) {
		return []string{p.join(pieces)}
	}
	pattern, literal, constant := "", "", true
	for _, piece := range pieces {
		switch piece.kind {
		case globText:
			pattern += piece.text
			literal += piece.text
		case expansion:
			constant = false
		default:
			pattern += escaper.Replace(piece.text)
			literal += piece.text
		}
	}
	dashed := strings.HasPrefix(literal, "-") // an option with a value, or a file name like an option
	if constant && p.Glob != nil && !p.filesChanged && (p.dir != "" || strings.HasPrefix(literal, "/")) {
		names, ok := p.Glob(p.dir, pattern)
		switch {
		case ok && len(names) == 0:
			return []string{p.quote(literal)}
		case dashed:
			p.refuse("a glob that begins with a dash matches files")
		case ok:
			out := make([]string, len(names))
			for i, name := range names {
				if strings.HasPrefix(name, "-") {
					name = "./" + name
				}
				p.line += strings.Count(name, "\n")
				out[i] = p.quote(name)
			}
			return out
		}
	}
	name, _, value := strings.Cut(literal, "=")
	switch {
	case hiddenGlob(pattern):
		p.refuse("a glob for hidden files matches the folder above in some shells")
	case dashed && (!value || strings.ContainsAny(name, "*?[")):
		p.refuse("a glob follows a dash")
	case pieces[0].kind == globText && searches(command):
		p.refuse("what " + command + " is to look for is a glob without quotes")
	case pieces[0].kind == globText: // so that no file name becomes an option
		pieces = append([]piece{{quotedText, "./"}}, pieces...)
	}
	return []string{p.join(pieces)}
}

// hiddenGlob reports whether a part of a glob begins with a dot. In some shells, .* also matches ..
func hiddenGlob(pattern string) bool {
	for part := range strings.SplitSeq(pattern, "/") {
		if strings.HasPrefix(part, ".") && strings.ContainsAny(part, "*?[") {
			return true
		}
	}
	return false
}

// escaper escapes literal text in a glob.
var escaper = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `]`, `\]`) //nolint:gochecknoglobals // a constant

// searches reports whether a command has patterns that are often written without quotes.
func searches(command string) bool {
	switch command {
	case "find", "grep", "egrep", "fgrep", "rg", "fd", "git":
		return true
	}
	return false
}

// documentText returns the text of a here-document without its last newline.
func (p *printer) documentText(r *syntax.Redirect) (pieces []piece, ok bool) {
	if r.Hdoc == nil {
		return nil, true
	}
	p.inDocument = true
	defer func() { p.inDocument = false }()
	indented := r.Op == syntax.DashHdoc
	start := true // of a line
	for _, part := range r.Hdoc.Parts {
		lit, isLit := part.(*syntax.Lit)
		if !isLit {
			before := p.line
			pieces = p.part(pieces, part, true)
			if indented && p.line != before {
				p.refuse("an indented here-document has an expansion of several lines")
			}
			start = false
			continue
		}
		text := lit.Value
		if indented {
			text = unindent(text, start)
		}
		start = strings.HasSuffix(lit.Value, "\n")
		if !quoted(r.Word) {
			text = unquoted(text, "$`\\\n")
		}
		pieces = append(pieces, p.literal(text))
	}
	if len(pieces) == 0 || len(pieces) == 1 && pieces[0].kind == quotedText && pieces[0].text == "" {
		return nil, true
	}
	last := &pieces[len(pieces)-1]
	if last.kind != quotedText || !strings.HasSuffix(last.text, "\n") {
		p.refuse("its here-document does not end with a line")
		return nil, false
	}
	last.text = strings.TrimSuffix(last.text, "\n")
	p.line--
	return pieces, true
}

// unindent removes leading tabs from lines; from the first one only if start is true.
func unindent(s string, start bool) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		if start {
			line = strings.TrimLeft(line, "\t")
		}
		b.WriteString(line)
		start = true
	}
	return b.String()
}

package lang

func bash() *Language {
	return &Language{
		Name: "bash",
		exts: []string{".sh", ".bash", ".zsh", ".ksh", ".bats"}, names: []string{".bashrc", "PKGBUILD", "configure.ac"},
		shebang: []string{"sh", "bash", "zsh", "ksh", "dash", "ash"},
		text: text{
			quotes: []quote{
				{open: `"`, close: `"`, escape: '\\', multiline: true, interpolation: "$("},
				{open: "'", close: "'", multiline: true},
				{open: "`", close: "`", escape: '\\', multiline: true},
			},
			nameBytes: "-.:", specialBytes: "#<$\\", special: bashSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "function"),
			wordsAs(word{role: reserved}, "if then elif else fi for while until do done case esac in select time"),
			wordsAs(word{role: reserved, canBeName: true}, "local export readonly declare typeset return exit echo printf set unset shift test source eval exec cd read"),
		),
		outline: (&lines{name: bashName, withoutKeyword: bashWithoutKeyword, endsSignature: func(o *outline, i int) bool { return o.isMark(i, '{') || o.isMark(i, '(') }, locals: true}).read,
	}
}

func bashName(o *outline, at int) int {
	if !o.isName(at+1) || !o.isMark(at+2, '{') && !o.isMark(at+2, '(') {
		return -1
	}
	return at + 1
}

// bashWithoutKeyword reads `name() {`, and exported or constant variables at the top level.
func bashWithoutKeyword(o *outline, at int) int {
	t := o.at(at)
	switch {
	case !t.first || t.kind != nameToken:
	case o.isName(at) && o.isMark(at+1, '(') && o.isMark(at+2, ')'):
		o.define(Function, at, at, at+3)
		return at + 3
	case t.col == 0 && (o.is(at, "export") || o.is(at, "readonly")) && o.isName(at+1) && o.isMark(at+2, '=') && !o.tokens[at+1].first:
		o.define(Variable, at+1, at, at+2)
		return at + 2
	}
	return 0
}

// bashSpecial reads comments, expansions, and heredocs.
func bashSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	switch src[i] {
	case '#':
		if i == 0 || src[i-1] == ' ' || src[i-1] == '\t' || src[i-1] == '\n' || src[i-1] == ';' || src[i-1] == '(' {
			x.skipLine()
			return true
		}
		x.pos++
		return true
	case '$':
		switch {
		case hasPrefix(src[i:], "$'"):
			x.quoted(&quote{close: "'", escape: '\\', multiline: true}, i, i+2)
			return true
		case hasPrefix(src[i:], "${") && x.mayScanAhead():
			// Braces in it do not belong to the code.
			end := endOfQuote(src[:min(len(src), i+500)], i+2, &quote{close: "}", escape: '\\', interpolation: "${"}, 0)
			if src[end-1] == '}' {
				x.stringTo(i, end)
				return true
			}
			x.wastedScans += end - i
		}
		return false
	case '\\': // the next byte is escaped
		if i+1 < len(src) && src[i+1] != '\n' {
			x.pos += 2
			return true
		}
		return false
	}
	if hasPrefix(src[i:], "<<") && !hasPrefix(src[i:], "<<<") {
		at := i + 2
		if at < len(src) && src[at] == '-' {
			at++
		}
		for at < len(src) && (src[at] == ' ' || src[at] == '\\') {
			at++
		}
		if at < len(src) && (x.l.classes[src[at]] == letter || src[at] == '"' || src[at] == '\'') {
			return readHeredoc(x, at, false)
		}
	}
	if hasPrefix(src[i:], "<<<") {
		x.mark('<')
		x.mark('<')
		x.mark('<')
		return true
	}
	return false
}

package lang

func golang() *Language {
	return &Language{
		Name: "go",
		exts: []string{".go"},
		text: text{
			imports: importing{texts: "import"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/"}},
			quotes: []quote{
				{open: `"`, close: `"`, escape: '\\'},
				{open: "'", close: "'", escape: '\\'},
				{open: "`", close: "`", multiline: true},
			},
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "func"),
			wordsAs(word{role: definer, kind: Type}, "type"),
			wordsAs(word{role: definer, kind: Constant}, "const"),
			wordsAs(word{role: definer, kind: Variable}, "var"),
			wordsAs(word{role: reserved}, `break case chan continue default defer else fallthrough for go goto if import
				interface map package range return select struct switch`),
			wordsAs(word{role: reserved, canBeName: true}, `any bool byte error float32 float64 int int8 int16 int32 int64 rune
				string uint uint8 uint16 uint32 uint64 uintptr true false nil iota append cap clear copy delete len make
				max min new panic print println recover`),
		),
		outline: outlineGo, skipsBody: goBody,
		private: func(c byte) bool { return c >= 'a' && c <= 'z' || c == '_' },
	}
}

// goBody reports whether a brace begins the body of a function or a value. Braces of types can be
// part of a signature.
func goBody(x *lexer) bool {
	if len(x.tokens) < 2 {
		return false
	}
	t := x.tokens[len(x.tokens)-2]
	word := string(x.src[t.start:t.end])
	return word != "interface" && word != "struct"
}

// outlineGo finds the declarations of a file's top level.
func outlineGo(o *outline) {
	for i := 0; i < len(o.tokens); {
		w := o.word(i)
		switch {
		case w.role != definer || !o.tokens[i].first && !o.isMark(i-1, ';'):
			i = o.skip(i)
		case w.kind == Function:
			i = goFunc(o, i)
		case o.isMark(i+1, '('):
			end := o.skip(i+1) - 1
			if end == i+1 { // never closed
				end = len(o.tokens)
			}
			for j := i + 2; j < end; {
				j = goSpec(o, w.kind, i, j, end)
			}
			i = end
		default:
			i = goSpec(o, w.kind, i, i+1, len(o.tokens))
		}
	}
}

func goFunc(o *outline, at int) int {
	name, kind := at+1, Function
	if o.isMark(name, '(') {
		name, kind = o.skip(name), Method
	}
	if !o.isName(name) {
		return at + 1
	}
	end := name + 1
	for end < len(o.tokens) && !goStatementEnds(o, end) {
		if o.isMark(end, '{') {
			if last := o.text(end - 1); string(last) != "interface" && string(last) != "struct" {
				break
			}
		}
		end = o.skip(end)
	}
	if !o.is(name, "_") {
		o.define(kind, name, at, end)
	}
	if o.isMark(end, '{') {
		return o.skip(end)
	}
	return end
}

// goSpec reads one specification after a keyword, such as `a, b = 1, 2`.
func goSpec(o *outline, kind Kind, keyword, at, limit int) int {
	if !o.isName(at) {
		return o.skip(at)
	}
	prefix := string(o.text(keyword)) + " "
	end := at + 1
	to := 0 // the end of the signature
	for end < limit && !goStatementEnds(o, end) {
		if to == 0 && o.isMark(end, '{') {
			to = end
		}
		end = o.skip(end)
	}
	if to == 0 {
		to = end
	}
	if kind == Type {
		if !o.is(at, "_") {
			o.defineAs(string(o.text(at)), goTypeKind(o, at, end), at, prefix, at, to)
		}
		return end
	}
	for name := at; ; name += 2 {
		if !o.is(name, "_") {
			o.defineAs(string(o.text(name)), kind, name, prefix, at, to)
		}
		if !o.isMark(name+1, ',') || !o.isName(name+2) || name+2 >= end {
			return end
		}
	}
}

// goTypeKind determines the kind of a type from the tokens after its name and parameters.
func goTypeKind(o *outline, at, end int) Kind {
	i := at + 1
	if o.isMark(i, '[') && o.skip(i) > i+3 { // type parameters; the length of an array is shorter
		i = o.skip(i)
	} else if o.isMark(i, '=') {
		i++
	}
	if i < end {
		switch string(o.text(i)) {
		case "struct":
			return Struct
		case "interface":
			return Interface
		}
	}
	return Type
}

// goStatementEnds reports whether a statement ends before a token: at a semicolon, or at a line end where Go
// inserts one.
func goStatementEnds(o *outline, i int) bool {
	t := &o.tokens[i]
	if t.mark == ';' || t.mark == ')' && t.mate < 0 {
		return true
	}
	if !t.first {
		return false
	}
	switch p := o.at(i - 1); p.kind {
	case nameToken:
		switch string(o.text(i - 1)) {
		case "interface", "struct", "map", "chan", "func", "type", "const", "var":
			return false
		}
		return true
	case numberToken, stringToken:
		return true
	default:
		return p.mark == ')' || p.mark == ']' || p.mark == '}' || p.mark == '+' && o.marks(i-2, "++") || p.mark == '-' && o.marks(i-2, "--")
	}
}

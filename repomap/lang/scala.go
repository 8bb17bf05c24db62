package lang

func scala() *Language {
	return &Language{
		Name: "scala", family: "jvm",
		exts: []string{".scala", ".sc"}, names: nil,
		text: text{
			imports: importing{paths: "import", leading: "_root_", standard: "java javax scala"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/", nested: true}},
			quotes: []quote{
				{open: `"""`, close: `"""`, multiline: true, interpolation: "${"},
				{open: `"`, close: `"`, escape: '\\', interpolation: "${"},
			},
			nameStart: "$", specialBytes: "'`", special: scalaSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "def"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Trait, hasMembers: true}, "trait"),
			wordsAs(word{role: definer, kind: Object, hasMembers: true}, "object"),
			wordsAs(word{role: definer, kind: Enum, hasMembers: true}, "enum"),
			wordsAs(word{role: definer, kind: Type}, "type"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "package"),
			wordsAs(word{role: definer, kind: Property}, "val var"),
			wordsAs(word{role: modifier}, "abstract case final implicit lazy override private protected sealed"),
			wordsAs(word{role: modifier, canBeName: true}, "inline open opaque transparent infix"),
			wordsAs(word{role: continuing}, "extends with"),
			wordsAs(word{role: continuing, canBeName: true}, "derives"),
			wordsAs(word{role: reserved}, `catch do else finally for forSome given if import macro match new null return
				super then throw true false try while yield`),
			wordsAs(word{role: reserved, canBeName: true}, "this end using extension as String Int Boolean Unit Any Long Double Seq List Option"),
		),
		outline: (&braces{lines: true, indents: true, name: scalaName, operators: "+-*/%&|^!=<>?:~#@\\"}).read,
	}
}

// scalaName finds the name after a keyword.
func scalaName(o *outline, at int) int {
	name := at + 1
	switch {
	case o.word(at).kind == Module: // `package a.b {`; without a body it applies to the whole file
		for o.isMark(name+1, '.') {
			name += 2
		}
		if !o.isMark(name+1, '{') && !o.isMark(name+1, ':') {
			return -1
		}
	case o.word(at).kind == Object && o.is(at-1, "package") && !o.isName(name):
		return -1
	case o.word(at).kind == Property && (o.isMark(name, '(') || o.isMark(name+1, '(') || o.isMark(name+1, ',')):
		return -1 // a pattern
	}
	return name
}

func scalaSpecial(x *lexer) bool {
	if x.src[x.pos] == '`' {
		return backticked(x)
	}
	return tickSpecial(x)
}

// backticked reads a name in backticks, which may contain any characters.
func backticked(x *lexer) bool {
	start := x.pos
	for end := start + 1; end < len(x.src) && x.src[end] != '\n'; end++ {
		if x.src[end] != '`' {
			continue
		}
		if end == start+1 {
			return false
		}
		x.pos = end + 1
		x.add(nameToken, start, end+1)
		x.countUse(hash(x.src[start+1:end])^x.l.seed, start, end+1)
		return true
	}
	return false
}

// tickSpecial reads character literals. It returns false for other ticks, such as that of 'a in Rust
// and OCaml.
func tickSpecial(x *lexer) bool {
	rest := x.src[x.pos:min(len(x.src), x.pos+12)]
	if len(rest) < 3 {
		return false
	}
	if rest[1] == '\\' {
		for i := 3; i < len(rest); i++ {
			if rest[i] == '\'' {
				x.stringTo(x.pos, x.pos+i+1)
				return true
			}
		}
		return false
	}
	n := 2
	for n < len(rest) && rest[n]&0xC0 == 0x80 {
		n++
	}
	if n < len(rest) && rest[n] == '\'' && rest[1] != '\n' && rest[1] != '\'' {
		x.stringTo(x.pos, x.pos+n+1)
		return true
	}
	return false
}

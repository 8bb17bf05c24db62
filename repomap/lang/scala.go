package lang

func scala() *Language {
	return &Language{
		Name: "scala", family: "jvm",
		exts: []string{".scala", ".sc"}, names: nil,
		text: text{
			imports: importing{paths: "import", leading: "_root_", others: "java javax scala"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/", nested: true}},
			quotes: []quote{
				{open: `"""`, close: `"""`, lines: true, hole: "${"},
				{open: `"`, close: `"`, escape: '\\', hole: "${"},
			},
			start: "$", at: "'`", special: scalaSpecial,
		},
		words: words(
			all(word{role: definer, kind: Function}, "def"),
			all(word{role: definer, kind: Class, hasMembers: true}, "class"),
			all(word{role: definer, kind: Trait, hasMembers: true}, "trait"),
			all(word{role: definer, kind: Object, hasMembers: true}, "object"),
			all(word{role: definer, kind: Enum, hasMembers: true}, "enum"),
			all(word{role: definer, kind: Type}, "type"),
			all(word{role: definer, kind: Module, hasMembers: true}, "package"),
			all(word{role: definer, kind: Property}, "val var"),
			all(word{role: modifier}, "abstract case final implicit lazy override private protected sealed"),
			all(word{role: modifier, soft: true}, "inline open opaque transparent infix"),
			all(word{role: continuing}, "extends with"),
			all(word{role: continuing, soft: true}, "derives"),
			all(word{role: reserved}, `catch do else finally for forSome given if import macro match new null return
				super then throw true false try while yield`),
			all(word{role: reserved, soft: true}, "this end using extension as String Int Boolean Unit Any Long Double Seq List Option"),
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
		x.used(hash(x.src[start+1:end])^x.l.seed, start, end+1)
		return true
	}
	return false
}

// tickSpecial reads character literals; other ticks are left alone, as in 'a in Rust and OCaml.
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

package lang

import "bytes"

func swift() *Language {
	return &Language{
		Name: "swift",
		exts: []string{".swift"},
		text: text{
			line:  []string{"//"},
			block: []block{{open: "/*", close: "*/", nested: true}},
			quotes: []quote{
				{open: `"""`, close: `"""`, escape: '\\', multiline: true, interpolation: `\(`},
				{open: `"`, close: `"`, escape: '\\', interpolation: `\(`},
			},
			specialBytes: "#`", special: swiftSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "func"),
			wordsAs(word{role: definer, kind: Method}, "init"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true, canBeName: true}, "actor"),
			wordsAs(word{role: definer, kind: Struct, hasMembers: true}, "struct"),
			wordsAs(word{role: definer, kind: Enum, hasMembers: true}, "enum"),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true}, "protocol"),
			wordsAs(word{role: definer, kind: Extension, hasMembers: true}, "extension"),
			wordsAs(word{role: definer, kind: Type}, "typealias associatedtype"),
			wordsAs(word{role: definer, kind: Property}, "let var"),
			wordsAs(word{role: definer, kind: Macro, canBeName: true}, "macro"),
			wordsAs(word{role: modifier}, "fileprivate internal private public static"),
			wordsAs(word{role: modifier, canBeName: true}, `async borrowing consuming convenience dynamic final indirect infix isolated lazy mutating nonisolated
				nonmutating open optional override package postfix prefix required unowned weak`),
			wordsAs(word{role: continuing}, "where"),
			wordsAs(word{role: continuing, standsAlone: true}, "throws rethrows"),
			wordsAs(word{role: reserved}, `as break case catch continue default defer deinit do else fallthrough for guard if
				import in inout is operator repeat return self Self subscript super switch throw try while true false nil`),
			wordsAs(word{role: reserved, canBeName: true}, "Any String Int Bool Double Float Void get set some any"),
		),
		outline: (&braces{lines: true, name: swiftName, operators: "/=-+!*%<>&|^~"}).read,
	}
}

// swiftName finds the name after a keyword. The name of an initialiser is the keyword.
func swiftName(o *outline, at int) int {
	w := o.word(at)
	switch {
	case o.is(at-1, "import"): // `import func Module.name`
		return -1
	case o.is(at, "init"):
		if !o.inType() || o.isMark(at-1, '.') || !o.isMark(at+1, '(') && !o.isMark(at+1, '?') && !o.isMark(at+1, '<') && !o.isMark(at+1, '!') {
			return -1
		}
		return at
	case w.kind == Class && o.word(at+1).role == definer: // `class func`
		return -1
	case w.kind == Property && (o.isMark(at+1, '(') || o.is(at-1, "if") || o.is(at-1, "guard") || o.is(at-1, "case")):
		return -1
	case w.kind == Extension: // of `A.B` the last part is used
		name := at + 1
		for o.isMark(name+1, '.') && o.isName(name+2) {
			name += 2
		}
		return name
	}
	return at + 1
}

// swiftSpecial reads raw strings, `#"…"#`.
func swiftSpecial(x *lexer) bool {
	if x.src[x.pos] == '`' {
		return backticked(x)
	}
	i := x.pos
	const maxHashes = 16
	for i < len(x.src) && i < x.pos+maxHashes && x.src[i] == '#' {
		i++
	}
	if i >= len(x.src) || x.src[i] != '"' {
		return false
	}
	closing := append([]byte{'"'}, x.src[x.pos:i]...)
	if end := bytes.Index(x.src[i+1:], closing); end >= 0 {
		x.stringTo(x.pos, i+1+end+len(closing))
	} else {
		x.stringTo(x.pos, len(x.src))
	}
	return true
}

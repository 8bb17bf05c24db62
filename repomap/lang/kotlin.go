package lang

func kotlin() *Language {
	return &Language{
		Name: "kotlin", family: "jvm",
		exts: []string{".kt", ".kts"},
		text: text{
			imports: importing{paths: "import", standard: "java javax kotlin"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/", nested: true}},
			quotes: []quote{
				{open: `"""`, close: `"""`, multiline: true, interpolation: "${"},
				{open: `"`, close: `"`, escape: '\\', interpolation: "${"},
				{open: "'", close: "'", escape: '\\'},
			},
			specialBytes: "`", special: backticked,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "fun"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true}, "interface"),
			wordsAs(word{role: definer, kind: Object, hasMembers: true}, "object"),
			wordsAs(word{role: definer, kind: Type}, "typealias"),
			wordsAs(word{role: definer, kind: Property}, "val var"),
			wordsAs(word{role: modifier, canBeName: true}, `abstract actual annotation companion const crossinline data enum expect
				external final infix inline inner internal lateinit noinline open operator override private protected public
				reified sealed suspend tailrec value vararg`),
			wordsAs(word{role: continuing, canBeName: true}, "where by"),
			wordsAs(word{role: reserved}, "as break continue do else false for if in is null package return super this throw true try typeof when while"),
			wordsAs(word{role: reserved, canBeName: true}, "import init get set it field String Int Long Boolean Unit Any Double Float constructor catch finally"),
		),
		outline: (&braces{lines: true, name: kotlinName, typeHead: kotlinHead}).read,
	}
}

// kotlinHead finds the constructor of a class on a line of its own.
func kotlinHead(o *outline, at int) int {
	i := at
	for range 8 {
		switch {
		case o.is(i, "constructor"):
			return i + 1
		case o.isMark(i, '@') && o.at(i+1).kind == nameToken:
			if i += 2; o.isMark(i, '(') {
				i = o.skip(i)
			}
		case o.word(i).role == modifier:
			i++
		default:
			return at
		}
	}
	return at
}

// kotlinName finds the name after type parameters and a receiver: `fun <T> List<T>.name`.
func kotlinName(o *outline, at int) int {
	name := at + 1
	switch o.word(at).kind {
	case Object:
		if o.isMark(name, '{') && o.is(at-1, "companion") {
			return name
		}
		if !o.isName(name) || !o.at(at).first && o.word(at-1).role != modifier {
			return -1
		}
	case Function, Property:
		if o.isMark(name, '<') {
			name = skipAngles(o, name)
		}
		last := -1
		for i := name; i < len(o.tokens) && i < name+64; {
			if !o.isName(i) {
				break
			}
			last = i
			i++
			if o.isMark(i, '<') {
				i = skipAngles(o, i)
			}
			if o.isMark(i, '?') {
				i++
			}
			if !o.isMark(i, '.') {
				break
			}
			i++
		}
		return last
	}
	return name
}

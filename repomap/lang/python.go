package lang

func python() *Language {
	return &Language{
		Name: "python",
		exts: []string{".py", ".pyi", ".pyw"}, names: []string{"SConstruct", "SConscript", "wscript"},
		shebang: []string{"python", "pypy"},
		text: text{
			imports: importing{paths: "import from"},
			line:    []string{"#"},
			quotes: []quote{
				{open: `"""`, close: `"""`, escape: '\\', multiline: true},
				{open: "'''", close: "'''", escape: '\\', multiline: true},
				{open: `"`, close: `"`, escape: '\\'},
				{open: "'", close: "'", escape: '\\'},
			},
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "def"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: modifier}, "async"),
			wordsAs(word{role: reserved}, `and as assert await break continue del elif else except finally for from global if
				import in is lambda nonlocal not or pass raise return try while with yield None True False`),
			wordsAs(word{role: reserved, canBeName: true}, "self cls print len str int list dict set tuple float bool super range"),
		),
		outline: outlinePython,
	}
}

// outlinePython finds classes, functions and methods, and names at the top level that look like
// constants or types.
func outlinePython(o *outline) {
	for i := 0; i < len(o.tokens); {
		t := &o.tokens[i]
		if !t.first && !o.isMark(i-1, ';') {
			i = o.skip(i)
			continue
		}
		for n := len(o.levels); n > 0 && t.col <= int32(o.levels[n-1].col) && t.first; n-- {
			o.levels = o.levels[:n-1]
		}
		at := i
		if o.word(at).role == modifier {
			at++
		}
		w := o.word(at)
		switch {
		case len(o.levels) > 0 && !o.inType():
			i = o.skip(i) // local to a function
		case w.role == definer && o.isName(at+1):
			i = pythonBlock(o, w, i, at+1)
		case o.isName(i) && t.col == 0 && t.first && len(o.levels) == 0 && constantName(o.text(i)):
			i = pythonAssignment(o, i)
		default:
			i = o.skip(i)
		}
	}
}

func pythonBlock(o *outline, w word, from, name int) int {
	end := name + 1
	for end < len(o.tokens) && !o.isMark(end, ':') && (!o.tokens[end].first || o.isMark(end-1, '>')) {
		end = o.skip(end)
	}
	kind := w.kind
	if kind == Function && o.inType() {
		kind = Method
	}
	d := o.define(kind, name, from, end)
	o.levels = append(o.levels, level{parent: d, col: int(o.tokens[from].col), kind: kind})
	return end
}

// pythonAssignment reads `NAME = value` and `NAME: type = value`.
func pythonAssignment(o *outline, at int) int {
	end := at + 1
	for end < len(o.tokens) && !o.tokens[end].first && !o.isMark(end, '=') {
		end = o.skip(end)
	}
	plain := end == at+1 || o.isMark(at+1, ':')
	if plain && o.isMark(end, '=') && (!o.isMark(end+1, '=') || !o.adjoins(end)) {
		to := end + 1
		for to < len(o.tokens) && !o.tokens[to].first {
			to = o.skip(to)
		}
		o.define(Constant, at, at, to)
		return to
	}
	return end
}

// constantName reports whether a name is written like a constant or a type: it begins with a
// capital.
func constantName(name []byte) bool {
	for len(name) > 1 && name[0] == '_' {
		name = name[1:]
	}
	return len(name) > 1 && name[0] >= 'A' && name[0] <= 'Z'
}

package lang

import "bytes"

func ocaml() *Language {
	return &Language{
		Name: "ocaml",
		exts: []string{".ml", ".mli"},
		text: text{
			block:     []block{{open: "(*", close: "*)", nested: true}},
			quotes:    []quote{{open: `"`, close: `"`, escape: '\\', multiline: true}},
			nameBytes: "'", specialBytes: "'{", special: ocamlSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "let external"),
			wordsAs(word{role: definer, kind: Function}, "val"),
			wordsAs(word{role: definer, kind: Type}, "type"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "module"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Method}, "method"),
			wordsAs(word{role: definer, kind: Type}, "exception"),
			wordsAs(word{role: definer, kind: Function}, "and"),
			wordsAs(word{role: reserved}, `as assert begin constraint do done downto else end false for fun function functor if in
				include inherit initializer lazy match mutable new nonrec object of open or private rec sig struct then to true try
				virtual when while with`),
			wordsAs(word{role: reserved, canBeName: true}, "int string unit bool list option array float char bytes self Some None Ok Error"),
		),
		outline: outlineOCaml,
	}
}

// outlineOCaml finds definitions at the left margin, and indented definitions in a module or a class.
// Definitions with more indentation are local.
func outlineOCaml(o *outline) {
	last := Function // the kind that `and` continues
	for i := 0; i < len(o.tokens); i++ {
		t := &o.tokens[i]
		if !t.first {
			continue
		}
		continuesModule := o.is(i, "functor") || o.is(i, "struct") || o.is(i, "sig") || o.is(i, "end") && o.isMark(i+1, '=')
		for n := len(o.levels); n > 0 && int(t.col) <= o.levels[n-1].col; n-- {
			if continuesModule && int(t.col) == o.levels[n-1].col { // `module M : sig … end = struct … end`
				o.levels[n-1].end = 0
				break
			}
			o.levels = o.levels[:n-1]
		}
		if include := o.is(i, "include"); include || o.is(i, "open") {
			if ocamlIsPart(o, int(t.col)) && include && ocamlIncludes(o, i) {
				o.levels = append(o.levels, level{parent: o.parent(), col: int(t.col), kind: Module})
			}
			continue
		}
		w := o.word(i)
		if w.role != definer || !ocamlIsPart(o, int(t.col)) {
			continue
		}
		kind := w.kind
		if o.is(i, "and") {
			if o.word(i+1).role == definer { // of a module's constraints
				continue
			}
			kind = last
		}
		last = kind
		name := ocamlName(o, i)
		if kind == Function && o.isMark(name, '(') {
			i = ocamlOperator(o, i, name)
			continue
		}
		if !o.isName(name) || kind == Type && o.isMark(name+1, '.') { // `type Other.t += …`
			continue
		}
		end := name + 1
		for end < len(o.tokens) && (!w.hasMembers || !o.is(end, "sig") && !o.is(end, "struct")) && (!o.isMark(end, '=') || o.isMark(end-1, '<') || o.isMark(end-1, '>')) && (!o.tokens[end].first || o.tokens[end].col > t.col) {
			end = o.skip(end)
		}
		if kind == Function && (o.is(i, "let") || o.is(i, "and")) && (end == name+1 || o.isMark(name+1, ':')) && !o.is(end+1, "fun") && !o.is(end+1, "function") {
			kind = Constant
		}
		to := end
		if w.hasMembers && o.isMark(to-1, ':') { // its signature is next
			to--
		}
		if kind == Type { // the signature includes the beginning of the type's definition
			for to < min(end+12, len(o.tokens)) && !o.tokens[to].first {
				to = o.skip(to)
			}
		}
		d := o.define(kind, name, i, to)
		if w.hasMembers {
			o.levels = append(o.levels, level{parent: d, col: int(t.col), kind: kind})
		}
		i = end - 1
	}
}

// ocamlIncludes reports whether a line ends with the beginning of an included structure: `include
// Make (struct`.
func ocamlIncludes(o *outline, at int) bool {
	i := at + 1
	for i < len(o.tokens) && !o.tokens[i].first && i < at+24 {
		i++
	}
	return o.is(i-1, "struct") || o.is(i-1, "sig")
}

// ocamlOperator reads `let ( + ) a b` and returns the index of its last token.
func ocamlOperator(o *outline, at, name int) int {
	to := o.skip(name)
	if to > name+8 || o.at(name+1).kind != markToken && !o.is(name+1, "let") && !o.is(name+1, "and") {
		return at
	}
	end := to
	for end < len(o.tokens) && !o.isMark(end, '=') && !o.tokens[end].first {
		end = o.skip(end)
	}
	text := string(o.src[o.at(name).start:o.at(to-1).end])
	if len(text) <= 2 {
		return at
	}
	o.defineAs(text, Function, name, "", at, end)
	return end - 1
}

// ocamlIsPart reports whether a token in a column begins a part of the enclosing structure. All parts of a
// structure begin in the column of the first one.
func ocamlIsPart(o *outline, col int) bool {
	n := len(o.levels)
	if n == 0 {
		return col == 0
	}
	top := &o.levels[n-1]
	if top.end == 0 {
		top.end = col
	}
	return col <= top.end
}

func ocamlName(o *outline, at int) int {
	name := at + 1
	for {
		switch t := o.at(name); {
		case o.is(name, "rec") || o.is(name, "nonrec") || o.is(name, "type") || o.is(name, "virtual") || o.is(name, "private") || t.mark == '!':
			name++
		case t.mark == '%': // an extension
			name += 2
		case t.mark == '(' && (o.word(at).kind == Type || o.word(at).kind == Module): // parameters of a type
			name = o.skip(name)
		case t.mark == '\'' || t.mark == '+' || t.mark == '-' && o.word(at).kind == Type:
			name++
			if t.mark == '\'' {
				name++
			}
		case t.mark == '[':
			name = o.skip(name)
		default:
			if o.is(name, "_") {
				return -1
			}
			return name
		}
		if name >= len(o.tokens) {
			return -1
		}
	}
}

// ocamlSpecial reads character literals and strings like `{id|…|id}`.
func ocamlSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	if src[i] == '\'' {
		return tickSpecial(x)
	}
	end := i + 1
	for end < len(src) && (src[end] >= 'a' && src[end] <= 'z' || src[end] == '_') && end < i+32 {
		end++
	}
	if end >= len(src) || src[end] != '|' {
		return false
	}
	if !x.mayScanAhead() {
		return false
	}
	closing := append(append([]byte{'|'}, src[i+1:end]...), '}')
	stop := bytes.Index(src[end+1:], closing)
	if stop < 0 {
		if end > i+1 {
			x.stringTo(i, len(src))
			return true
		}
		x.wastedScans += len(src) - i
		return false
	}
	if end == i+1 && stop > 0 && src[end+1] == ']' {
		x.wastedScans += stop
		return false
	}
	x.stringTo(i, end+1+stop+len(closing))
	return true
}

package lang

import "bytes"

func rust() *Language {
	return &Language{
		Name: "rust",
		exts: []string{".rs"},
		text: text{
			imports:      importing{paths: "use mod", leading: "crate self super", standard: "std core alloc", qualified: true},
			line:         []string{"//"},
			block:        []block{{open: "/*", close: "*/", nested: true}},
			quotes:       []quote{{open: `"`, close: `"`, escape: '\\', multiline: true}},
			specialBytes: "'\"#", special: rustSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "fn"),
			wordsAs(word{role: definer, kind: Struct}, "struct"),
			wordsAs(word{role: definer, kind: Struct, canBeName: true}, "union"),
			wordsAs(word{role: definer, kind: Enum}, "enum"),
			wordsAs(word{role: definer, kind: Trait, hasMembers: true}, "trait"),
			wordsAs(word{role: definer, kind: Extension, hasMembers: true}, "impl"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "mod"),
			wordsAs(word{role: definer, kind: Type}, "type"),
			wordsAs(word{role: definer, kind: Constant}, "const static"),
			wordsAs(word{role: definer, kind: Macro, canBeName: true}, "macro_rules macro"),
			wordsAs(word{role: modifier}, "async extern pub unsafe"),
			wordsAs(word{role: modifier, canBeName: true}, "default safe"),
			wordsAs(word{role: continuing}, "where"),
			wordsAs(word{role: reserved}, `as await break continue crate dyn else for if in let loop match move mut ref return
				self super use while true false`),
			wordsAs(word{role: reserved, canBeName: true}, `Self bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize
				String Vec Option Result Some None Ok Err Box auto`),
		),
		outline: (&braces{name: rustName, withoutKeyword: rustForeign}).read,
	}
}

// rustName finds the name after a keyword. The name of `impl Trait for Type` is Type.
func rustName(o *outline, at int) int {
	name := at + 1
	switch o.word(at).kind {
	case Extension:
		return rustImpl(o, at)
	case Macro:
		switch {
		case o.is(at, "macro") && (o.isMark(name+1, '(') || o.isMark(name+1, '{')):
			return name
		case !o.isMark(name, '!') || o.is(at, "macro"):
			return -1
		}
		return name + 1
	case Constant:
		if o.is(name, "mut") {
			name++
		}
		if o.is(name, "_") || o.word(name).role == definer {
			return -1
		}
	case Function:
		if !o.isName(name) {
			return -1 // a type
		}
	}
	return name
}

func rustImpl(o *outline, at int) int {
	if p := o.at(at - 1); at > 0 && p.mark != '}' && p.mark != ';' && p.mark != '{' && p.mark != ']' && o.word(at-1).role != modifier {
		return -1 // `impl Trait` as a type
	}
	i := at + 1
	if o.isMark(i, '<') {
		i = skipAngles(o, i)
	}
	last, trait := -1, -1
	for ; i < len(o.tokens) && i < at+200; i++ {
		switch {
		case o.isMark(i, '{') || o.isMark(i, ';') || o.is(i, "where"):
			if last < 0 { // of a type without a name, as in `impl Trait for [u8; 4]`
				return trait
			}
			return last
		case o.is(i, "for"):
			last, trait = -1, last
		case o.isMark(i, '<'):
			i = skipAngles(o, i) - 1
		case o.isMark(i, '(') || o.isMark(i, '['):
			i = o.skip(i) - 1
		case o.isName(i):
			last = i
		}
	}
	return last
}

// rustSpecial reads character literals, lifetimes and raw strings.
func rustSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	if src[i] == '\'' {
		return tickSpecial(x)
	}
	p := x.last()
	if p.kind != nameToken || int(p.end) != i || src[p.end-1] != 'r' || p.end-p.start > 2 {
		return false
	}
	if src[i] == '#' && p.end-p.start == 1 && i+1 < len(src) && x.l.classes[src[i+1]] == letter {
		return rustRaw(x)
	}
	for i < len(src) && src[i] == '#' {
		i++
	}
	if i >= len(src) || src[i] != '"' {
		return false
	}
	closing := append([]byte{'"'}, src[x.pos:i]...)
	if end := bytes.Index(src[i+1:], closing); end >= 0 {
		x.stringTo(x.pos, i+1+end+len(closing))
	} else {
		x.stringTo(x.pos, len(src))
	}
	return true
}

// rustRaw reads the rest of `r#match`, which is not a keyword.
func rustRaw(x *lexer) bool {
	x.pos++
	start := x.pos
	end, h := x.l.readName(x.src, start)
	x.pos = end
	x.countUse(h^x.l.seed, start, end)
	t := &x.hidden.scratch
	if !x.hidden.on {
		t = &x.tokens[len(x.tokens)-1]
	}
	t.end, t.word = int32(end), 0 //nolint:gosec // files have less than 4 GiB
	return true
}

// rustForeign enters `extern "C" {`, which has no name.
func rustForeign(o *outline, at int) int {
	if !o.is(at, "extern") {
		return 0
	}
	brace := at + 1
	if o.at(brace).kind == stringToken {
		brace++
	}
	if !o.isMark(brace, '{') || o.at(brace).mate < 0 {
		return 0
	}
	o.levels = append(o.levels, level{end: int(o.at(brace).mate), parent: o.parent(), col: -1})
	return brace + 1
}

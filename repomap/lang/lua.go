package lang

import "bytes"

func lua() *Language {
	return &Language{
		Name: "lua",
		exts: []string{".lua"}, shebang: []string{"lua", "luajit"},
		text: text{
			imports: importing{texts: "require dofile"},
			quotes: []quote{
				{open: `"`, close: `"`, escape: '\\'},
				{open: "'", close: "'", escape: '\\'},
			},
			specialBytes: "-[#", special: luaSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "function"),
			wordsAs(word{role: modifier}, "local"),
			wordsAs(word{role: reserved}, "and break do else elseif end false for goto if in nil not or repeat return then true until while"),
			wordsAs(word{role: reserved, canBeName: true}, "self require pairs ipairs print table string"),
		),
		outline: (&lines{name: luaName, withoutKeyword: luaWithoutKeyword, endsSignature: func(o *outline, i int) bool { return o.isMark(i-1, ')') }, beginsLocalBody: luaBeginsLocalBody}).read,
	}
}

// luaBeginsLocalBody reports whether a token begins an anonymous function whose body continues on the next
// line.
func luaBeginsLocalBody(o *outline, i int) bool {
	if !o.is(i, "function") || !o.isMark(i+1, '(') || o.inFunction() {
		return false
	}
	body := o.skip(i + 1)
	return body < len(o.tokens) && o.tokens[body].first
}

// inFunction reports whether the current body is that of a function.
func (o *outline) inFunction() bool {
	return len(o.levels) > 0 && o.levels[len(o.levels)-1].kind == Function
}

// luaName finds the name in `function a.b:name(`.
func luaName(o *outline, at int) int {
	name := at + 1
	for (o.isMark(name+1, '.') || o.isMark(name+1, ':')) && o.isName(name+2) {
		name += 2
	}
	if !o.isMark(name+1, '(') {
		return -1
	}
	return name
}

// luaWithoutKeyword reads `a.name = function(`.
func luaWithoutKeyword(o *outline, at int) int {
	name := at
	if o.is(name, "local") {
		name++
	}
	if !o.isName(name) {
		return 0
	}
	for o.isMark(name+1, '.') && o.isName(name+2) && name < at+16 {
		name += 2
	}
	if !o.isMark(name+1, '=') || !o.is(name+2, "function") || len(o.levels) > 0 {
		return 0
	}
	end := o.skip(name + 3)
	d := o.define(Function, name, at, end)
	o.levels = append(o.levels, level{parent: d, col: int(o.at(at).col), kind: Function})
	return end
}

// luaSpecial reads comments and strings with long brackets.
func luaSpecial(x *lexer) bool {
	rest := x.src[x.pos:]
	switch {
	case rest[0] == '#':
		if x.pos == 0 && hasPrefix(rest, "#!") {
			x.skipLine()
			return true
		}
		return false
	case hasPrefix(rest, "--"):
		if end := longBracket(rest[2:]); end > 0 {
			x.skipTo(x.pos + 2 + end)
		} else {
			x.skipLine()
		}
		return true
	case rest[0] == '[':
		if end := longBracket(rest); end > 0 {
			x.stringTo(x.pos, x.pos+end)
			return true
		}
	}
	return false
}

// longBracket returns the length of `[==[…]==]`, or 0.
func longBracket(b []byte) int {
	n := 1
	for n < len(b) && b[n] == '=' && n < 64 {
		n++
	}
	if len(b) == 0 || b[0] != '[' || n >= len(b) || b[n] != '[' {
		return 0
	}
	closing := append(append([]byte{']'}, b[1:n]...), ']')
	if end := bytes.Index(b, closing); end >= 0 {
		return end + len(closing)
	}
	return len(b)
}

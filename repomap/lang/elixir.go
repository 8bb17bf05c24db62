package lang

func elixir() *Language {
	return &Language{
		Name: "elixir",
		exts: []string{".ex", ".exs"}, shebang: []string{"elixir"},
		text: text{
			imports: importing{paths: "alias import use require"},
			line:    []string{"#"},
			quotes: []quote{
				{open: `"""`, close: `"""`, escape: '\\', multiline: true, interpolation: "#{"},
				{open: "'''", close: "'''", escape: '\\', multiline: true},
				{open: `"`, close: `"`, escape: '\\', multiline: true, interpolation: "#{"},
				{open: "'", close: "'", escape: '\\', multiline: true},
			},
			nameEnd: "?!", specialBytes: "~?", special: elixirSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "defmodule"),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true}, "defprotocol"),
			wordsAs(word{role: definer, kind: Extension, hasMembers: true}, "defimpl"),
			wordsAs(word{role: definer, kind: Function}, "def defp defdelegate defguard defguardp defn defnp"),
			wordsAs(word{role: definer, kind: Macro}, "defmacro defmacrop"),
			wordsAs(word{role: reserved}, "after and case catch cond do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with true false nil alias"),
			wordsAs(word{role: reserved, canBeName: true}, "defstruct spec doc moduledoc type"),
		),
		outline: (&lines{name: elixirName, withoutKeyword: elixirWithoutKeyword, endsSignature: elixirEndsSignature}).read,
	}
}

// elixirName finds the name after a keyword. Only the first clause of a function counts.
func elixirName(o *outline, at int) int {
	name := at + 1
	switch o.word(at).kind {
	case Module, Interface, Extension:
		for o.isMark(name+1, '.') && o.isName(name+2) {
			name += 2
		}
		if c := o.src[o.at(name).start]; c >= 'a' && c <= 'z' { // generated at run time
			return -1
		}
		return name
	}
	if !o.isName(name) || elixirIsClause(o, name) {
		return -1
	}
	return name
}

// elixirIsClause reports whether a name belongs to another clause of the previous definition.
func elixirIsClause(o *outline, name int) bool {
	n := len(o.defs)
	if n == 0 {
		return false
	}
	d := o.defs[n-1]
	return string(o.sig[d.nameFrom:d.nameTo]) == string(o.text(name)) && d.parent == o.parent()
}

func elixirEndsSignature(o *outline, i int) bool {
	return o.is(i, "do") || o.isMark(i, ',') && o.is(i+1, "do")
}

// elixirWithoutKeyword reads types: `@type name :: …`.
func elixirWithoutKeyword(o *outline, at int) int {
	if !o.isMark(at, '@') || !o.is(at+1, "type") && !o.is(at+1, "typep") && !o.is(at+1, "opaque") && !o.is(at+1, "callback") || !o.isName(at+2) {
		return 0
	}
	end := at + 2
	for end < len(o.tokens) && !o.tokens[end].first {
		end = o.skip(end)
	}
	if elixirIsClause(o, at+2) {
		return end
	}
	kind := Type
	if o.is(at+1, "callback") {
		kind = Method
	}
	o.define(kind, at+2, at, end)
	return end
}

// elixirSpecial reads sigils, `~w(a b)`, and character literals, `?a`.
func elixirSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	if src[i] == '?' {
		if p := x.last(); p.kind != 0 && int(p.end) == i || i+1 >= len(src) || src[i+1] <= ' ' {
			return false
		}
		n := 2
		if src[i+1] == '\\' {
			n = 3
		}
		x.stringTo(i, min(i+n, len(src)))
		return true
	}
	at := i + 1
	for at < len(src) && at < i+8 && x.l.classes[src[at]] == letter {
		at++
	}
	if at == i+1 || at >= len(src) {
		return false
	}
	for _, q := range []string{`"""`, "'''"} {
		if hasPrefix(src[at:], q) {
			x.stringTo(i, endOfQuote(src, at+3, &quote{close: q, escape: '\\', multiline: true}, 0))
			return true
		}
	}
	switch src[at] {
	case '(', '[', '{', '<', '/', '|', '"', '\'':
		x.stringTo(i, endOfGroup(src, at))
		return true
	}
	return false
}

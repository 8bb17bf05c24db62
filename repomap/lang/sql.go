package lang

import "bytes"

func sql() *Language {
	return &Language{
		Name: "sql",
		exts: []string{".sql", ".ddl", ".pgsql", ".psql"},
		text: text{
			line:  []string{"--"},
			block: []block{{open: "/*", close: "*/", nested: true}},
			quotes: []quote{
				{open: "'", close: "'", multiline: true, doubled: true},
			},
			nameStart: "#@", nameBytes: "$", specialBytes: "$\"`[", special: sqlSpecial, caseless: true,
		},
		words: words(
			wordsAs(word{role: definer, kind: Table}, "table"),
			wordsAs(word{role: definer, kind: View}, "view"),
			wordsAs(word{role: definer, kind: Index}, "index"),
			wordsAs(word{role: definer, kind: Function}, "function procedure aggregate"),
			wordsAs(word{role: definer, kind: Trigger}, "trigger"),
			wordsAs(word{role: definer, kind: Type}, "type domain"),
			wordsAs(word{role: definer, kind: Module}, "schema database package"),
			wordsAs(word{role: definer, kind: Object}, "sequence"),
			wordsAs(word{role: reserved}, `add all alter and as asc begin between by case check column constraint create cross default
				delete desc distinct drop else end exists foreign from full group having if in inner insert into is join key left
				like limit not null on or order outer primary references replace returning returns right select set then union
				unique update using values when where with`),
			wordsAs(word{role: reserved, canBeName: true}, "int integer bigint text varchar char boolean timestamp timestamptz date numeric serial uuid json jsonb"),
		),
		outline: outlineSQL,
	}
}

// outlineSQL finds the objects in CREATE statements.
func outlineSQL(o *outline) {
	for i := 0; i < len(o.tokens); i = o.skip(i) {
		if !o.isWord(i, "create") || o.isWord(i-1, "show") {
			continue
		}
		at := i + 1
		for at < i+12 && at < len(o.tokens) && o.word(at).role != definer && !o.isMark(at, ';') && !o.isMark(at, '(') {
			at++ // or replace, temporary, unique, materialized, definer = ...
		}
		w := o.word(at)
		if w.role != definer {
			continue
		}
		name := at + 1
		for o.isWord(name, "if") || o.isWord(name, "not") || o.isWord(name, "exists") || o.isWord(name, "concurrently") || w.kind == Module && o.isWord(name, "body") {
			name++
		}
		for o.isMark(name+1, '.') {
			name += 2
		}
		quoted := o.at(name).kind == stringToken && o.at(name).end-o.at(name).start > 2
		if !o.isName(name) && !quoted || o.isWord(name, "on") {
			continue
		}
		end := name + 1
		for end < len(o.tokens) && !o.isMark(end, ';') && !o.isWord(end, "as") && !o.isWord(end, "begin") && !o.isWord(end, "language") {
			if o.isMark(end, '(') && w.kind != Function {
				if w.kind == Index {
					end = o.skip(end)
				}
				break
			}
			end = o.skip(end)
		}
		text := o.text(name)
		if quoted {
			text = text[1 : len(text)-1]
		}
		o.defineAs(string(text), w.kind, name, "", i, end)
		i = end - 1
	}
}

// isWord reports whether a token is a word, ignoring case.
func (o *outline) isWord(i int, word string) bool {
	return o.at(i).kind == nameToken && bytes.EqualFold(o.text(i), []byte(word))
}

// sqlSpecial reads quoted names and dollar-quoted strings: `$tag$...$tag$`.
func sqlSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	switch c := src[i]; c {
	case '"', '`', '[':
		closing := c
		if c == '[' {
			closing = ']'
		}
		if !x.mayScanAhead() {
			return false
		}
		end := i + 1
		for end < len(src) && end < i+130 && src[end] != closing && src[end] != '\n' {
			end++
		}
		if end == len(src) || src[end] != closing || end == i+1 {
			x.wastedScans += end - i
			return false
		}
		x.stringTo(i, end+1)
		return true
	}
	end := i + 1
	for end < len(src) && src[end] != '$' && x.l.tails[src[end]] && end < i+64 {
		end++
	}
	if end >= len(src) || src[end] != '$' || end > i+1 && x.l.classes[src[i+1]] == digit {
		return false
	}
	tag := src[i : end+1]
	if stop := bytes.Index(src[end+1:], tag); stop >= 0 {
		x.stringTo(i, end+1+stop+len(tag))
	} else {
		x.stringTo(i, len(src))
	}
	return true
}

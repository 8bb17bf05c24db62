package lang

import "bytes"

func php() *Language {
	return &Language{
		Name: "php",
		exts: []string{".php", ".phtml", ".inc"}, shebang: []string{"php"},
		text: text{
			imports: importing{paths: "use", texts: "require require_once include include_once"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/"}},
			quotes: []quote{
				{open: `"`, close: `"`, escape: '\\', multiline: true},
				{open: "'", close: "'", escape: '\\', multiline: true},
				{open: "`", close: "`", escape: '\\', multiline: true},
			},
			specialBytes: "#?</", special: phpSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "function"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true}, "interface"),
			wordsAs(word{role: definer, kind: Trait, hasMembers: true}, "trait"),
			wordsAs(word{role: definer, kind: Enum, hasMembers: true, canBeName: true}, "enum"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "namespace"),
			wordsAs(word{role: definer, kind: Constant}, "const"),
			wordsAs(word{role: modifier}, "abstract final private protected public static"),
			wordsAs(word{role: modifier, canBeName: true}, "readonly"),
			wordsAs(word{role: continuing}, "extends implements"),
			wordsAs(word{role: reserved}, `and array as break callable case catch clone continue declare default do echo else
				elseif empty enddeclare endfor endforeach endif endswitch endwhile eval exit finally fn for foreach global goto
				if include include_once instanceof insteadof isset match new or print require require_once return switch throw
				try unset use var while xor yield true false null`),
			wordsAs(word{role: reserved, canBeName: true}, "list string int bool float mixed void self parent this object iterable"),
		),
		outline: (&braces{anyName: true, name: phpName, withoutKeyword: phpWithoutKeyword}).read,
	}
}

// phpName finds the name after a keyword.
func phpName(o *outline, at int) int {
	name := at + 1
	switch w := o.word(at); {
	case w.kind == Function:
		if o.isMark(name, '&') {
			name++
		}
		if p := o.at(at - 1); p.mark == '=' || p.mark == '(' || p.mark == ',' || o.is(at-1, "use") || o.is(at-1, "return") {
			return -1
		}
	case w.kind == Constant:
		if o.is(at-1, "use") {
			return -1
		}
		for o.isName(name) && o.isName(name+1) { // a type
			name++
		}
	case w.kind == Class && (o.is(at-1, "new") || o.isMark(at-1, ':')):
		return -1
	case w.kind == Module:
		for o.isMark(name+1, '\\') && o.isName(name+2) {
			name += 2
		}
	}
	return name
}

// phpWithoutKeyword enters `if (!function_exists('name')) {`.
func phpWithoutKeyword(o *outline, at int) int {
	brace := o.skip(at + 1)
	if !o.is(at, "if") || !o.isMark(at+1, '(') || !o.isMark(brace, '{') || o.at(brace).mate < 0 || o.inType() {
		return 0
	}
	const maxTokens = 8
	for i := at + 2; i < min(brace, at+maxTokens); i++ {
		if bytes.HasSuffix(o.text(i), []byte("_exists")) {
			o.levels = append(o.levels, level{end: int(o.at(brace).mate), parent: o.parent(), col: -1, kind: Module})
			return brace + 1
		}
	}
	return 0
}

// phpSpecial reads text outside code, comments with #, and heredocs.
func phpSpecial(x *lexer) bool {
	src, rest := x.src, x.src[x.pos:]
	switch {
	case rest[0] == '#':
		if len(rest) > 1 && rest[1] == '[' {
			return false // an attribute
		}
		phpComment(x)
		return true
	case hasPrefix(rest, "//"):
		phpComment(x)
		return true
	case hasPrefix(rest, "?>"):
		phpSkipOutput(x, x.pos+2)
		return true
	case x.line == 1 && x.pos == x.lineStart && rest[0] == '<':
		phpSkipOutput(x, x.pos)
		return true
	case hasPrefix(rest, "<?"):
		x.pos += 2
		for x.pos < len(src) && (src[x.pos] == '=' || src[x.pos] >= 'a' && src[x.pos] <= 'z') {
			x.pos++
		}
		return true
	case hasPrefix(rest, "<<<"):
		return readHeredoc(x, x.pos+3, true)
	}
	return false
}

// phpComment skips to the end of the line, or of the code on it.
func phpComment(x *lexer) {
	end := bytes.IndexByte(x.src[x.pos:], '\n')
	if end < 0 {
		end = len(x.src) - x.pos
	}
	if close := bytes.Index(x.src[x.pos:x.pos+end], []byte("?>")); close >= 0 {
		end = close
	}
	x.pos += end
}

// phpSkipOutput skips literal output.
func phpSkipOutput(x *lexer, from int) {
	open := bytes.Index(x.src[from:], []byte("<?"))
	if open < 0 {
		x.skipTo(len(x.src))
		return
	}
	x.skipTo(from + open)
	x.first = true
	x.pos += 2
	for x.pos < len(x.src) && (x.src[x.pos] == '=' || x.src[x.pos] >= 'a' && x.src[x.pos] <= 'z') {
		x.pos++
	}
}

// readHeredoc reads a heredoc: `<<<WORD`, `<<~WORD`. It begins on the next line, and ends with a line
// that consists of the word. With prefixEnds, it ends with a line that begins with the word.
func readHeredoc(x *lexer, at int, prefixEnds bool) bool {
	src := x.src
	for at < len(src) && (src[at] == ' ' || src[at] == '"' || src[at] == '\'') {
		at++
	}
	end := at
	for end < len(src) && x.l.tails[src[end]] && end-at < 64 {
		end++
	}
	if end == at || src[at] >= '0' && src[at] <= '9' {
		return false
	}
	if !x.mayScanAhead() {
		return false
	}
	word := src[at:end]
	line := bytes.IndexByte(src[end:], '\n')
	if line < 0 {
		x.wastedScans += len(src) - end
		return false
	}
	for i := end + line + 1; ; {
		stop := bytes.IndexByte(src[i:], '\n')
		fullLine := src[i:]
		if stop >= 0 {
			fullLine = src[i : i+stop]
		}
		text := bytes.TrimSpace(fullLine)
		if bytes.Equal(text, word) || prefixEnds && bytes.HasPrefix(text, word) && (len(text) == len(word) || !x.l.tails[text[len(word)]]) {
			indent := len(fullLine) - len(bytes.TrimLeft(fullLine, " \t"))
			x.stringTo(x.pos, i+indent+len(word))
			return true
		}
		if stop < 0 {
			x.wastedScans += len(src) - end
			return false
		}
		i += stop + 1
	}
}

package lang

import "bytes"

func c() *Language {
	return &Language{
		Name: "c", family: "c",
		exts: []string{".c", ".h"},
		text: cText(),
		words: words(cWords(),
			wordsAs(word{role: definer, kind: Struct, hasMembers: true}, "struct union"),
			wordsAs(word{role: definer, kind: Enum}, "enum"),
			wordsAs(word{role: modifier, kind: Type}, "typedef"),
		),
		outline: (&typeFirst{prototypes: true, macros: true}).read,
	}
}

func cText() text {
	return text{
		line:  []string{"//"},
		block: []block{{open: "/*", close: "*/"}},
		quotes: []quote{
			{open: `"`, close: `"`, escape: '\\'},
			{open: "'", close: "'", escape: '\\'},
		},
		specialBytes: "#\"", special: cSpecial, ticks: true,
	}
}

func cWords() map[string]word {
	return words(
		wordsAs(word{role: modifier}, "static extern inline const volatile register"),
		wordsAs(word{role: reserved}, "auto break case continue default do else for goto if return sizeof switch while defined __attribute__ __declspec __asm__ asm _Alignas _Static_assert"),
		wordsAs(word{role: reserved, canBeName: true}, `void char short int long float double signed unsigned bool size_t NULL true false
			uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t`),
	)
}

// cSpecial reads preprocessor lines and raw strings.
func cSpecial(x *lexer) bool {
	if x.src[x.pos] == '"' {
		p := x.last()
		if p.kind == nameToken && int(p.end) == x.pos && x.src[p.end-1] == 'R' && p.end-p.start <= 3 {
			return rawString(x)
		}
		return false
	}
	if !x.first {
		return false
	}
	end := x.pos // after the line and its continuation lines
	for {
		i := bytes.IndexByte(x.src[end:], '\n')
		if i < 0 {
			end = len(x.src)
			break
		}
		end += i
		before := bytes.TrimRight(x.src[x.pos:end], "\r")
		if len(before) == 0 || before[len(before)-1] != '\\' {
			break
		}
		end++
	}
	text := x.src[x.pos+1 : end]
	// A comment that begins here may continue on the next lines.
	if i := bytes.LastIndex(text, []byte("/*")); i >= 0 && !bytes.Contains(text[i:], []byte("*/")) && !bytes.Contains(text[:i], []byte("//")) {
		end = x.pos + 1 + i
		text = x.src[x.pos+1 : end]
	}
	word := bytes.TrimLeft(text, " \t")
	switch {
	case bytes.HasPrefix(word, []byte("define")):
		cMacro(x, x.pos+1+len(text)-len(word)+len("define"), end)
	case bytes.HasPrefix(word, []byte("include")):
		cInclude(x, bytes.TrimSpace(word[len("include"):]))
	case bytes.HasPrefix(word, []byte("if")):
		x.openAtConditions = append(x.openAtConditions, len(x.open))
	case bytes.HasPrefix(word, []byte("el")): // #else and #elif: the branch opens the same brackets again
		if n := len(x.openAtConditions); n > 0 && x.openAtConditions[n-1] <= len(x.open) {
			x.open = x.open[:x.openAtConditions[n-1]]
		}
	case bytes.HasPrefix(word, []byte("endif")):
		if n := len(x.openAtConditions); n > 0 {
			x.openAtConditions = x.openAtConditions[:n-1]
		}
	}
	x.skipTo(end)
	return true
}

// cInclude records the file that an #include names. A file in angle brackets without a folder is a
// system header.
func cInclude(x *lexer, rest []byte) {
	if len(rest) < 2 || rest[0] != '"' && rest[0] != '<' {
		return
	}
	closing := byte('"')
	if rest[0] == '<' {
		closing = '>'
	}
	end := bytes.IndexByte(rest[1:], closing)
	if end > 0 && (closing == '"' || bytes.IndexByte(rest[1:1+end], '/') >= 0) {
		x.included = append(x.included, string(rest[1:1+end]))
	}
}

// macroMark precedes the name in `#define name`.
const macroMark = '\x01'

// cMacro adds the tokens of a macro definition: a mark, the name, and the parameters.
func cMacro(x *lexer, at, end int) {
	src := x.src
	for at < end && (src[at] == ' ' || src[at] == '\t') {
		at++
	}
	start := at
	for at < end && x.l.tails[src[at]] {
		at++
	}
	if at == start {
		return
	}
	t := x.add(markToken, start, start)
	t.mark = macroMark
	t.first = true
	x.add(nameToken, start, at)
	x.countUse(hash(src[start:at])^x.l.seed, start, at)
	if at < end && src[at] == '(' {
		if i := bytes.IndexByte(src[at:end], ')'); i >= 0 {
			x.add(stringToken, at, at+i+1)
		}
	}
}

// rawString reads R"name(…)name".
func rawString(x *lexer) bool {
	rest := x.src[x.pos+1:]
	open := bytes.IndexByte(rest[:min(len(rest), 18)], '(')
	if open < 0 {
		return false
	}
	closing := append(append([]byte{')'}, rest[:open]...), '"')
	end := bytes.Index(rest, closing)
	if end < 0 {
		x.stringTo(x.pos, len(x.src))
		return true
	}
	x.stringTo(x.pos, x.pos+1+end+len(closing))
	return true
}

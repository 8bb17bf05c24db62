package lang

import "bytes"

func csharp() *Language {
	return &Language{
		Name: "csharp",
		exts: []string{".cs"},
		text: text{
			imports: importing{paths: "using", standard: "System Microsoft"},
			line:    []string{"//"},
			block:   []block{{open: "/*", close: "*/"}},
			quotes: []quote{
				{open: `"`, close: `"`, escape: '\\'},
				{open: "'", close: "'", escape: '\\'},
			},
			specialBytes: "\"$@#", special: csharpSpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Struct, hasMembers: true}, "struct"),
			wordsAs(word{role: definer, kind: Interface, hasMembers: true}, "interface"),
			wordsAs(word{role: definer, kind: Enum}, "enum"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "namespace"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true, canBeName: true}, "record"),
			wordsAs(word{role: modifier, kind: Type}, "using"),
			wordsAs(word{role: modifier}, `abstract const explicit extern implicit internal override private protected public
				readonly sealed static unsafe virtual volatile`),
			wordsAs(word{role: modifier, canBeName: true}, "async partial required"),
			wordsAs(word{role: continuing, canBeName: true}, "where"),
			wordsAs(word{role: reserved}, `as base break case catch checked continue default delegate do else event finally
				fixed for foreach goto if in is lock new operator out params ref return sizeof stackalloc switch this throw try
				typeof unchecked while true false null`),
			wordsAs(word{role: reserved, canBeName: true}, `bool byte char decimal double float int long object sbyte short string uint
				ulong ushort void var await get set init value yield dynamic`),
		),
		outline: (&typeFirst{properties: true}).read,
	}
}

// csharpSpecial reads strings with prefixes and preprocessor lines.
func csharpSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	if src[i] == '#' {
		if x.first {
			x.skipLine()
			return true
		}
		return false
	}
	const maxPrefix = 8 // number of $ and @ before a string
	for i < len(src) && i < x.pos+maxPrefix && (src[i] == '$' || src[i] == '@') {
		i++
	}
	if i >= len(src) || src[i] != '"' {
		return false
	}
	prefix := src[x.pos:i]
	quotes := i
	for quotes < len(src) && src[quotes] == '"' {
		quotes++
	}
	if n := quotes - i; n >= 3 && bytes.IndexByte(prefix, '@') < 0 { // raw: as many quotes as it began with
		if end := bytes.Index(src[quotes:], src[i:quotes]); end >= 0 {
			x.stringTo(x.pos, quotes+end+n)
		} else {
			x.stringTo(x.pos, len(src))
		}
		return true
	}
	if len(prefix) == 0 {
		return false
	}
	q := quote{close: `"`, escape: '\\'}
	if bytes.IndexByte(prefix, '@') >= 0 {
		q.escape, q.doubled, q.multiline = 0, true, true
	}
	if bytes.IndexByte(prefix, '$') >= 0 {
		q.interpolation = "{"
	}
	x.quoted(&q, x.pos, i+1)
	return true
}

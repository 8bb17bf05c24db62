package lang

import "bytes"

func ruby() *Language {
	return &Language{
		Name: "ruby",
		exts: []string{".rb", ".rake", ".gemspec", ".ru"}, names: []string{"Rakefile", "Gemfile", "Vagrantfile", "Podfile", "Fastfile"},
		shebang: []string{"ruby"},
		text: text{
			imports: importing{texts: "require require_relative load autoload", qualified: true},
			line:    []string{"#"},
			quotes: []quote{
				{open: `"`, close: `"`, escape: '\\', multiline: true, interpolation: "#{"},
				{open: "'", close: "'", escape: '\\', multiline: true},
				{open: "`", close: "`", escape: '\\', multiline: true, interpolation: "#{"},
			},
			nameStart: "@$", nameEnd: "?!", specialBytes: "%/<=?_\"'`", special: rubySpecial,
		},
		words: words(
			wordsAs(word{role: definer, kind: Function}, "def"),
			wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
			wordsAs(word{role: definer, kind: Module, hasMembers: true}, "module"),
			wordsAs(word{role: modifier, canBeName: true}, "private protected public private_class_method module_function memoize"),
			wordsAs(word{role: reserved}, `alias and begin break case do else elsif end ensure false for if in next nil not or redo
				rescue retry return self super then true undef unless until when while yield`),
			wordsAs(word{role: reserved, canBeName: true}, "attr_accessor attr_reader attr_writer require require_relative include extend raise puts new"),
		),
		outline: (&lines{name: rubyName, withoutKeyword: rubyWithoutKeyword, endsSignature: rubyEndsSignature, methods: true}).read,
	}
}

// rubyName finds the name after a keyword: `def self.name`, `class A::B`.
func rubyName(o *outline, at int) int {
	name := at + 1
	if o.marks(name, "<<") { // members of `class << self` belong to the enclosing class
		return -1
	}
	if o.word(at).kind == Function {
		if o.isMark(name+1, '.') {
			name += 2
		}
		if o.at(name).kind != nameToken { // an operator
			return -1
		}
		return name
	}
	if o.marks(name, "::") { // at the top level
		name += 2
	}
	for o.isMark(name+1, ':') && o.isMark(name+2, ':') && o.isName(name+3) {
		name += 3
	}
	return name
}

func rubyEndsSignature(o *outline, i int) bool { return o.isMark(i, '=') && !o.adjoins(i-1) }

// rubyWithoutKeyword reads constants and attributes.
func rubyWithoutKeyword(o *outline, at int) int {
	t := o.at(at)
	if !t.first || t.kind != nameToken {
		return 0
	}
	if o.is(at, "def") {
		return rubyOperator(o, at)
	}
	switch string(o.text(at)) {
	case "attr_accessor", "attr_reader", "attr_writer":
		end := at + 1
		for end < len(o.tokens) && (!o.tokens[end].first || o.isMark(end-1, ',')) {
			end++
		}
		for i := at + 1; i+1 < end; i++ {
			if o.isMark(i, ':') && o.isName(i+1) {
				o.defineAs(string(o.text(i+1)), Property, i+1, string(o.text(at))+" :", i+1, i+2)
			}
		}
		return end
	}
	if c := o.src[t.start]; c >= 'A' && c <= 'Z' && o.isMark(at+1, '=') && !o.isMark(at+2, '=') && !o.isMark(at+2, '~') {
		kind := Constant
		if o.is(at+2, "Struct") || o.is(at+2, "Class") || o.is(at+2, "Data") {
			kind = Class
		}
		end := at + 2
		for end < len(o.tokens) && !o.tokens[end].first {
			end = o.skip(end)
		}
		o.define(kind, at, at, end)
		return end
	}
	return 0
}

// rubyOperator reads `def <=>(other)` and `def self.[](key)`.
func rubyOperator(o *outline, at int) int {
	from := at + 1
	if o.isMark(from+1, '.') {
		from += 2
	}
	to := from
	for o.at(to).mark != 0 && !o.at(to).first && (!o.isMark(to, '(') || to == from) && (to == from || o.adjoins(to-1)) {
		to++
	}
	if to == from || o.isMark(from, '(') {
		return 0
	}
	end := to
	if o.isMark(to, '(') {
		end = o.skip(to)
	}
	name := string(o.src[o.at(from).start:o.at(to-1).end])
	d := o.defineAs(name, Method, from, "", at, end)
	o.levels = append(o.levels, level{parent: d, col: int(o.at(at).col), kind: Function})
	return end
}

// rubySpecial reads regular expressions, %-literals, heredocs, and text that is not code.
func rubySpecial(x *lexer) bool {
	src, i := x.src, x.pos
	rest := src[i:]
	p := x.last()
	value := p.kind == numberToken || p.kind == stringToken || p.mark == ')' || p.mark == ']' || p.mark == '}' || p.kind == nameToken && x.l.meaning[p.word].role == 0
	spaced := i > 0 && (src[i-1] == ' ' || src[i-1] == '\t') && len(rest) > 1 && rest[1] != ' ' && rest[1] != '='
	switch rest[0] {
	case '\'', '"', '`': // `$'` is a name
		if int(p.end) == i && p.kind == nameToken && p.end-p.start == 1 && src[p.start] == '$' {
			x.pos++
			return true
		}
		return false
	case '_':
		if x.first && hasPrefix(rest, "__END__") && (len(rest) == 7 || rest[7] == '\n' || rest[7] == '\r') {
			x.skipTo(len(src))
			return true
		}
		x.name()
		return true
	case '=':
		if x.first && i == x.lineStart && hasPrefix(rest, "=begin") {
			if end := bytes.Index(rest, []byte("\n=end")); end >= 0 {
				x.skipTo(i + end + 1)
				x.skipLine()
			} else {
				x.skipTo(len(src))
			}
			return true
		}
		return false
	case '<':
		if !hasPrefix(rest, "<<") || len(rest) < 3 {
			return false
		}
		switch c := rest[2]; {
		case c == '~' || c == '-':
			return readHeredoc(x, i+3, false)
		case c >= 'A' && c <= 'Z' && (!value || spaced):
			return readHeredoc(x, i+2, false)
		}
		return false
	case '?': // a character literal
		if !value && len(rest) > 1 && rest[1] > ' ' && (len(rest) == 2 || x.l.classes[rest[2]] != letter) {
			x.stringTo(i, i+2)
			return true
		}
		return false
	case '/':
		if value && !spaced || value && p.kind != nameToken || !x.mayScanAhead() {
			return false
		}
		end := endOfQuote(src[:min(len(src), i+maxRegexp)], i+1, &quote{close: "/", escape: '\\', interpolation: "#{"}, 0)
		if end <= i+1 || src[end-1] != '/' {
			x.wastedScans += end - i
			return false
		}
		x.stringTo(i, end)
		return true
	}
	if value && (!spaced || p.kind != nameToken) || len(rest) < 3 { // %
		return false
	}
	at := 1
	if bytes.IndexByte([]byte("wWiIqQrsx"), rest[1]) >= 0 {
		at = 2
	}
	open := rest[at]
	if x.l.classes[open] == letter || x.l.classes[open] == digit || open <= ' ' {
		return false
	}
	x.stringTo(i, endOfGroup(src, i+at))
	return true
}

// endOfGroup returns the end of the literal whose opening mark is src[at]. Its closing mark is the
// counterpart of a bracket, otherwise the same mark.
func endOfGroup(src []byte, at int) int {
	open := src[at]
	closing := open
	switch open {
	case '(':
		closing = ')'
	case '[':
		closing = ']'
	case '{':
		closing = '}'
	case '<':
		closing = '>'
	}
	depth := 1
	for i := at + 1; i < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case closing:
			if depth--; depth == 0 {
				return i + 1
			}
		case open:
			depth++
		}
	}
	return len(src)
}

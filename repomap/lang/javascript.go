package lang

import "strings"

func javascript() *Language {
	return &Language{
		Name: "javascript", family: "javascript",
		exts: []string{".js", ".mjs", ".cjs", ".jsx"}, shebang: []string{"node", "deno", "bun"},
		text: scriptText(),
		words: words(scriptWords(),
			wordsAs(word{role: modifier}, "export default"),
			wordsAs(word{role: modifier, canBeName: true}, "async static get set"),
		),
		outline: (&braces{lines: true, name: scriptName, withoutKeyword: scriptWithoutKeyword, value: scriptFunction}).read,
	}
}

func scriptText() text {
	return text{
		imports: importing{texts: "import from require"},
		line:    []string{"//"},
		block:   []block{{open: "/*", close: "*/"}},
		quotes: []quote{
			{open: `"`, close: `"`, escape: '\\'},
			{open: "'", close: "'", escape: '\\'},
			{open: "`", close: "`", escape: '\\', multiline: true, interpolation: "${"},
		},
		nameStart: "$", specialBytes: "/#", special: scriptSpecial,
	}
}

func scriptWords() map[string]word {
	return words(
		wordsAs(word{role: definer, kind: Function}, "function"),
		wordsAs(word{role: definer, kind: Class, hasMembers: true}, "class"),
		wordsAs(word{role: definer, kind: Constant}, "const"),
		wordsAs(word{role: definer, kind: Variable}, "let var"),
		wordsAs(word{role: continuing}, "extends"),
		wordsAs(word{role: reserved}, `await break case catch continue debugger delete do else finally for if import in
			instanceof new return super switch this throw try typeof void while with yield null true false`),
		wordsAs(word{role: reserved, canBeName: true}, "of undefined console require"),
	)
}

// maxRegexp limits the length of a regular expression, in bytes. Text after a slash that begins none is read
// twice.
const maxRegexp = 500

// scriptSpecial reads regular expressions, and the first line of scripts.
func scriptSpecial(x *lexer) bool {
	src, i := x.src, x.pos
	if src[i] == '#' {
		if i == 0 && hasPrefix(src, "#!") {
			x.skipLine()
			return true
		}
		return false
	}
	if i+1 >= len(src) || src[i+1] == '/' || src[i+1] == '*' {
		return false
	}
	switch p := x.last(); p.kind {
	case numberToken, stringToken:
		return false
	case nameToken:
		if w := x.l.meaning[p.word]; w.role != reserved || w.canBeName {
			return false
		}
	case markToken:
		if p.mark == ')' || p.mark == ']' || p.mark == '}' || p.mark == '<' { // `</` is markup
			return false
		}
	}
	if !x.mayScanAhead() {
		return false
	}
	if end := endOfRegexp(src, i); end > 0 {
		x.stringTo(i, end)
		return true
	}
	x.wastedScans += maxRegexp
	return false
}

// beginsRegexp reports whether a slash, judging only by the bytes before it, begins a regular
// expression rather than a division.
func beginsRegexp(src []byte, slash int) bool {
	for i := slash - 1; i >= max(0, slash-16); i-- {
		if c := src[i]; c != ' ' && c != '\t' && c != '\n' {
			return strings.IndexByte("(,=:[!&|?{;+", c) >= 0
		}
	}
	return false
}

// endOfRegexp returns the end of the regular expression that begins with a slash; 0 if its line or
// the text ends before, or if it is longer than maxRegexp.
func endOfRegexp(src []byte, slash int) int {
	class := false
	for i := slash + 1; i < min(len(src), slash+maxRegexp) && src[i] != '\n'; i++ {
		switch c := src[i]; {
		case c == '\\':
			i++
		case c == '[':
			class = true
		case c == ']':
			class = false
		case c == '/' && !class:
			return i + 1
		}
	}
	return 0
}

// scriptName finds the name after a keyword: `function* name`.
func scriptName(o *outline, at int) int {
	name := at + 1
	if o.isMark(name, '*') {
		name++
	}
	switch o.word(at).kind {
	case Function, Class:
		if o.word(at).kind == Class && o.isMark(at-1, '=') && o.is(at-2, "exports") {
			return name
		}
		// In an expression the name is local.
		if !o.at(at).first && o.word(at-1).role != modifier && !o.isMark(at-1, ';') && !o.isMark(at-1, '}') {
			return -1
		}
		if before := o.at(at - 1).mark; before != 0 && (strings.IndexByte("=(,:?&|[", before) >= 0 || before == '>' && o.isMark(at-2, '=')) {
			return -1
		}
	case Constant, Variable:
		if o.inType() || o.is(at-1, "for") || o.isMark(at-1, '(') || o.is(name, "enum") ||
			o.isMark(name+1, '=') && o.is(name+2, "require") {
			return -1
		}
	}
	return name
}

// scriptWithoutKeyword reads members of classes and assignments to exports or a prototype.
func scriptWithoutKeyword(o *outline, at int) int {
	if o.inType() {
		return scriptMember(o, at)
	}
	if o.is(at, "declare") {
		if next := scriptAmbient(o, at); next > 0 {
			return next
		}
	}
	if next := scriptNextDeclarator(o, at); next > 0 {
		return next
	}
	if !o.tokens[at].first || o.tokens[at].kind != nameToken || len(o.levels) > 0 {
		return 0
	}
	return scriptAssignment(o, at)
}

// scriptNextDeclarator reads further declarations after a comma: `const a = 1, b = 2`.
func scriptNextDeclarator(o *outline, at int) int {
	if !o.isMark(at-1, ',') || !o.isName(at) || len(o.defs) == 0 || o.is(at+2, "require") {
		return 0
	}
	kind := o.defs[len(o.defs)-1].kind
	if kind == Function {
		kind = Constant
	}
	if kind != Constant && kind != Variable {
		return 0
	}
	switch {
	case o.isMark(at+1, '=') && !o.isMark(at+2, '=') && !o.isMark(at+2, '>'):
		if end := scriptFunction(o, at+2); end > 0 {
			o.define(Function, at, at, end)
			return o.skipBody(end)
		}
	case !o.isMark(at+1, ',') && !o.isMark(at+1, ';'):
		return 0
	}
	o.define(kind, at, at, at+1)
	return at + 1
}

// scriptAmbient enters `declare global {` and `declare module "name" {`.
func scriptAmbient(o *outline, at int) int {
	brace := at + 2
	if name := o.at(brace); name.kind == stringToken && o.is(at+1, "module") {
		brace++
	} else if !o.is(at+1, "global") {
		return 0
	}
	if !o.isMark(brace, '{') || o.at(brace).mate < 0 {
		return 0
	}
	parent := o.parent()
	if text := strings.Trim(string(o.text(at+2)), "'\""); brace == at+3 && text != "" {
		parent = o.defineAs(text, Module, at+2, "", at, brace)
	}
	o.levels = append(o.levels, level{end: closingToken(o, brace), parent: parent, col: -1, kind: Module})
	return brace + 1
}

// scriptMember reads `name(…) {`, `name = (…) =>` and, in TypeScript, `name(…): type;`.
func scriptMember(o *outline, at int) int {
	t := o.tokens[at]
	if !t.first && !o.isMark(at-1, '{') && !o.isMark(at-1, ';') && !o.isMark(at-1, '}') && !o.isMark(at-1, ')') {
		return 0
	}
	name := at
	for o.word(name).role == modifier && (o.isName(name+1) || o.word(name+1).role != 0 || o.isMark(name+1, '*') || o.isMark(name+1, '#')) {
		name++
	}
	if o.isMark(name, '*') {
		name++
	}
	if o.isMark(name, '#') {
		name++
	}
	if o.at(name).kind != nameToken || o.word(name).role == definer && !o.isMark(name+1, '(') {
		return 0
	}
	b := braces{lines: true, typeBrace: true}
	next := name + 1
	if o.isMark(next, '?') || o.isMark(next, '!') {
		next++
	}
	switch {
	case (o.isMark(next, '(') || o.isMark(next, '<')) && o.is(name, "new") && o.levels[len(o.levels)-1].kind == Interface:
		return o.skip(next) // a constructor has no name
	case o.isMark(next, '(') || o.isMark(next, '<'):
		end := b.end(o, next, false)
		if end == next || !o.isMark(next, '<') && o.at(next).mate < 0 {
			return 0
		}
		o.define(Method, name, at, end)
		return o.skipBody(end)
	case o.isMark(next, '=') || o.isMark(next, ':'):
		// A field; its value may be a function.
		eq := next
		if o.isMark(next, ':') {
			eq = b.end(o, next+1, true)
		}
		if o.isMark(eq, '=') {
			end := scriptFunction(o, eq+1)
			if end == 0 {
				return scriptExpression(o, eq+1)
			}
			o.define(Method, name, at, end)
			if o.marks(end, "=>") && !o.isMark(end+2, '{') {
				return scriptExpression(o, end+2)
			}
			return o.skipBody(end)
		}
		return max(eq, at+1)
	}
	return 0
}

// scriptExpression returns the index of the token after an expression. A token that begins a line
// ends it, unless an operator precedes or follows the line end.
func scriptExpression(o *outline, at int) int {
	i := o.skip(at)
	for i < len(o.tokens) {
		t := o.at(i)
		switch t.mark {
		case ';', '}', ')', ']':
			return i
		}
		if t.first && !scriptContinues(o, i) {
			return i
		}
		i = o.skip(i)
	}
	return i
}

// scriptContinues reports whether the first token of a line continues an expression.
func scriptContinues(o *outline, i int) bool {
	const operators = ".?:&|+-*/%<=,!~^("
	before := o.at(i - 1).mark
	return before != 0 && strings.IndexByte(operators, before) >= 0 || before == '>' && (o.isMark(i-2, '=') || o.isMark(i, '(')) ||
		o.isMark(i-1, ')') && o.isMark(i, '>') || o.at(i).mark != 0 && strings.IndexByte(".?:&|+-/%<=,>", o.at(i).mark) >= 0 ||
		o.word(i-1).role == reserved && !o.word(i-1).canBeName && !o.is(i-1, "this") && !o.is(i-1, "null") && !o.is(i-1, "true") && !o.is(i-1, "false")
}

// skipBody returns the index of the token after a body that opens at i, or i itself.
func (o *outline) skipBody(i int) int {
	if o.isMark(i, '{') {
		return o.skip(i)
	}
	return i
}

// scriptFunction returns the end of a function's signature if the value at a token is a function,
// otherwise 0.
func scriptFunction(o *outline, at int) int {
	i := at
	if o.is(i, "async") {
		i++
	}
	if o.is(i, "function") {
		b := braces{lines: true, typeBrace: true}
		return b.end(o, i+1, false)
	}
	if o.isMark(i, '<') {
		for depth := 0; i < min(at+64, len(o.tokens)); i++ {
			if o.isMark(i, '<') {
				depth++
			} else if o.isMark(i, '>') && !o.isMark(i-1, '=') {
				if depth--; depth == 0 {
					i++
					break
				}
			}
		}
	}
	switch {
	case o.isMark(i, '('):
		i = o.skip(i)
	case o.isName(i):
		i++
	default:
		return 0
	}
	if o.isMark(i, ':') { // the type of the result
		for limit := i + 64; i < min(limit, len(o.tokens)); i = o.skip(i) {
			if o.marks(i, "=>") || o.isMark(i, ';') {
				break
			}
		}
	}
	if o.marks(i, "=>") {
		return i
	}
	return 0
}

// isReference reports whether a value is only a name, such as that of a function defined elsewhere.
func isReference(o *outline, at int) bool {
	if !o.isName(at) {
		return false
	}
	for o.isMark(at+1, '.') && o.at(at+2).kind == nameToken {
		at += 2
	}
	return at+1 >= len(o.tokens) || o.tokens[at+1].first && !o.isMark(at+1, '.') || o.isMark(at+1, ';') || o.isMark(at+1, '=')
}

// scriptAssignment reads `exports.name = function` and `Type.prototype.name = function`.
func scriptAssignment(o *outline, at int) int {
	i := at
	for o.isMark(i+1, '.') && o.at(i+2).kind == nameToken && i-at < 8 {
		i += 2
	}
	if i == at || !o.isMark(i+1, '=') || o.isMark(i+2, '=') || o.is(i, "exports") {
		return 0
	}
	if o.is(i+2, "class") {
		return scriptClass(o, at, i)
	}
	end := scriptFunction(o, i+2)
	if end == 0 {
		if !o.is(i-2, "exports") && (!o.is(at, "exports") || i != at+2) || isReference(o, i+2) || !o.isName(i) {
			return 0
		}
		if o.isMark(i+2, '{') || o.is(i+2, "require") || o.is(i+2, "void") {
			return 0
		}
		o.define(Constant, i, at, i+1)
		return i + 2
	}
	kind := Function
	if o.is(i-2, "prototype") {
		kind = Method
	}
	o.define(kind, i, at, end)
	return o.skipBody(end)
}

// scriptClass enters `Outer.Name = class {`.
func scriptClass(o *outline, from, name int) int {
	b := braces{lines: true, typeBrace: true}
	end := b.end(o, name+3, false)
	if !o.isMark(end, '{') || o.at(end).mate < 0 {
		return 0
	}
	def := o.define(Class, name, from, end)
	o.levels = append(o.levels, level{end: closingToken(o, end), parent: def, col: -1, kind: Class})
	return end + 1
}

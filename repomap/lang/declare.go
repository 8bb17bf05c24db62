package lang

// typeFirst finds definitions in languages where a name follows its type and precedes its
// parameters: `static int name(int x) {`. It reads one statement after the other, at the top level
// and in the bodies of types and namespaces.
type typeFirst struct {
	prototypes bool // `int name(int x);` at the top level is a definition
	properties bool // `int Name { get; }` and `int Name => 1;` are definitions
	// macros means that a name in capitals before parentheses is not a function.
	macros bool
}

func (d *typeFirst) read(o *outline) {
	for i := 0; i < len(o.tokens); {
		if n := len(o.levels); n > 0 && i >= o.levels[n-1].end {
			if i == o.levels[n-1].end {
				i++
			}
			o.levels = o.levels[:n-1]
			continue
		}
		i = max(d.statement(o, i), i+1)
	}
}

// parts has the indices of the tokens by which a statement is classified; -1 if absent. name is valid only
// with params, and alias only with typedef or using.
type parts struct {
	from    int // after attributes
	typeAt  int // the keyword of a type: class, struct, ...
	params  int // the first parentheses after a name
	name    int // the name before params
	equals  int
	end     int // the token that ends the statement: a brace or a semicolon
	arrow   int // `=>`
	alias   int // `typedef` or `using`
	typedef bool
	using   bool
}

// statement reads a statement and returns the index of the token after it, or of the first token of
// its body.
func (d *typeFirst) statement(o *outline, at int) int {
	if o.isMark(at, macroMark) {
		end := at + 2
		if t := o.at(end); t.kind == stringToken && o.adjoins(at+1) && o.isMark(at, macroMark) && o.src[t.start] == '(' {
			end++
		}
		o.defineAs(string(o.text(at+1)), Macro, at+1, "#define ", at+1, end)
		return end
	}
	p := d.parts(o, at)
	body := o.isMark(p.end, '{')
	switch {
	case body && o.at(p.end-1).kind == stringToken && o.is(p.end-2, "extern"):
		o.levels = append(o.levels, level{end: closingToken(o, p.end), parent: o.parent(), kind: Module})
		return p.end + 1
	case p.typeAt >= 0 && !p.typedef && (body || o.isMark(p.end, ';')):
		if next := d.typeOrNamespace(o, p); next > 0 {
			return next
		}
	case p.typedef || p.using:
		return d.readAlias(o, p)
	}
	if p.params > 0 && (p.equals < 0 || p.equals > p.params) {
		d.function(o, p, body)
	} else if body && d.isCompactConstructor(o, p) {
		o.define(Method, p.end-1, p.from, p.end)
	} else if d.macros && p.equals > 0 && o.is(p.from, "template") && o.is(p.equals-2, "concept") && o.isName(p.equals-1) {
		o.define(Trait, p.equals-1, p.from, p.equals)
	} else if d.properties && o.inType() && p.params < 0 && (body && p.equals < 0 || p.arrow > 0) {
		d.property(o, p)
	}
	if body {
		next := o.skip(p.end)
		if o.isMark(next, ';') {
			next++
		}
		return next
	}
	return p.end + 1
}

// parts scans a statement up to its body or its end.
func (d *typeFirst) parts(o *outline, at int) parts {
	if o.is(at, "__extension__") {
		at++
	}
	p := parts{from: at, typeAt: -1, params: -1, equals: -1, arrow: -1}
	for i := at; ; {
		if i >= len(o.tokens) {
			p.end = len(o.tokens)
			return p
		}
		if n := len(o.levels); n > 0 && i >= o.levels[n-1].end {
			p.end = i - 1
			return p
		}
		t := &o.tokens[i]
		if t.mark == macroMark && i > at {
			p.end = i - 1
			return p
		}
		switch w := o.word(i); {
		case t.mark == ';' || t.mark == '}':
			p.end = i
			return p
		case t.mark == '{':
			if p.equals > 0 || p.arrow > 0 { // in the value of a variable, or in the body of an expression function
				i = o.skip(i)
				continue
			}
			if p.params > 0 && d.isInitialiser(o, p, i) {
				i = o.skip(i)
				continue
			}
			p.end = i
			return p
		case t.mark == '[' && i == p.from, t.mark == '@' && !o.is(i+1, "interface"):
			i = d.skipAttribute(o, i)
			if p.params < 0 && p.typeAt < 0 && p.equals < 0 {
				p.from = i
			}
			continue
		case t.mark == ':' && i == p.from+1 && o.inType() && !o.isMark(i+1, ':') && !d.properties: // `public:`
			p.end = i
			return p
		case t.mark == '(' && (o.is(i-1, "operator") || o.isMark(i+1, '*')): // part of the name, or a pointer to a function
		case t.mark == '(' && p.params < 0 && p.equals < 0 && p.arrow < 0 && (o.isName(i-1) && i > p.from || d.isOperatorParams(o, p.from, i)):
			p.params, p.name = i, i-1
		case t.mark == '<' && d.properties && o.isName(i-1) && i > p.from && p.typeAt < 0 && p.params < 0 && p.equals < 0 && p.arrow < 0:
			next := skipAngles(o, i)
			if o.isMark(next, '(') {
				p.params, p.name = next, i-1
			}
			i = next
			continue
		case t.mark == '=' && d.properties && o.isMark(i+1, '>') && o.adjoins(i):
			if p.arrow < 0 && p.equals < 0 {
				p.arrow = i
			}
			i++
		case t.mark == '=' && p.equals < 0 && !o.is(i-1, "operator") && !o.is(i-2, "operator") && !o.isMark(i-1, '=') && !o.isMark(i+1, '='):
			p.equals = i
		case t.mark == '<' && o.is(i-1, "template"):
			i = skipAngles(o, i)
			continue
		case w.role == definer && p.typeAt < 0 && p.params < 0 && p.equals < 0 && !o.isMark(i-1, '.') && (!w.canBeName || o.isName(i+1)):
			p.typeAt = i
		case w.kind == Type && w.role == modifier && (i == p.from || o.is(p.from, "template") && o.isMark(i-1, '>')):
			p.alias = i
			p.typedef = o.is(i, "typedef")
			p.using = !p.typedef
		}
		i = o.skip(i)
	}
}

// isInitialiser reports whether a brace begins an initialiser before the body of a constructor:
// `Name(int x) : a{x}, b(x) {`.
func (d *typeFirst) isInitialiser(o *outline, p parts, brace int) bool {
	next := o.skip(brace)
	return o.isName(brace-1) && brace-1 > o.skip(p.params) && (o.isMark(next, ',') || o.isMark(next, '{')) && o.at(brace).mate > 0
}

// isOperatorParams reports whether a parenthesis begins the parameters of `operator+`.
func (d *typeFirst) isOperatorParams(o *outline, from, at int) bool {
	const maxTokens = 6 // tokens, as in `operator const char*(`
	for i := at - 1; i >= max(from, at-maxTokens); i-- {
		if o.is(i, "operator") {
			return true
		}
	}
	return false
}

// skipAttribute returns the index of the token after `[x]` or `@Name(…)`.
func (d *typeFirst) skipAttribute(o *outline, at int) int {
	if o.isMark(at, '[') {
		return o.skip(at)
	}
	i := at + 2
	for o.isMark(i, '.') {
		i += 2
	}
	if o.isMark(i, '(') {
		return o.skip(i)
	}
	return min(i, len(o.tokens))
}

// skipAngles returns the index of the token after `<…>`, or of a `;` or `{` in it. If it finds none of
// these within 200 tokens, it returns the index of the token after `<`.
func skipAngles(o *outline, at int) int {
	const allowance = 1 << 12
	if o.wastedScans > 4*at+allowance {
		return at + 1
	}
	depth, i := 0, at
	for i < min(at+200, len(o.tokens)) {
		switch o.tokens[i].mark {
		case '<':
			depth++
		case '>':
			if depth--; depth == 0 {
				return i + 1
			}
		case ';', '{':
			return i
		}
		i = o.skip(i)
	}
	o.wastedScans += i - at
	return at + 1
}

// typeOrNamespace reads `class Name … {`, `namespace a.b {`; it returns 0 if the keyword is only part
// of a type, as in `struct name *f() {`.
func (d *typeFirst) typeOrNamespace(o *outline, p parts) int {
	w := o.word(p.typeAt)
	kind, name := w.kind, p.typeAt+1
	if kind == Enum || kind == Class { // `enum class`, `record struct`
		if o.word(name).role == definer && (!o.word(name).canBeName || o.isName(name+1)) {
			name++
		}
	}
	for next := -1; next != name; { // attributes
		if next > 0 {
			name = next
		}
		if next = skipAttributes(o, name); next == name && (o.isMark(name, '[') || o.isMark(name, '@')) {
			next = d.skipAttribute(o, name)
		}
	}
	// Macros for visibility, and `alignas(8)` may come first: the last name is used.
	for o.isName(name) && (o.isName(name+1) && !o.is(name+1, "final") && o.word(name+1).role != continuing || d.macros && o.isMark(name+1, '(') && (kind != Class || isAllCaps(o.text(name))) && o.isName(o.skip(name+1))) {
		name++
		if o.isMark(name, '(') {
			name = o.skip(name)
		}
	}
	for kind != Module && o.isName(name) && o.marks(name+1, "::") && o.isName(name+3) { // `class Outer::Inner {`
		name += 3
	}
	if kind == Module {
		for (o.isMark(name+1, '.') || o.isMark(name+1, ':')) && name < p.end {
			name++
			for o.isMark(name, ':') || o.isMark(name, '.') {
				name++
			}
		}
	}
	body := o.isMark(p.end, '{')
	if !o.isName(name) || name >= p.end {
		if !body || kind == Enum || name < p.end {
			return 0
		}
		o.levels = append(o.levels, level{end: closingToken(o, p.end), parent: o.parent(), kind: w.kind})
		return p.end + 1
	}
	next := name + 1
	if o.isMark(next, '<') {
		next = skipAngles(o, next)
	}
	record := o.is(p.typeAt, "record")
	switch {
	case next == p.end && (body || record || d.properties):
	case (body || d.properties) && (o.isMark(next, ':') || o.word(next).role == continuing || o.is(next, "final")):
	case o.isMark(next, '(') && (record || d.properties):
	default:
		return 0
	}
	def := o.define(kind, name, p.from, p.end)
	if !body {
		if kind == Module { // `namespace a.b;` applies to the whole file
			o.levels = append(o.levels, level{end: len(o.tokens), parent: def, kind: kind})
		}
		return p.end + 1
	}
	if kind == Enum && (o.at(p.end).mate < 0 || !d.enumMembers(o, p.end)) {
		return o.skip(p.end)
	}
	if kind == Enum {
		return d.enumBody(o, p.end, def)
	}
	o.levels = append(o.levels, level{end: closingToken(o, p.end), parent: def, kind: kind})
	return p.end + 1
}

// closingToken returns the index of the bracket that closes the one at a token; the number of tokens if it
// is never closed.
func closingToken(o *outline, at int) int {
	if m := int(o.at(at).mate); m > at {
		return m
	}
	return len(o.tokens)
}

// enumMembers reports whether an enumeration has members other than its values.
func (d *typeFirst) enumMembers(o *outline, brace int) bool {
	end := closingToken(o, brace)
	for i := brace + 1; i < end; i = o.skip(i) {
		if o.isMark(i, ';') {
			return true
		}
	}
	return false
}

// enumBody continues after the values.
func (d *typeFirst) enumBody(o *outline, brace, def int) int {
	end := closingToken(o, brace)
	i := brace + 1
	for i < end && !o.isMark(i, ';') {
		i = o.skip(i)
	}
	o.levels = append(o.levels, level{end: end, parent: def, kind: Enum})
	return i + 1
}

// function reads `type name(…)`.
func (d *typeFirst) function(o *outline, p parts, body bool) {
	name := p.name
	kind := Function
	if o.inType() {
		kind = Method
	}
	text := string(o.text(name))
	if !o.isName(name) {
		for name > p.from && !o.is(name, "operator") {
			name--
		}
		text = "operator"
		for i := name + 1; i < p.params; i++ {
			if o.at(i).kind == nameToken { // `operator new`
				text += " "
			}
			text += string(o.text(i))
		}
	} else if at, full := operatorName(o, p.from, name); at >= 0 {
		name, text = at, full
	}
	first := name
	for first-2 >= p.from && o.isMark(first-1, ':') { // `Type::name`
		kind = Method
		first -= 2
		if o.isMark(first, ':') {
			first--
		}
		if o.isMark(first, '>') {
			break
		}
	}
	destructor := o.isMark(name-1, '~')
	typed := first > p.from && !destructor
	if typed && o.isMark(first-1, '.') && !d.implementsInterface(o, p, first, body) || o.is(name-1, "new") || o.is(name-1, "return") || o.is(name-1, "else") {
		return
	}
	if d.properties && o.word(p.from).role != 0 && hasDelegate(o, p.from, name) {
		o.define(Type, name, p.from, p.end)
		return
	}
	if !body {
		// A prototype, or a call.
		switch {
		case o.inType() && (typed || p.from == first || destructor):
		case d.prototypes && typed && kind == Function && len(o.levels) < 4:
		default:
			return
		}
		if d.macros && isAllCaps(o.text(name)) {
			return
		}
	}
	if !typed && !o.inType() && kind == Function && (!body || d.macros && isAllCaps(o.text(name))) {
		return
	}
	if d.macros && !typed && o.inType() && isAllCaps(o.text(name)) {
		return
	}
	if o.at(p.params).mate < 0 {
		return
	}
	end := p.end
	for i := o.skip(p.params); i < p.end; i = o.skip(i) { // skip initialisers of a constructor, `= 0`
		if o.isMark(i, ':') && !o.isMark(i+1, ':') && !o.isMark(i-1, ':') || o.isMark(i, '=') {
			end = i
			break
		}
	}
	if p.arrow > 0 {
		end = p.arrow
	}
	if destructor {
		text = "~" + text
	}
	o.defineAs(text, kind, name, "", p.from, end)
}

// operatorName returns the index and the name of `operator bool`, `operator std::string` or
// `operator ""_km`, given its last part; -1 for other names.
func operatorName(o *outline, from, name int) (at int, text string) {
	text = string(o.text(name))
	at = name - 1
	if o.at(at).kind == stringToken {
		text = `""` + text
		at--
	}
	for at-2 >= from && o.marks(at-1, "::") && o.at(at-2).kind == nameToken {
		text = string(o.text(at-2)) + "::" + text
		at -= 3
	}
	if at < from || !o.is(at, "operator") {
		return -1, ""
	}
	return at, "operator " + text
}

// isCompactConstructor reports whether a statement is a record's compact constructor, `Point {`.
func (d *typeFirst) isCompactConstructor(o *outline, p parts) bool {
	parent := o.parent()
	if d.properties || d.macros || !o.inType() || parent < 0 || p.params > 0 || p.equals > 0 || p.typeAt >= 0 || !o.isName(p.end-1) {
		return false
	}
	f := o.defs[parent]
	return string(o.text(p.end-1)) == string(o.sig[f.nameFrom:f.nameTo])
}

// implementsInterface reports whether a name after a dot implements a member of an interface:
// `int IShape.Corners() {`.
func (d *typeFirst) implementsInterface(o *outline, p parts, name int, body bool) bool {
	if !d.properties || !o.inType() || !body && p.arrow < 0 {
		return false
	}
	at := name
	for at-2 > p.from && o.isMark(at-1, '.') {
		at -= 2
		for depth := 0; at > p.from; at-- { // `IList<Item>.`
			if o.isMark(at, '>') {
				depth++
			} else if o.isMark(at, '<') {
				depth--
			} else if depth == 0 {
				break
			}
		}
		if o.at(at).kind != nameToken {
			return false
		}
	}
	return at > p.from && !o.isMark(at-1, '.')
}

// hasDelegate reports whether a signature declares a function type.
func hasDelegate(o *outline, from, to int) bool {
	for i := from; i < to; i++ {
		if o.is(i, "delegate") {
			return true
		}
	}
	return false
}

// isAllCaps reports whether a name is all in capitals, as macros are.
func isAllCaps(name []byte) bool {
	for _, c := range name {
		if c >= 'a' && c <= 'z' {
			return false
		}
	}
	return len(name) > 1
}

// property reads `type Name {` and `type Name =>`.
func (d *typeFirst) property(o *outline, p parts) {
	end := p.end
	if p.arrow > 0 {
		end = p.arrow
	}
	if name := end - 1; name > p.from && o.isName(name) && !o.is(p.from, "event") {
		o.define(Property, name, p.from, end)
	}
}

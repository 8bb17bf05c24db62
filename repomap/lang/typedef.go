package lang

import "bytes"

// readAlias reads `typedef … name, *name;` and `using name = …;`.
func (d *typeFirst) readAlias(o *outline, p parts) int {
	body := o.isMark(p.end, '{')
	end := p.end
	if body { // `typedef struct {…} name;`
		end = o.skip(end)
		for end < len(o.tokens) && !o.isMark(end, ';') && !o.isMark(end, '}') {
			end = o.skip(end)
		}
	}
	if p.using {
		if p.equals == p.alias+2 && o.isName(p.alias+1) && d.macros {
			o.define(Type, p.alias+1, p.from, end)
		}
		return end + 1
	}
	from, specifiers := p.from, "" // specifiers are the part that all declarators share
	if body {
		from, specifiers = o.skip(p.end), o.formatTokens(p.from, p.end)+" "
		if tag := d.tagName(o, p); tag > 0 {
			o.define(o.word(p.typeAt).kind, tag, p.typeAt, p.end)
		} else {
			specifiers += "{…} "
		}
	}
	for from < end {
		declaratorEnd := d.declaratorEnd(o, from, end)
		name, at := declarator(o, from, declaratorEnd, body)
		if name >= 0 {
			o.defineAs(string(o.text(name)), Type, name, specifiers, from, declaratorEnd)
		}
		if specifiers == "" && declaratorEnd < end && name >= 0 { // the specifiers precede the first declarator
			for at > from && (o.isMark(at-1, '*') || o.isMark(at-1, '&')) {
				at--
			}
			specifiers = o.formatTokens(from, at) + " "
		}
		from = declaratorEnd + 1
	}
	return end + 1
}

// tagName returns the index of the name after `struct`, or 0.
func (d *typeFirst) tagName(o *outline, p parts) int {
	at := p.typeAt + 1
	for at > 0 && at < p.end {
		next := skipAttributes(o, at)
		if next == at && o.word(at).role == definer { // `enum class`
			next++
		}
		if next == at {
			break
		}
		at = next
	}
	if at <= 0 || at >= p.end || !o.isName(at) {
		return 0
	}
	return at
}

// skipAttributes returns the index of the token after `__attribute__((…))` and similar ones, whose
// parentheses contain no declared name; otherwise at.
func skipAttributes(o *outline, at int) int {
	switch {
	case o.is(at, "__attribute__"), o.is(at, "__declspec"), o.is(at, "alignas"), o.is(at, "_Alignas"),
		o.is(at, "decltype"), o.is(at, "typeof"), o.is(at, "__typeof__"), o.is(at, "__typeof"):
		if at++; o.isMark(at, '(') {
			at = o.skip(at)
		}
	case o.isMark(at, '[') && o.isMark(at+1, '['):
		at = o.skip(at)
	}
	return at
}

// declaratorEnd returns the index of the comma after a declarator, or end.
func (d *typeFirst) declaratorEnd(o *outline, at, end int) int {
	for at < end && !o.isMark(at, ',') {
		if o.isMark(at, '<') && o.isName(at-1) {
			at = skipAngles(o, at)
		} else {
			at = o.skip(at)
		}
	}
	return min(at, end)
}

// declarator returns the indices of the declared name and of the beginning of the declarator: the
// name or the parentheses around it. Both are -1 if not found. bare means that no type precedes it.
func declarator(o *outline, from, end int, bare bool) (name, begin int) {
	name = -1
	group := -1 // the outermost parentheses
	for i := from; i < end; {
		if next := skipAttributes(o, i); next > i {
			i = next
			continue
		}
		switch {
		case o.isMark(i, '<') && o.isName(i-1):
			i = skipAngles(o, i)
			continue
		case o.isMark(i, '[') && name >= 0:
			end = i
		case o.isMark(i, '('):
			inside, after := i+1, o.skip(i)
			nested := o.isMark(inside, '*') || o.isMark(inside, '^') || o.isMark(inside, '&') ||
				o.isName(inside) && (o.isMark(inside+1, '*') || o.marks(inside+1, "::")) ||
				name < 0 || o.isMark(after, '(')
			if !nested {
				end = i
				continue
			}
			if group < 0 {
				group = i
			}
			i, end, name = inside, min(after-1, end), -1
			continue
		case !o.isName(i) || o.marks(i+1, "::"):
		case name >= 0 && isAttributeMacro(o, from, name, i, bare):
			if o.isMark(i+1, '(') {
				i++
			}
		default:
			name = i
		}
		i = o.skip(i)
	}
	if begin = name; group >= 0 && name >= 0 {
		begin = group
	}
	return name, begin
}

// isAttributeMacro reports whether token i is an attribute macro after the declared name, as in
// `name __packed` and `name ALIGNED(8)`. If the token before can only be a type, it returns false:
// then token i is the declared name.
func isAttributeMacro(o *outline, from, name, i int, bare bool) bool {
	if bytes.HasPrefix(o.text(i), []byte("__")) {
		return true
	}
	if bare && o.isMark(i+1, '(') {
		return true
	}
	named := o.at(name).word == 0 && name > from && (o.isMark(name-1, '*') || o.isName(name-1)) || bare
	return named && isAllCaps(o.text(i)) && !isAllCaps(o.text(name))
}

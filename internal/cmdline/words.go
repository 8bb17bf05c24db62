package cmdline

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is one word of a command.
type word struct {
	text   string // without quotes; as written if it is not known
	known  bool   // the shell expands at most globs in it
	glob   bool   // has * or ? that the shell expands
	quoted bool   // if it is not known: it stays one word, because all expansions are in double quotes
	top    bool   // the top of the work tree, as git reports it
	from   *syntax.Word

	possible *valueSet // its possible values, if they could be computed; nil for a known word
}

// mayBecomeOption reports whether a word may expand to an option that its text does not show. Files can have
// names that look like options.
func (w word) mayBecomeOption() bool {
	return !w.known || w.glob && strings.ContainsAny(w.text[:1], "*?-")
}

// word returns a word's value, and lists the commands in its substitutions.
func (w *walker) word(from *syntax.Word, depth int) word {
	if text, ok := literal(from); ok {
		return word{text: text, known: true, from: from}
	}
	out, uses, substitutes := word{known: true, quoted: true, from: from}, false, false
	var b strings.Builder
	var part func(p syntax.WordPart, inQuotes bool)
	part = func(p syntax.WordPart, inQuotes bool) {
		switch p := p.(type) {
		case *syntax.Lit:
			text, glob, ok := unescape(p.Value, inQuotes, b.Len() == 0)
			b.WriteString(text)
			out.known = out.known && ok
			if !ok {
				out.quoted = false
				w.markComputed("some of its arguments are computed")
			}
			out.glob = out.glob || glob
		case *syntax.SglQuoted:
			if p.Dollar {
				out.known = false
				w.markComputed("some of its arguments are computed")
			}
			b.WriteString(p.Value)
		case *syntax.DblQuoted:
			out.known = out.known && !p.Dollar
			for _, inner := range p.Parts {
				part(inner, true)
			}
		case *syntax.CmdSubst:
			out.known, substitutes = false, true
			out.quoted = out.quoted && inQuotes
			outer := w.substitutionEnd
			w.substitutionEnd = int(p.Right.Offset())
			w.withOwnScope(func() { w.stmts(p.Stmts, depth) })
			w.substitutionEnd = outer
		case *syntax.ParamExp:
			out.known, uses = false, true
			out.quoted = out.quoted && inQuotes && p.Param.Value != "@"
			if _, ok := derivedOperand(p); !ok && !isPlainVariable(p) {
				w.markUnresolved("it contains an expansion that eca does not support")
				w.listSubstitutions(p, depth)
			}
		case *syntax.ArithmExp:
			out.known, uses = false, true
			out.quoted = out.quoted && inQuotes
			if _, unknown := (arithmetic{w, 0}).values(p); unknown != "" {
				w.markUnresolved(unknown)
				w.listSubstitutions(p, depth)
			}
		default: // <( ), extended globs, braces
			out.known, out.quoted = false, false
			w.markUnresolved("it contains an expansion that eca does not support")
			w.listSubstitutions(p, depth)
		}
	}
	for _, p := range from.Parts {
		part(p, false)
	}
	out.text = b.String()
	if !out.known {
		w.out.Expands = true
		out.text, out.glob = w.source(from), false
		out.top = isTop(from)
		if (uses || substitutes) && !out.top {
			if b, why := w.valuesOf(from, 0); why == "" {
				out.possible = &b
			} else if uses {
				w.markComputed("it uses variables: " + why)
			}
		}
	}
	return out
}

// literal returns the value of a word that is a single text in which nothing is special to the shell, as
// most words are. ok is false for all other words.
func literal(w *syntax.Word) (text string, ok bool) {
	if len(w.Parts) != 1 {
		return "", false
	}
	switch part := w.Parts[0].(type) {
	case *syntax.Lit:
		switch part.Value {
		case "{}", "[", "]": // not special on their own
			return part.Value, true
		}
		for _, c := range []byte(part.Value) {
			switch c {
			case '\\', '*', '?', '[', ']', '{', '}', '~':
				return "", false
			}
		}
		return part.Value, true
	case *syntax.SglQuoted:
		return part.Value, !part.Dollar
	case *syntax.DblQuoted:
		text, ok = singleLiteral(part.Parts)
		return text, ok && !part.Dollar && strings.IndexByte(text, '\\') < 0
	}
	return "", false
}

// isTop reports whether a word is "$(git rev-parse --show-toplevel)", with the quotes.
func isTop(w *syntax.Word) bool {
	if len(w.Parts) != 1 {
		return false
	}
	quotes, ok := w.Parts[0].(*syntax.DblQuoted)
	if !ok || quotes.Dollar || len(quotes.Parts) != 1 {
		return false
	}
	subst, ok := quotes.Parts[0].(*syntax.CmdSubst)
	if !ok || len(subst.Stmts) != 1 {
		return false
	}
	stmt := subst.Stmts[0]
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || stmt.Negated || stmt.Background || len(call.Assigns) > 0 || len(call.Args) != 3 {
		return false
	}
	for _, r := range stmt.Redirs {
		if r.N == nil || r.N.Value != "2" { // redirects standard output
			return false
		}
	}
	return slices.EqualFunc(call.Args, []string{"git", "rev-parse", "--show-toplevel"}, func(w *syntax.Word, is string) bool {
		text := w.Lit()
		if len(w.Parts) == 1 {
			switch quoted := w.Parts[0].(type) {
			case *syntax.SglQuoted:
				text = quoted.Value
			case *syntax.DblQuoted:
				if len(quoted.Parts) == 1 {
					if lit, ok := quoted.Parts[0].(*syntax.Lit); ok {
						text = lit.Value
					}
				}
			}
		}
		return text == is
	})
}

// unescape removes the backslashes of a literal. ok is false if the shell expands anything in it
// except * and ?: braces, a leading tilde, brackets.
func unescape(s string, inQuotes, first bool) (text string, glob, ok bool) {
	ok = true
	if !inQuotes && (strings.ContainsAny(s, "{}[]") || first && strings.HasPrefix(s, "~")) {
		ok = false
	}
	if !strings.ContainsAny(s, `\*?`) {
		return s, false, ok
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 == len(s):
			ok = false
		case c == '\\' && s[i+1] == '\n':
			i++ // a line continuation that the parser left
		case c == '\\' && (!inQuotes || strings.ContainsRune("$`\"\\", rune(s[i+1]))):
			i++
			b.WriteByte(s[i])
		case !inQuotes && (c == '*' || c == '?'):
			glob = true
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), glob, ok
}

// quoted reports whether a part of the delimiter of a here-document is quoted.
func quoted(w *syntax.Word) bool {
	for _, p := range w.Parts {
		lit, ok := p.(*syntax.Lit)
		if !ok || strings.Contains(lit.Value, `\`) {
			return true
		}
	}
	return false
}

// source returns the text of a node as written.
func (w *walker) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset())
	if from < 0 || to < from || to > len(w.src) {
		return "?"
	}
	return w.src[from:to]
}

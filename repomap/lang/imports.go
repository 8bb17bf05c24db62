package lang

import (
	"bytes"
	"strings"
)

// importing says how files of a language name others that they use. All are words that are
// divided by spaces.
type importing struct {
	paths   string // words that a module follows, as in `import a.b.C` and `use a::{b, c}`
	texts   string // words that a file's name in quotes follows, as in `require("./a")`
	leading string // first parts of a module that do not say where it is
	others  string // first parts of modules that come with the language
	// qualified says that names with colons between them lead to modules wherever they are:
	// `task::spawn(x)`.
	qualified bool
}

// Kinds of words that begin an import.
const (
	importsPath = 1 + iota
	importsText
)

// maxImports bounds the imports of a file.
const maxImports = 500

// imports appends the modules that a file names, each once, in the order of the file: parts
// are divided by slashes. What begins with "./" or "../" is relative to the file's folder.
func (o *outline) imports(included []string) []string {
	r := importReader{o: o}
	for _, name := range included {
		r.add(name)
	}
	for i := range o.tokens {
		t := &o.tokens[i]
		if o.l.text.imports.qualified && t.kind == nameToken && o.marks(i+1, "::") && !o.isMark(i-1, ':') {
			r.path(i, "", deepestGroup)
			continue
		}
		if t.word == 0 || o.l.importing[t.word] == 0 || o.isMark(i-1, '.') {
			continue
		}
		switch {
		case o.l.importing[t.word] == importsText:
			r.text(i)
		case t.first || o.word(i-1).role == modifier || o.isMark(i-1, ';') || o.isMark(i-1, ')'):
			r.module(i)
		}
	}
	return r.out
}

// listed says whether a word is in a list that is divided by spaces.
func listed(list, word string) bool {
	for list != "" {
		var one string
		if one, list, _ = strings.Cut(list, " "); one == word {
			return true
		}
	}
	return false
}

// importReader collects the imports of one file.
type importReader struct {
	o    *outline
	out  []string
	seen map[string]bool // made when first needed
}

func (r *importReader) add(name string) {
	im := r.o.l.text.imports
	name = strings.TrimSuffix(name, "/self")
	first, rest, several := strings.Cut(name, "/")
	for several && listed(im.leading, first) {
		name = rest
		first, rest, several = strings.Cut(name, "/")
	}
	const longest = 200
	if name == "" || len(name) > longest || strings.Contains(name, "\n") || listed(im.others, first) || listed(im.leading, name) || r.seen[name] || len(r.out) >= maxImports {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[name] = true
	r.out = append(r.out, name)
}

// text reads the strings of an import: the first one of a statement, or all of a group in
// parentheses.
func (r *importReader) text(at int) {
	o := r.o
	group := o.isMark(at+1, '(')
	end := at + 2
	if group {
		end = max(end, int(o.at(at+1).mate))
	}
	for i := at + 1; i < len(o.tokens) && (i < end || !group && i < at+64); i++ {
		t := &o.tokens[i]
		if t.kind == stringToken {
			name := string(bytes.Trim(o.src[t.start:t.end], "\"'`"))
			switch {
			case o.is(at, "require_relative") && !strings.HasPrefix(name, "."):
				name = "./" + name
			case o.l.Name == "lua" && !strings.Contains(name, "/"):
				name = strings.ReplaceAll(name, ".", "/")
			}
			r.add(name)
			if !group {
				return
			}
		}
		if !group && (t.mark == ';' || t.mark == '(' || t.mark == '=' || t.first && o.word(i).role == definer) {
			return
		}
	}
}

// module reads names with marks between them, and the groups in them.
func (r *importReader) module(at int) {
	o := r.o
	i := at + 1
	for o.is(i, "static") || o.is(i, "qualified") || o.is(i, "function") || o.is(i, "global") {
		i++
	}
	if o.isMark(i+1, '=') { // `using A = b.C`
		i += 2
	}
	prefix, next := r.path(i, "", 0)
	if !o.is(at, "from") || !o.is(next, "import") {
		return
	}
	for i, n := next+1, 0; i < len(o.tokens) && n < maxImports; i++ { // `from a.b import c, d`
		switch {
		case o.tokens[i].first && !o.isMark(next+1, '('), o.isMark(i, ')'):
			return
		case o.is(i, "as"):
			i++
		case o.at(i).kind == nameToken:
			n++
			r.add(strings.TrimPrefix(prefix+"/"+string(o.text(i)), "/"))
		}
	}
}

// deepestGroup is how deep groups stand in each other.
const deepestGroup = 6

// path reads one module, with those in braces behind it, and returns it and the token
// behind it.
func (r *importReader) path(i int, prefix string, depth int) (string, int) {
	o := r.o
	const longestPath = 64
	line := o.at(i).line
	for o.isMark(i, '.') { // relative to the file's own package
		i++
	}
	for n := 0; n < longestPath; n++ {
		switch {
		case o.isMark(i, '{'):
			if depth == deepestGroup {
				return prefix, i + 1
			}
			end := min(mate(o, i), len(o.tokens))
			for i++; i < end; i++ {
				if o.at(i).kind == nameToken && !o.is(i, "as") {
					_, i = r.path(i, prefix, depth+1)
					for i < end && !o.isMark(i, ',') {
						i++
					}
				}
			}
			return prefix, end + 1
		case o.at(i).kind == nameToken && !o.is(i, "import") && !o.is(i, "_") && (depth > 0 || o.at(i).line == line || o.isMark(i-1, ':')):
			name := strings.Trim(string(o.text(i)), "`")
			if prefix != "" {
				name = prefix + "/" + name
			}
			prefix = name
			i++
		default:
			r.add(prefix)
			return prefix, i
		}
		switch {
		case o.isMark(i, '.') || o.isMark(i, '\\'):
			i++
		case o.marks(i, "::"):
			i += 2
		default:
			r.add(prefix)
			return prefix, i
		}
	}
	return prefix, i
}

package lang

import (
	"bytes"
	"strings"
)

// importing describes the import syntax of a language. All strings are space-separated lists of
// words.
type importing struct {
	paths    string // keywords before a module, as in `import a.b.C` and `use a::{b, c}`
	texts    string // keywords before a quoted file name, as in `require("./a")`
	leading  string // first parts of a module's name that are dropped
	standard string // first parts of standard library modules
	// qualified means that qualified names anywhere refer to modules: `task::spawn(x)`.
	qualified bool
}

// Kinds of keywords that begin an import.
const (
	importsPath = 1 + iota
	importsText
)

// maxImports limits the number of imports of a file.
const maxImports = 500

// imports returns the modules that a file imports, without duplicates, in the order of the file.
// Their parts are separated by slashes. Those that begin with "./" or "../" are relative to the
// file's folder.
func (o *outline) imports(included []string) []string {
	r := importReader{o: o}
	for _, name := range included {
		r.add(name)
	}
	for i := 0; i < len(o.tokens); {
		next := i + 1
		if t := &o.tokens[i]; t.kind == nameToken && !o.isMark(i-1, '.') {
			switch kind := o.l.importKinds[t.word]; {
			case kind == importsText:
				r.text(i)
			case kind == importsPath && (t.first || o.word(i-1).role == modifier || o.isMark(i-1, ';') || o.isMark(i-1, ')')):
				next = r.module(i)
			case o.l.text.imports.qualified && o.marks(i+1, "::") && !o.isMark(i-1, ':'):
				_, next = r.path(i, "", maxGroupDepth)
			}
		}
		i = max(next, i+1)
	}
	return r.out
}

// inList reports whether a word is in a space-separated list.
func inList(list, word string) bool {
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
	seen map[string]bool // created when first needed
}

func (r *importReader) add(name string) {
	im := r.o.l.text.imports
	name = strings.TrimSuffix(name, "/self")
	first, rest, several := strings.Cut(name, "/")
	for several && inList(im.leading, first) {
		name = rest
		first, rest, several = strings.Cut(name, "/")
	}
	const maxLen = 200
	if name == "" || len(name) > maxLen || strings.Contains(name, "\n") || inList(im.standard, first) || inList(im.leading, name) || r.seen[name] || len(r.out) >= maxImports {
		return
	}
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[name] = true
	r.out = append(r.out, name)
}

// text reads the string of an import, or all strings of a group in parentheses.
func (r *importReader) text(at int) {
	o := r.o
	const maxTokens = 64 // most tokens between the keyword and its string
	group := o.isMark(at+1, '(') && o.at(at+1).mate > 0
	end := at + maxTokens
	i := at + 1
	if group {
		end = int(o.at(at + 1).mate)
		i++
	}
	for ; i < min(end, len(o.tokens)); i = o.skip(i) {
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
		}
		if !group && (t.kind == stringToken || t.mark == ';' || t.mark == '(' || t.mark == '=' || t.first && o.word(i).role == definer) {
			return
		}
	}
}

// module reads a qualified name, and groups in it. It returns the index of the token after it.
func (r *importReader) module(at int) (next int) {
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
		return next
	}
	const maxTokens = 400 // tokens
	group := o.isMark(next+1, '(')
	for i = next + 1; i < min(next+maxTokens, len(o.tokens)); i++ { // `from a.b import c, d`
		switch {
		case o.tokens[i].first && !group, o.isMark(i, ')'):
			return i
		case o.is(i, "as"):
			i++
		case o.at(i).kind == nameToken:
			r.add(strings.TrimPrefix(prefix+"/"+string(o.text(i)), "/"))
		}
	}
	return i
}

// maxGroupDepth is the deepest nesting of groups.
const maxGroupDepth = 6

// path reads one module, and those in braces after it. It returns the module and the index of the
// token after it.
func (r *importReader) path(i int, prefix string, depth int) (string, int) {
	o := r.o
	const maxParts = 64
	line := o.at(i).line
	for o.isMark(i, '.') { // relative to the file's own package
		i++
	}
	for n := 0; n < maxParts; n++ {
		switch {
		case o.isMark(i, '{'):
			end := int(o.at(i).mate)
			if depth == maxGroupDepth || end < 0 {
				return prefix, i
			}
			for i++; i < end; i++ {
				if o.at(i).kind == nameToken && !o.is(i, "as") {
					_, i = r.path(i, prefix, depth+1)
					for i < end && !o.isMark(i, ',') {
						i = o.skip(i)
					}
				}
			}
			return prefix, end + 1
		case o.at(i).kind == nameToken && !o.is(i, "import") && !o.is(i, "_") && (depth > 0 || o.at(i).line == line || o.isMark(i-1, ':')):
			name := plainName(string(o.text(i)))
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

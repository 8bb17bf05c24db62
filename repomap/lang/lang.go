// Package lang finds the names that a source file defines, with their kinds, lines and signatures,
// and the names that it uses.
//
// Each language has a Go file with a table of its lexical elements (comments, strings, names,
// keywords) and a function that finds its definitions (the outline). All languages share one lexer,
// and similar languages share an outline. There is no parser, so incomplete code, invalid code and
// dialects still give reasonable results.
//
// Guarantees: no input causes a panic; time is linear in the length of the input; equal input gives
// equal output. Scan omits definitions that are local to a function, because other files cannot use
// them.
//
// The package does not read files, resolve imports or know types. A use is only a name.
package lang

import (
	"bytes"
	"path"
	"strings"
)

// Kind is the kind of a definition.
type Kind uint8

// Kinds of definitions. Their order is part of the format of stored maps: add new kinds at the end.
const (
	Function Kind = iota + 1
	Method
	Class
	Interface
	Struct
	Enum
	Trait
	Type
	Constant
	Variable
	Module
	Macro
	Property
	Object
	Table
	View
	Index
	Trigger
	Extension // adds members to a type of the same name that is defined elsewhere
	kinds     // the number of kinds plus one
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := [kinds]string{
		"", "function", "method", "class", "interface", "struct", "enum", "trait", "type", "constant", "variable",
		"module", "macro", "property", "object", "table", "view", "index", "trigger", "extension",
	}
	if k >= kinds {
		return ""
	}
	return names[k]
}

// Valid reports whether k is one of the kinds.
func (k Kind) Valid() bool { return k > 0 && k < kinds }

// Definition is a definition of a file.
type Definition struct {
	Name      string
	Kind      Kind
	Line      int    // 1-based
	Parent    int    // index of the enclosing definition; -1 at the top level
	Signature string // one line, without the body; at most MaxSignature bytes
}

// Uses are the names that a file uses, in the order of their first use. Only the hashes of the names
// are stored.
type Uses struct {
	Names  []uint64 // see Language.Hash
	Counts []uint8  // by name: the number of uses, at most MaxCount

	// Imports are the files and modules that the file imports, without duplicates. Slashes separate
	// the parts of a name. A name that begins with "./" or "../" is relative to the file's folder.
	// Imports is nil for languages without import rules.
	Imports []string
}

// MaxCount is the maximum of Uses.Counts.
const MaxCount = 255

// Private reports whether a name is visible only in its own folder.
func Private(name uint64) bool { return name&1 != 0 }

// MaxSignature is the maximum length of a signature in bytes.
const MaxSignature = 160

// Version identifies the tables and outlines. It must change when they do, which invalidates stored
// results.
const Version = 6

// Language is a supported language.
type Language struct {
	// Name is in lower case, as in `go`.
	Name string

	family  string   // languages of one family use each other's names; default: Name
	exts    []string // file extensions with their dot, in lower case
	names   []string // names of files, such as Makefile
	shebang []string // interpreters

	text      text
	words     map[string]word // keywords and other words with a role
	outline   func(*outline)
	skipsBody func(*lexer) bool     // reports whether the outline skips the body of the brace just read, which is not inside other brackets
	private   func(first byte) bool // reports by a name's first byte whether the name is visible only in its own folder

	classes [256]class
	tails   [256]bool
	plain   bool       // names consist of letters, digits and _ only
	table   []wordSlot // words, by hash
	meaning []word     // by token.word; the first is unused
	// importKinds has by token.word the kind of import that the word begins, if any.
	importKinds []uint8
	seed        uint64
}

// Family identifies the languages whose files use each other's names, such as C and C++.
func (l *Language) Family() string { return l.family }

// Hash returns the hash of a name, as in Uses.Names. It is the same for all languages of a family.
func (l *Language) Hash(name string) uint64 {
	if l.text.caseless {
		name = strings.ToLower(name)
	}
	if name == "" {
		return 0
	}
	return l.withPrivacyBit(hash([]byte(name))^l.seed, name[0])
}

// withPrivacyBit stores in a name's hash whether the name is private.
func (l *Language) withPrivacyBit(h uint64, first byte) uint64 {
	if h &^= 1; l.private != nil && l.private(first) {
		h |= 1
	}
	return h
}

// Languages is the set of all languages. It is immutable.
type Languages struct {
	all         []*Language
	ext         map[string]*Language
	name        map[string]*Language
	interpreter map[string]*Language
}

// New builds the tables.
func New() *Languages {
	ls := &Languages{ext: map[string]*Language{}, name: map[string]*Language{}, interpreter: map[string]*Language{}}
	for _, l := range tables() {
		l.prepare()
		ls.all = append(ls.all, l)
		for _, e := range l.exts {
			ls.ext[e] = l
		}
		for _, n := range l.names {
			ls.name[n] = l
		}
		for _, n := range l.shebang {
			ls.interpreter[n] = l
		}
	}
	return ls
}

// All returns the languages in alphabetical order. The slice must not be changed.
func (ls *Languages) All() []*Language { return ls.all }

// ByName returns the language with a name, or nil.
func (ls *Languages) ByName(name string) *Language {
	for _, l := range ls.all {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Of returns the language of a file by its name, or nil. maybe reports whether the file's first
// line could determine the language (OfScript).
func (ls *Languages) Of(file string) (l *Language, maybe bool) {
	base := path.Base(file)
	if l := ls.name[base]; l != nil {
		return l, false
	}
	ext := path.Ext(base)
	if ext == "" {
		return nil, true
	}
	if l := ls.ext[ext]; l != nil {
		return l, false
	}
	return ls.ext[strings.ToLower(ext)], false
}

// OfScript returns the language that the first line of a file names (`#!`), or nil.
func (ls *Languages) OfScript(head []byte) *Language {
	rest, ok := bytes.CutPrefix(head, []byte("#!"))
	if !ok {
		return nil
	}
	line, _, _ := bytes.Cut(rest[:min(len(rest), 200)], []byte("\n"))
	for _, f := range strings.Fields(string(line)) {
		f = path.Base(f)
		if f == "env" || strings.HasPrefix(f, "-") || strings.Contains(f, "=") {
			continue
		}
		return ls.interpreter[strings.TrimRight(f, "0123456789.")]
	}
	return nil
}

// tables lists the languages in alphabetical order.
func tables() []*Language {
	return []*Language{
		bash(), c(), clojure(), cpp(), csharp(), elixir(), elisp(), golang(), haskell(), java(), javascript(), kotlin(),
		lua(), ocaml(), php(), python(), ruby(), rust(), scala(), sql(), swift(), tsx(), typescript(),
	}
}

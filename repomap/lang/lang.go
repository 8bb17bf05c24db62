// Package lang reads source code for a map of a repository: which names a
// file defines, with their kinds, lines and signatures, and which names it uses.
//
// There is one file per language: a table of what its text is made of (comments, strings,
// names, words with a meaning) and which outline finds definitions in it. The lexer and
// the outlines are shared. Nothing is parsed: code with errors, half-written code and
// dialects come out as well as can be.
//
// Guarantees: no input makes it panic; time grows with the length of the input and
// nothing else; equal input gives equal output. Definitions are those a reader of the
// file could use elsewhere: what is local to a function is left out.
//
// It does not read files, resolve imports or know types: a use is a name.
package lang

import (
	"bytes"
	"path"
	"strings"
)

// Kind says what a definition is.
type Kind uint8

// Kinds of definitions. Their order is part of the format of stored maps: new ones go to
// the end.
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
	Extension // adds to a type that is defined elsewhere, whose name it has
	kinds     // their number, plus one
)

// String returns the kind as a word.
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

// Valid says whether k is one of the kinds.
func (k Kind) Valid() bool { return k > 0 && k < kinds }

// Definition is one definition of a file.
type Definition struct {
	Name      string
	Kind      Kind
	Line      int    // 1-based
	Parent    int    // index of the definition it is in; -1 at the top
	Signature string // one line, without the body; at most MaxSignature bytes
}

// Uses are names that a file uses, in the order of their first use. The names themselves
// are not kept.
type Uses struct {
	Names  []uint64 // see Language.Hash
	Counts []uint8  // by name: how often, at most MaxCount

	// Imports are the files and modules that the file names, each once: their parts are
	// divided by slashes, and those that begin with "./" or "../" are relative to its folder.
	// It is nil in languages whose imports are not read.
	Imports []string
}

// MaxCount is how far uses of a name are counted.
const MaxCount = 255

// Private says whether a name is seen in its own folder only.
func Private(name uint64) bool { return name&1 != 0 }

// MaxSignature is how many bytes a signature has at most.
const MaxSignature = 160

// Version says which tables and outlines made a result. It changes when they do: stored
// results of another version are worth nothing.
const Version = 6

// Language is what is known of one language.
type Language struct {
	// Name is in lower case, as in `go`.
	Name string

	family  string   // languages of one family use each other's names; default: Name
	exts    []string // of files, with their dot, in lower case
	names   []string // of files that are known by their whole name
	shebang []string // interpreters

	text    text
	words   map[string]word
	outline func(*outline)
	opaque  func(*lexer) bool     // whether the outline skips what is in the brace just read, which is in no other bracket
	private func(first byte) bool // by a name's first byte: it is seen in its own folder only

	classes [256]class
	tails   [256]bool
	plain   bool       // names are made of letters, digits and _ only
	table   []wordSlot // words by hash
	meaning []word     // by token.word; the first is unused
	// importing says by token.word whether it begins an import, and of which kind.
	importing []uint8
	seed      uint64
}

// Family names the languages whose files use each other's names, as C and C++.
func (l *Language) Family() string { return l.family }

// Hash returns the number by which uses refer to a name. Languages whose files use each
// other's names, as C and C++, have the same.
func (l *Language) Hash(name string) uint64 {
	if l.text.caseless {
		name = strings.ToLower(name)
	}
	if name == "" {
		return 0
	}
	return l.mark(hash([]byte(name))^l.seed, name[0])
}

// mark notes in a name's number whether it is private.
func (l *Language) mark(h uint64, first byte) uint64 {
	if h &^= 1; l.private != nil && l.private(first) {
		h |= 1
	}
	return h
}

// Languages are all languages. It is immutable.
type Languages struct {
	all  []*Language
	ext  map[string]*Language
	name map[string]*Language
	run  map[string]*Language
}

// New makes the tables.
func New() *Languages {
	ls := &Languages{ext: map[string]*Language{}, name: map[string]*Language{}, run: map[string]*Language{}}
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
			ls.run[n] = l
		}
	}
	return ls
}

// All returns the languages in alphabetical order. The slice must not be changed.
func (ls *Languages) All() []*Language { return ls.all }

// ByName returns the language of a name; or nil.
func (ls *Languages) ByName(name string) *Language {
	for _, l := range ls.all {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// Of returns the language of a file by its name. It is nil for all others; maybe says that
// the file's first line could tell (OfScript).
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

// OfScript returns the language that the first line of a file names (`#!`); nil if none.
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
		return ls.run[strings.TrimRight(f, "0123456789.")]
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

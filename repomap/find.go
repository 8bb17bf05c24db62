package repomap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// Hit is a definition that a query found.
type Hit struct {
	Path string // relative to the root, with slashes
	In   string // the names of the enclosing definitions, with dots between them; empty at the top
	lang.Definition

	match match
	score float64
}

// match says how well a name is what a query asks for: the higher the better.
type match int

const (
	noMatch    match = iota
	someWords        // one of the words; the others are in the enclosing definitions, its path or its signature
	partOfName       // the query is in the name
	allWords         // the name has all words
	beginning        // the name begins with the query
	folded           // the name, but for case and underscores
	exactly
)

// maxHits bounds what is shown of a search.
const maxHits = 200

// Find returns the definitions of a map that a query asks for, the best first: by how well
// their names match, then by their rank. A query is a name, a name after that of an
// enclosing definition (`Basket.AddItem`, `shop::add`), or words in any order (`add item`, `class basket`).
func (m *Map) Find(query string) []Hit {
	q := newQuery(query)
	if q.name == "" {
		return nil
	}
	var out []Hit
	for i := range m.Files {
		f := &m.Files[i]
		for d := range f.Definitions {
			def := &f.Definitions[d]
			if def.Kind == lang.Extension {
				continue // the definition is elsewhere
			}
			if how := q.match(f, d); how > noMatch {
				out = append(out, Hit{Path: f.Path, In: f.enclosing(d), Definition: *def, match: how, score: f.Scores[d]})
			}
		}
	}
	slices.SortFunc(out, compareHits)
	return out
}

func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.match, a.match), cmp.Compare(step(b.score), step(a.score)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}

// enclosing names the definitions around a definition, the outermost first.
func (f *File) enclosing(d int) string {
	var names []string
	for p := f.Definitions[d].Parent; p >= 0; p = f.Definitions[p].Parent {
		names = append(names, f.Definitions[p].Name)
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

// query is what definitions are compared with.
type query struct {
	name   string   // the last part
	folded string   // of the name
	within []string // the parts before it, folded
	words  []string // stems of all of them
}

func newQuery(text string) query {
	var q query
	text = strings.TrimSuffix(strings.TrimSpace(text), "()")
	parts := []string{text}
	if !strings.ContainsAny(text, " \t\n") {
		if named := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(".:#\\/", r) }); len(named) > 0 {
			parts = named
		}
	}
	for i, p := range parts {
		eachWord(p, func(word []byte) bool {
			if len(q.words) < maxAsked-1 {
				q.words = append(q.words, string(stem(word)))
			}
			return true
		})
		if i < len(parts)-1 {
			q.within = append(q.within, fold(p))
		}
	}
	q.name = parts[len(parts)-1]
	q.folded = fold(strings.Join(strings.Fields(q.name), ""))
	return q
}

// match compares one definition.
func (q *query) match(f *File, d int) match {
	def := &f.Definitions[d]
	name := fold(def.Name)
	var how match
	switch {
	case def.Name == q.name:
		how = exactly
	case name == q.folded:
		how = folded
	case q.folded != "" && strings.HasPrefix(name, q.folded):
		how = beginning
	default:
		how = q.matchWords(f, d, name)
	}
	if how > someWords && len(q.within) > 0 && !q.isWithin(f, d) {
		return noMatch
	}
	return how
}

// matchWords looks for the query's words in a name and, if it has one, in what is around it.
func (q *query) matchWords(f *File, d int, name string) match {
	if len(q.words) == 0 {
		return noMatch
	}
	left := uint64(1)<<len(q.words) - 1 // a bit for each word
	wanted := left
	strike := func(text string) {
		eachWord(text, func(word []byte) bool {
			s := stem(word)
			for i, w := range q.words {
				if w == string(s) {
					left &^= 1 << i
				}
			}
			return left > 0
		})
	}
	strike(f.Definitions[d].Name)
	switch {
	case left == 0:
		return allWords
	case len(q.folded) > 2 && strings.Contains(name, q.folded):
		return partOfName
	case left == wanted:
		return noMatch
	}
	for p := d; p >= 0; p = f.Definitions[p].Parent {
		strike(f.Definitions[p].Signature)
	}
	if strike(f.Path); left > 0 {
		return noMatch
	}
	return someWords
}

// isWithin says whether a definition is part of what the query names before it: other
// definitions, the type of a method, folders or the file.
func (q *query) isWithin(f *File, d int) bool {
	around := fold(f.Path + " " + f.enclosing(d) + " " + f.Definitions[d].Signature)
	for _, part := range q.within {
		if !strings.Contains(around, part) {
			return false
		}
	}
	return true
}

// FindText returns the definitions that a query asks for in some repositories, one a line
// (`path:line: signature`), in at most so many tokens; it is empty if nothing matches. Paths
// are relative if there is one root. Roots that cannot be read are left out, unless none can.
func (x *Index) FindText(ctx context.Context, roots []string, asked string, focus Focus, tokens int) (string, error) {
	var hits []Hit
	var failed []error
	for _, root := range roots {
		m, err := x.Map(ctx, root, focus)
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		if err != nil {
			failed = append(failed, err)
			continue
		}
		found := m.Find(asked)
		if len(roots) > 1 {
			for i := range found {
				found[i].Path = path.Join(filepath.ToSlash(root), found[i].Path)
			}
		}
		hits = append(hits, found...)
	}
	if len(failed) == len(roots) {
		return "", errors.Join(failed...)
	}
	slices.SortStableFunc(hits, compareHits)
	return HitsText(hits, tokens), nil
}

// HitsText shows the first hits in at most so many tokens, and says how many more there are.
func HitsText(hits []Hit, tokens int) string {
	var b strings.Builder
	room := tokens * bytesPerToken
	for i, h := range hits {
		line := fmt.Sprintf("%s:%d: %s", h.Path, h.Line, h.Signature)
		if h.In != "" {
			line += " (in " + h.In + ")"
		}
		more := ""
		if left := len(hits) - i; left > 1 {
			more = fmt.Sprintf("%d more\n", left)
		}
		if i == maxHits || b.Len()+len(line)+1+len(more) > room {
			if b.Len() > 0 && b.Len()+len(more) <= room {
				b.WriteString(more)
			}
			break
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

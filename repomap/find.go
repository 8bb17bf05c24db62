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

	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// Hit is a definition that a query found.
type Hit struct {
	Path string // relative to the root, with slashes
	In   string // names of the enclosing definitions, separated by dots; empty at the top level
	lang.Definition

	match matchKind
	score float64
}

// matchKind is how well a name matches a query; higher is better.
type matchKind int

const (
	noMatch     matchKind = iota
	someWords             // the name contains a word of the query; the enclosing definitions, the path or the signature contain the others
	partOfName            // the name contains the query
	allWords              // the name contains all words
	prefixMatch           // the name begins with the query
	foldedMatch           // equal except for case and underscores
	exactMatch
)

// maxHits is the maximum number of hits that HitsText shows.
const maxHits = 200

// Find returns the definitions that match a query. Better matches of the name come first; equal
// matches are sorted by rank. A query is a name, a qualified name (`Basket.AddItem`, `shop::add`),
// or words in any order (`add item`, `class basket`).
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
				continue // an extension only reopens a type that is defined elsewhere
			}
			if match := q.match(f, d); match > noMatch {
				out = append(out, Hit{Path: f.Path, In: f.enclosing(d), Definition: *def, match: match, score: f.Scores[d]})
			}
		}
	}
	slices.SortFunc(out, compareHits)
	return out
}

func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.match, a.match), cmp.Compare(rankStep(b.score), rankStep(a.score)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
}

// enclosing returns the names of the definitions around a definition, the outermost first.
func (f *File) enclosing(d int) string {
	var names []string
	for p := f.Definitions[d].Parent; p >= 0; p = f.Definitions[p].Parent {
		names = append(names, f.Definitions[p].Name)
	}
	slices.Reverse(names)
	return strings.Join(names, ".")
}

// query is a parsed query.
type query struct {
	name   string   // the last part of the query
	folded string   // name, folded
	within []string // the parts before it, folded
	words  []string // stems of the words in all parts
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
			if len(q.words) < maxDistinctWords-1 {
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

// match returns how well one definition matches.
func (q *query) match(f *File, d int) matchKind {
	def := &f.Definitions[d]
	name := fold(def.Name)
	var best matchKind
	switch {
	case def.Name == q.name:
		best = exactMatch
	case name == q.folded:
		best = foldedMatch
	case q.folded != "" && strings.HasPrefix(name, q.folded):
		best = prefixMatch
	default:
		best = q.matchWords(f, d, name)
	}
	if best > someWords && len(q.within) > 0 && !q.isWithin(f, d) {
		return noMatch
	}
	return best
}

// matchWords searches for the words of the query in the name of a definition. If the name contains
// one of them, matchWords searches for the others in the signatures of the definition and of its
// enclosing definitions, and in the path.
func (q *query) matchWords(f *File, d int, name string) matchKind {
	if len(q.words) == 0 {
		return noMatch
	}
	missing := uint64(1)<<len(q.words) - 1 // a bit for each word
	all := missing
	markFound := func(text string) {
		eachWord(text, func(word []byte) bool {
			s := stem(word)
			for i, w := range q.words {
				if w == string(s) {
					missing &^= 1 << i
				}
			}
			return missing > 0
		})
	}
	markFound(f.Definitions[d].Name)
	switch {
	case missing == 0:
		return allWords
	case len(q.folded) > 2 && strings.Contains(name, q.folded):
		return partOfName
	case missing == all:
		return noMatch
	}
	for p := d; p >= 0; p = f.Definitions[p].Parent {
		markFound(f.Definitions[p].Signature)
	}
	if markFound(f.Path); missing > 0 {
		return noMatch
	}
	return someWords
}

// isWithin reports whether a definition is in all the containers that the query names. A container
// is an enclosing definition, the type of a method, a folder, or the file.
func (q *query) isWithin(f *File, d int) bool {
	containers := fold(f.Path + " " + f.enclosing(d) + " " + f.Definitions[d].Signature)
	return !slices.ContainsFunc(q.within, func(part string) bool { return !strings.Contains(containers, part) })
}

// FindText returns the definitions in some repositories that match a query, one per line
// (`path:line: signature`), in at most the given number of tokens. The text is empty if no
// definition matches. Paths are relative if there is only one root. FindText omits roots that it
// cannot read; if it can read none, it fails.
func (x *Index) FindText(ctx context.Context, roots []string, query string, focus Focus, tokens int) (string, error) {
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
		found := m.Find(query)
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

// HitsText formats hits in at most the given number of tokens, followed by the number of omitted
// hits.
func HitsText(hits []Hit, tokens int) string {
	var b strings.Builder
	maxLen := tokens * bytesPerToken
	for i, h := range hits {
		line := fmt.Sprintf("%s:%d: %s", visible.Name(h.Path), h.Line, h.Signature)
		if h.In != "" {
			line += " (in " + h.In + ")"
		}
		more := ""
		if left := len(hits) - i; left > 1 {
			more = fmt.Sprintf("%d more\n", left)
		}
		if i == maxHits || b.Len()+len(line)+1+len(more) > maxLen {
			if b.Len() > 0 && b.Len()+len(more) <= maxLen {
				b.WriteString(more)
			}
			break
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

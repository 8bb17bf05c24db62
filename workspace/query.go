package workspace

import "strings"

// Kinds of matches, best first.
const (
	namePrefix   = iota // the name begins with the query
	nameContains        // the name contains the query
	pathContains        // only the path contains the query
	nameFuzzy           // the name has the letters of the query in order
	pathFuzzy           // only the path has the letters of the query in order
	noMatch
)

// maxTerms is the maximum number of words of a query; further words are ignored.
const maxTerms = 8

// query is a search for paths that contain all words.
type query struct {
	terms []term
}

type term struct {
	text      string // in lower case
	mask      uint64
	folderLen int // length of its folder part, up to the last slash
}

func newQuery(s string) query {
	words := strings.Fields(toLowerSameLen(s))
	var q query
	for _, w := range words[:min(len(words), maxTerms)] {
		q.terms = append(q.terms, term{text: w, mask: maskOf(w), folderLen: strings.LastIndexByte(w, '/') + 1})
	}
	return q
}

// quality is how well an entry matches a query; lower is better in each field.
type quality struct {
	kind   int
	at     int // offset of the query in the name or path; or how scattered its letters are
	length int // of the path
}

// matcher matches entries against a query, folder by folder.
type matcher struct {
	query
	kindLimit   int // matches of this kind and of higher kinds do not count
	folder      *folder
	pathMatches [maxTerms]pathMatch

	// Reused buffers for paths that have to be searched completely.
	plain, lower []byte
}

// pathMatch is the result of matching a term against a folder's path.
type pathMatch struct {
	at        int  // offset of the term, or -1
	hasFolder bool // the path ends with the folder part of the term
	letters   int  // how many of the term's first letters the path has, in order
}

// setFolder sets the folder of the next entries.
func (m *matcher) setFolder(f *folder) {
	m.folder = f
	for i, t := range m.terms {
		m.pathMatches[i] = pathMatch{
			at:        strings.Index(f.text.lower, t.text),
			hasFolder: t.folderLen > 0 && strings.HasSuffix(f.text.lower, t.text[:t.folderLen]),
			letters:   subsequence(f.text.lower, t.text),
		}
	}
}

// match matches an entry of the folder. Without a query, every file matches and no folder
// does; files nearest to the root come first.
func (m *matcher) match(name text, dir bool) (quality, bool) {
	length := len(m.folder.text.plain) + len(name.plain)
	if len(m.terms) == 0 {
		return quality{at: strings.Count(m.folder.text.plain, "/")}, !dir
	}
	q := quality{length: length}
	for i := range m.terms {
		kind, at := m.matchTerm(i, name)
		if kind >= m.kindLimit {
			return quality{}, false
		}
		q.kind, q.at = max(q.kind, kind), q.at+at
	}
	return q, true
}

// matchTerm matches one word.
func (m *matcher) matchTerm(n int, name text) (kind, at int) {
	t, path := &m.terms[n], m.pathMatches[n]
	if t.folderLen == 0 && name.mask&t.mask == t.mask {
		switch i := strings.Index(name.lower, t.text); {
		case i == 0:
			return namePrefix, 0
		case i > 0:
			return nameContains, i
		}
	}
	folder := m.folder.text
	switch {
	case m.kindLimit <= pathContains || (folder.mask|name.mask)&t.mask != t.mask:
		return noMatch, 0
	case path.at >= 0:
		return pathContains, path.at
	case path.hasFolder && strings.HasPrefix(name.lower, t.text[t.folderLen:]):
		return pathContains, len(folder.lower) - t.folderLen
	}
	return m.matchFuzzy(t, path, name)
}

// matchFuzzy searches for the letters of a word.
func (m *matcher) matchFuzzy(t *term, path pathMatch, name text) (kind, at int) {
	const minLetters = 2 // a single letter cannot be scattered
	if len(t.text) < minLetters || m.kindLimit <= nameFuzzy {
		return noMatch, 0
	}
	if name.mask&t.mask == t.mask && subsequence(name.lower, t.text) == len(t.text) {
		gaps, inner := scatter(name.plain, name.lower, t.text)
		return nameFuzzy, gaps + innerCost*inner
	}
	if m.kindLimit <= pathFuzzy || subsequence(name.lower, t.text[path.letters:]) < len(t.text)-path.letters {
		return noMatch, 0
	}
	m.lower = append(append(m.lower[:0], m.folder.text.lower...), name.lower...)
	m.plain = append(append(m.plain[:0], m.folder.text.plain...), name.plain...)
	gaps, inner := scatter(m.plain, m.lower, t.text)
	if inner > 1 {
		return noMatch, 0 // a long path contains almost any letters
	}
	return pathFuzzy, gaps + innerCost*inner
}

// innerCost is the cost of a piece that begins inside a word. It equals the cost of 8 skipped letters.
const innerCost = 8

// subsequence returns how many of the first bytes of q occur in s in order.
func subsequence(s, q string) int {
	n := 0
	for n < len(q) {
		i := strings.IndexByte(s, q[n])
		if i < 0 {
			break
		}
		s, n = s[i+1:], n+1
	}
	return n
}

// scatter measures how scattered the letters of q are in a text that contains them in order: the
// number of letters between them, and the number of pieces that begin inside a word.
func scatter[T string | []byte](plain, lower T, q string) (gaps, inner int) {
	gaps, inner, ok := align(plain, lower, q, true)
	otherGaps, otherInner, _ := align(plain, lower, q, false)
	if !ok || otherGaps+innerCost*otherInner < gaps+innerCost*inner {
		return otherGaps, otherInner
	}
	return gaps, inner
}

// align searches for each letter after the previous one: directly after it, else, with words, at
// the next word that begins with it, else at its next occurrence.
func align[T string | []byte](plain, lower T, q string, words bool) (gaps, inner int, ok bool) {
	pos, first := 0, true
	for k := range len(q) {
		next := -1
		for j := pos; j < len(lower); j++ {
			if lower[j] != q[k] {
				continue
			}
			if next < 0 {
				next = j
			}
			if j == pos && !first || !words || beginsWord(plain, j) {
				next = j
				break
			}
		}
		if next < 0 {
			return 0, 0, false
		}
		if next > pos || first {
			if !beginsWord(plain, next) {
				inner++
			}
			if !first {
				gaps += next - pos
			}
		}
		pos, first = next+1, false
	}
	return gaps, inner, true
}

// beginsWord reports whether a word begins at an offset of a name: after a character that is not
// a letter or digit, at a capital letter, and at the first digit of a number.
func beginsWord[T string | []byte](s T, i int) bool {
	if i == 0 {
		return true
	}
	before, c := s[i-1], s[i]
	letter := func(b byte) bool { return b|0x20 >= 'a' && b|0x20 <= 'z' || b >= 0x80 }
	digit := func(b byte) bool { return b >= '0' && b <= '9' }
	upper := func(b byte) bool { return b >= 'A' && b <= 'Z' }
	return !letter(before) && !digit(before) || upper(c) && !upper(before) || digit(c) && !digit(before)
}

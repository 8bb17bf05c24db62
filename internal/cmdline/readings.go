package cmdline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// ambiguous notes that a shell may read the text differently from the parser.
func (w *walker) ambiguous(why string) {
	if w.out.TwoReadings == "" {
		w.out.TwoReadings = why
	}
	w.unresolved("a shell may read it differently: " + why)
}

// comments finds comments that end in a backslash: the parser takes the next line for a part
// of the line before the comment.
func (w *walker) comments(text string) {
	for i := strings.Index(text, "\\\n"); i >= 0; {
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		for j := strings.IndexByte(line, '#'); j >= 0; {
			if j == 0 || strings.IndexByte(" \t;&|()<>`", line[j-1]) >= 0 {
				w.ambiguous("a comment ends in a backslash")
				return
			}
			next := strings.IndexByte(line[j+1:], '#')
			if next < 0 {
				break
			}
			j += 1 + next
		}
		next := strings.Index(text[i+2:], "\\\n")
		if next < 0 {
			return
		}
		i += 2 + next
	}
}

// document checks that a shell ends a here-document where the parser does.
func (w *walker) document(r *syntax.Redirect) {
	end := w.source(r.Word)
	plain := strings.TrimPrefix(end, `\`)
	for _, quote := range []string{`'`, `"`} {
		if len(end) > 2 && strings.HasPrefix(end, quote) && strings.HasSuffix(end, quote) {
			plain = end[1 : len(end)-1]
		}
	}
	if plain == "" || strings.IndexFunc(plain, func(c rune) bool { return !isName("a"+string(c)) && c != '.' && c != '-' }) >= 0 {
		w.ambiguous("the word that ends a here-document is written in an unusual way")
	}
	if r.Hdoc != nil && !quoted(r.Word) && strings.Contains(w.source(r.Hdoc), "\\\n") {
		w.ambiguous("a line of a here-document ends in a backslash")
	}
}

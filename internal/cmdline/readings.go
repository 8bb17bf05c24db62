package cmdline

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// markAmbiguous records that a shell may parse the text differently.
func (w *walker) markAmbiguous(why string) {
	if w.out.TwoReadings == "" {
		w.out.TwoReadings = why
	}
	w.markUnresolved("a shell may read it differently: " + why)
}

// comments finds comments that a shell parses differently. If a comment ends in a backslash, the
// parser takes the next line for a part of the line before the comment. In some positions after an
// expansion or a quote, the parser takes # for the beginning of a comment; shells never do.
func (w *walker) comments(text string) {
	if hashInWord(text) {
		w.commentsInWords(text)
	}
	for i := strings.Index(text, "\\\n"); i >= 0; {
		line := text[strings.LastIndexByte(text[:i], '\n')+1 : i]
		for j := strings.IndexByte(line, '#'); j >= 0; {
			if j == 0 || strings.IndexByte(" \t;&|()<>`", line[j-1]) >= 0 {
				w.markAmbiguous("a comment ends in a backslash")
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

// hashInWord reports whether a # may stand within a word.
func hashInWord(text string) bool {
	for i := 1; i < len(text); i++ {
		if text[i] == '#' && strings.IndexByte(" \t\n;&|(<>", text[i-1]) < 0 {
			return true
		}
	}
	return false
}

func (w *walker) commentsInWords(text string) {
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)).Parse(strings.NewReader(text), "")
	if err != nil {
		return // reported by the caller
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		c, ok := n.(*syntax.Comment)
		if at := 0; ok {
			if at = int(c.Hash.Offset()); at > 0 && strings.IndexByte(" \t\n;&|(<>", text[at-1]) < 0 {
				w.markAmbiguous("a comment begins within a word")
			}
		}
		return true
	})
}

// caseWithDocument is refused: if a case begins in the line of a here-document, the parser expects
// the document after the end of the case, and a shell within it.
const caseWithDocument = "it has a case and a here-document"

// documentAt is the position of a here-document.
type documentAt struct{ line, op, body uint }

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
		w.markAmbiguous("the word that ends a here-document is written in an unusual way")
	}
	here := documentAt{line: r.OpPos.Line(), op: r.OpPos.Offset()}
	if r.Hdoc != nil {
		here.body = r.Hdoc.Pos().Offset()
	}
	for _, other := range w.documents {
		if other.line == here.line && (other.body == 0 || here.body == 0 || (other.op < here.op) != (other.body < here.body)) {
			w.markAmbiguous("the here-documents of a line are not in its order")
		}
	}
	w.documents = append(w.documents, here)
	if w.cases {
		w.markAmbiguous(caseWithDocument)
	}
	if w.substitutionEnd > 0 && w.compound > 0 {
		w.markAmbiguous("a compound command in a substitution has a here-document")
	}
	if end, from := w.substitutionEnd, int(r.Word.End().Offset()); end > 0 && (from > end || end > len(w.src) || !strings.Contains(w.src[from:end], "\n") || r.Hdoc != nil && int(r.Hdoc.Pos().Offset()) > end) {
		w.markAmbiguous("a here-document begins in a substitution that ends before it")
	}
	if !quoted(r.Word) && w.continues(r) {
		w.markAmbiguous("a line of a here-document ends in a backslash")
	}
}

// continues reports whether a line of a here-document ends in a backslash. The parser drops such
// lines at the beginning of the document.
func (w *walker) continues(r *syntax.Redirect) bool {
	const end = "\\\n"
	if r.Hdoc == nil { // the document may consist of such lines
		from := min(int(r.Word.End().Offset()), len(w.src))
		return strings.Contains(w.src[from:], end)
	}
	from := min(int(r.Hdoc.Pos().Offset()), len(w.src))
	return strings.HasSuffix(w.src[:from], end) || strings.Contains(w.source(r.Hdoc), end)
}

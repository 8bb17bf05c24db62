// Package linesearch finds the lines of a text that match a regular expression, as fast as
// the memory delivers it.
//
// It guarantees the same answers as package regexp, asked about each line without its end
// (\n, and any \r before it): ^ and $ are the ends of a line, nothing matches across lines,
// and bytes that are not UTF-8 count as U+FFFD each. TestAsRegexp and FuzzSearch hold it to
// that. It does not say where in its line a match is.
//
// Text in which nothing matches is not looked at rune by rune: where every match has to
// contain one of a few literal texts, those are searched for by their rarest byte; where
// not, an automaton that is built while it runs takes one step per byte. An automaton that
// grows without end is given up for package regexp.
package linesearch

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Pattern is a compiled expression. It is immutable and safe for concurrent use.
type Pattern struct {
	re    *regexp.Regexp
	prog  *syntax.Prog
	need  []literal // every match has one of them; empty: nothing is known
	plain bool      // a line with the only one of need matches
}

// Compile reads an expression of package regexp (RE2 syntax). The error is that of
// regexp.Compile.
func Compile(expr string) (*Pattern, error) {
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, err
	}
	tree, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return nil, err
	}
	p := &Pattern{re: re, need: needed(tree)}
	if len(p.need) == 1 && tree.Op == syntax.OpLiteral {
		l := p.need[0]
		p.plain = l.complete && !strings.ContainsAny(l.text, "\r\n")
	}
	if p.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, err
	}
	return p, nil
}

// Searcher searches texts with a pattern, one after another. It is for one goroutine: it
// keeps what it learns.
type Searcher struct {
	p    *Pattern
	auto *automaton

	text     []byte
	returns  bool  // text has a \r
	upcoming []int // where each needed literal comes next; see candidate
}

// Searcher returns a new searcher.
func (p *Pattern) Searcher() *Searcher {
	return &Searcher{p: p, auto: newAutomaton(p.prog), upcoming: make([]int, len(p.need))}
}

// Start makes text the one that is searched. It must not change while it is.
func (s *Searcher) Start(text []byte) {
	s.text = text
	for i := range s.upcoming {
		s.upcoming[i] = -1
	}
	s.returns = len(s.p.need) == 0 && bytes.IndexByte(text, '\r') >= 0
}

// Next finds the first matching line that begins at or after from, which is the beginning
// of a line and not before that of the last call. at is a place in that line or its end;
// after is where the next line begins. ok is false if not found.
func (s *Searcher) Next(from int) (at, after int, ok bool) {
	if from >= len(s.text) {
		return 0, 0, false
	}
	if len(s.p.need) > 0 {
		return s.byLiteral(from)
	}
	if s.returns {
		return s.byLine(from)
	}
	at = s.auto.find(s.text, from)
	if s.auto.tooLarge {
		return s.byLine(from)
	}
	if at < 0 {
		return 0, 0, false
	}
	return at, nextLine(s.text, at), true
}

// Line returns the line around a place that Next found: text[start:end], without its end.
func (s *Searcher) Line(at int) (start, end int) { return lineAt(s.text, at) }

// byLiteral looks at the lines that have a needed literal.
func (s *Searcher) byLiteral(from int) (at, after int, ok bool) {
	for from < len(s.text) {
		if at = s.candidate(from); at < 0 {
			break
		}
		// A literal with an end of line in it begins in the line that cannot match.
		after = nextLine(s.text, at)
		if s.p.plain {
			return at, after, true
		}
		if start, end := lineAt(s.text, at); s.match(s.text[start:end]) {
			return at, after, true
		}
		from = after
	}
	return 0, 0, false
}

// candidate returns where the next of the needed literals is, from a place on; -1 if
// it is not found.
func (s *Searcher) candidate(from int) int {
	best := -1
	for i := range s.p.need {
		at := s.upcoming[i]
		if at < from { // not known any more
			if at = s.p.need[i].index(s.text[from:]); at >= 0 {
				at += from
			} else {
				at = len(s.text)
			}
			s.upcoming[i] = at
		}
		if at < len(s.text) && (best < 0 || at < best) {
			best = at
		}
	}
	return best
}

// byLine looks at every line.
func (s *Searcher) byLine(from int) (at, after int, ok bool) {
	for from < len(s.text) {
		start, end := lineAt(s.text, from)
		if after = nextLine(s.text, from); s.match(s.text[start:end]) {
			return from, after, true
		}
		from = after
	}
	return 0, 0, false
}

// match reports whether a line matches, without its end.
func (s *Searcher) match(line []byte) bool {
	if !s.auto.tooLarge {
		if at := s.auto.find(line, 0); !s.auto.tooLarge {
			return at >= 0
		}
	}
	return s.p.re.Match(line)
}

// lineAt returns the line around a place.
func lineAt(text []byte, at int) (start, end int) {
	for start = at; start > 0 && text[start-1] != '\n'; { // mostly near
		start--
	}
	end = len(text)
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		end = at + i
	}
	for end > start && text[end-1] == '\r' {
		end--
	}
	return start, end
}

// nextLine returns where the line after a position begins.
func nextLine(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

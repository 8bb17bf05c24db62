// Package linesearch quickly finds the lines of a text that match a regular expression.
//
// It returns the same results as package regexp, applied to each line without its end (\n, and any
// \r before it): ^ and $ match at the ends of a line, no match spans lines, and each invalid UTF-8
// byte counts as U+FFFD. TestAsRegexp and FuzzSearch check that. It does not report the position of
// a match within its line.
//
// If every match must contain one of a few literals, it searches for the rarest byte of these;
// otherwise a lazily built DFA takes one step per byte. If the DFA becomes too large, package
// regexp is used instead.
package linesearch

import (
	"bytes"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Pattern is a compiled expression. It is immutable and safe for concurrent use.
type Pattern struct {
	re       *regexp.Regexp
	prog     *syntax.Prog
	required []literal // every match contains one of them; empty if none are known
	plain    bool      // required has one literal, and every line that contains it matches
}

// Compile compiles an expression of package regexp (RE2 syntax). The error is that of
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
	p := &Pattern{re: re, required: requiredLiterals(tree)}
	if len(p.required) == 1 && tree.Op == syntax.OpLiteral {
		l := p.required[0]
		p.plain = l.complete && !strings.ContainsAny(l.text, "\r\n")
	}
	if p.prog, err = syntax.Compile(tree.Simplify()); err != nil {
		return nil, err
	}
	return p, nil
}

// Searcher searches texts with a pattern, one after another, and reuses its automaton. It is not
// safe for concurrent use.
type Searcher struct {
	p    *Pattern
	auto *automaton

	text     []byte
	hasCR    bool  // text contains a \r
	upcoming []int // next position of each required literal; see candidate
}

// Searcher returns a new searcher.
func (p *Pattern) Searcher() *Searcher {
	return &Searcher{p: p, auto: newAutomaton(p.prog), upcoming: make([]int, len(p.required))}
}

// Start sets the text to search, which must not change during the search.
func (s *Searcher) Start(text []byte) {
	s.text = text
	for i := range s.upcoming {
		s.upcoming[i] = -1
	}
	s.hasCR = len(s.p.required) == 0 && bytes.IndexByte(text, '\r') >= 0
}

// Next finds the first matching line at or after from, which must be the beginning of a line and
// not before that of the last call. at is a position in the line or at its end; after is the
// beginning of the next line. ok is false if no line matches.
func (s *Searcher) Next(from int) (at, after int, ok bool) {
	if from >= len(s.text) {
		return 0, 0, false
	}
	if len(s.p.required) > 0 {
		return s.byLiteral(from)
	}
	if s.hasCR {
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

// Line returns the line around a position from Next: text[start:end], without the line end.
func (s *Searcher) Line(at int) (start, end int) { return lineAt(s.text, at) }

// byLiteral checks only the lines that contain a required literal.
func (s *Searcher) byLiteral(from int) (at, after int, ok bool) {
	for from < len(s.text) {
		if at = s.candidate(from); at < 0 {
			break
		}
		// A literal that contains a line end begins in the line that cannot match.
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

// candidate returns the next position of a required literal at or after from; otherwise -1.
func (s *Searcher) candidate(from int) int {
	best := -1
	for i := range s.p.required {
		at := s.upcoming[i]
		if at < from { // the stored position is outdated
			if at = s.p.required[i].index(s.text[from:]); at >= 0 {
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

// byLine checks every line.
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

// match reports whether a line, given without its end, matches.
func (s *Searcher) match(line []byte) bool {
	if !s.auto.tooLarge {
		if at := s.auto.find(line, 0); !s.auto.tooLarge {
			return at >= 0
		}
	}
	return s.p.re.Match(line)
}

// lineAt returns the line around a position.
func lineAt(text []byte, at int) (start, end int) {
	for start = at; start > 0 && text[start-1] != '\n'; { // usually near
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

// nextLine returns the beginning of the line after a position.
func nextLine(text []byte, at int) int {
	if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(text)
}

package redact

import "strings"

// finder finds and replaces secrets: first the known values, then the matches of each pattern.
type finder struct {
	literals *literals
	kinds    []kind // in the order of their removal
	kindOf   []int  // by literal: index in kinds
	lengths  []int  // by literal
}

// kind is a known secret, or a pattern of texts that look like one.
type kind struct {
	value string // the known secret; empty for a pattern
	pattern
}

// maxLiteral is the number of bytes of a known secret that the automaton (literals) contains. A
// longer prefix would only make the automaton larger.
const maxLiteral = 16

func newFinder(known []string, patterns []pattern) finder {
	var f finder
	var list []string
	add := func(k kind, literals ...string) {
		for _, literal := range literals {
			list = append(list, literal)
			f.kindOf, f.lengths = append(f.kindOf, len(f.kinds)), append(f.lengths, len(literal))
		}
		f.kinds = append(f.kinds, k)
	}
	for _, value := range known {
		add(kind{value: value, pattern: pattern{match: wholeValue, replacement: Mark}}, value[:min(len(value), maxLiteral)])
	}
	for _, p := range patterns {
		add(kind{pattern: p}, p.literals...)
	}
	f.literals = newLiterals(list)
	return f
}

// wholeValue is the matcher of a known secret. clean has already compared the value, so wholeValue
// only rejects a value that overlaps an earlier secret.
func wholeValue(_ string, value span, from int) (span, bool) {
	return secretIf(value.start >= from, value.start, value.end)
}

// clean returns s without secrets.
func (f finder) clean(s string) string {
	var positions [][]span // by kind
	f.literals.find(s, func(literal int32, end int) {
		n := f.kindOf[literal]
		at := span{end - f.lengths[literal], end}
		if value := f.kinds[n].value; value != "" {
			if !strings.HasPrefix(s[at.start:], value) {
				return
			}
			at.end = at.start + len(value)
		}
		if positions == nil {
			positions = make([][]span, len(f.kinds))
		}
		positions[n] = append(positions[n], at)
	})
	for n, found := range positions {
		if len(found) == 0 {
			continue
		}
		k := f.kinds[n]
		secrets := k.secrets(s, found)
		if len(secrets) == 0 {
			continue
		}
		s = replace(s, secrets, k.replacement)
		for later := n + 1; later < len(positions); later++ {
			positions[later] = shift(positions[later], secrets, len(k.replacement))
		}
	}
	return s
}

// secrets returns the secrets of this kind in s, given the positions of its literals.
func (k kind) secrets(s string, found []span) []span {
	var out []span
	from, skipTo := 0, 0
	for _, at := range found {
		if at.start < skipTo {
			continue
		}
		secret, ok := k.match(s, at, from)
		if !ok {
			skipTo = max(skipTo, secret.end) // a failed match may return how far to skip
			continue
		}
		out = append(out, secret)
		from = secret.end
	}
	return out
}

// replace returns s with the given ranges replaced.
func replace(s string, spans []span, to string) string {
	var b strings.Builder
	b.Grow(len(s))
	from := 0
	for _, p := range spans {
		b.WriteString(s[from:p.start])
		b.WriteString(to)
		from = p.end
	}
	b.WriteString(s[from:])
	return b.String()
}

// shift returns the positions of ranges after other ranges were replaced by a text of the given
// length. Ranges that overlap replaced ones are dropped.
func shift(spans, replaced []span, length int) []span {
	out := spans[:0]
	n, offset := 0, 0
	for _, p := range spans {
		for ; n < len(replaced) && replaced[n].start < p.end; n++ {
			offset += length - (replaced[n].end - replaced[n].start)
		}
		if n == 0 || replaced[n-1].end <= p.start {
			out = append(out, span{p.start + offset, p.end + offset})
		}
	}
	return out
}

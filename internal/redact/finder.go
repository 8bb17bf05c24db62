package redact

import "strings"

// finder replaces known secrets, and then each kind of text that looks like a secret.
type finder struct {
	literals *literals
	kinds    []kind // in the order of their removal
	kindOf   []int  // by literal: index in kinds
	lengths  []int  // by literal
}

// kind is a known secret, or a pattern of texts that look like one.
type kind struct {
	value string // the known secret; empty for a pattern
	look
}

// maxLiteral is how many bytes of a known secret are put into the automaton (literals), to keep it small.
const maxLiteral = 16

func newFinder(known []string, looks []look) finder {
	var f finder
	var list []string
	add := func(k kind, literals ...string) {
		for _, l := range literals {
			list = append(list, l)
			f.kindOf, f.lengths = append(f.kindOf, len(f.kinds)), append(f.lengths, len(l))
		}
		f.kinds = append(f.kinds, k)
	}
	for _, value := range known {
		add(kind{value: value, look: look{match: wholeValue, to: Mark}}, value[:min(len(value), maxLiteral)])
	}
	for _, l := range looks {
		add(kind{look: l}, l.literals...)
	}
	f.literals = newLiterals(list)
	return f
}

// wholeValue returns the range of a known secret, which clean has compared, unless an earlier secret
// overlaps it.
func wholeValue(_ string, value span, from int) (span, bool) {
	return secretIf(value.start >= from, value.start, value.end)
}

// clean returns s without secrets.
func (f finder) clean(s string) string {
	var places [][]span // by kind
	f.literals.find(s, func(literal int32, end int) {
		n := f.kindOf[literal]
		at := span{end - f.lengths[literal], end}
		if value := f.kinds[n].value; value != "" {
			if !strings.HasPrefix(s[at.start:], value) {
				return
			}
			at.end = at.start + len(value)
		}
		if places == nil {
			places = make([][]span, len(f.kinds))
		}
		places[n] = append(places[n], at)
	})
	for n, list := range places {
		if len(list) == 0 {
			continue
		}
		k := f.kinds[n]
		secrets := k.secrets(s, list)
		if len(secrets) == 0 {
			continue
		}
		s = replace(s, secrets, k.to)
		for later := n + 1; later < len(places); later++ {
			places[later] = move(places[later], secrets, len(k.to))
		}
	}
	return s
}

// secrets returns the secrets of this kind in s, given the positions of its literals.
func (k kind) secrets(s string, places []span) []span {
	var out []span
	from, skip := 0, 0
	for _, at := range places {
		if at.start < skip {
			continue
		}
		secret, ok := k.match(s, at, from)
		if !ok {
			skip = max(skip, secret.end) // a failed match may return how far to skip
			continue
		}
		out = append(out, secret)
		from = secret.end
	}
	return out
}

// replace returns s with the given ranges replaced.
func replace(s string, places []span, to string) string {
	var b strings.Builder
	b.Grow(len(s))
	from := 0
	for _, p := range places {
		b.WriteString(s[from:p.start])
		b.WriteString(to)
		from = p.end
	}
	b.WriteString(s[from:])
	return b.String()
}

// move returns the positions of ranges after other ranges were replaced by a text of the given
// length. Ranges that overlap replaced ones are dropped.
func move(places, replaced []span, length int) []span {
	out := places[:0]
	n, by := 0, 0
	for _, p := range places {
		for ; n < len(replaced) && replaced[n].start < p.end; n++ {
			by += length - (replaced[n].end - replaced[n].start)
		}
		if n == 0 || replaced[n-1].end <= p.start {
			out = append(out, span{p.start + by, p.end + by})
		}
	}
	return out
}

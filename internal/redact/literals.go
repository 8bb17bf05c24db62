package redact

// literals is an Aho-Corasick automaton that finds all occurrences of a set of literals in one pass
// over a text, ignoring case. It is immutable.
//
// Published implementations are too slow for texts of 2 MB and take longer to build than most texts
// take to clean.
type literals struct {
	class  [256]uint8 // by byte: its number in the alphabet; 0 for bytes that no literal contains
	stride uint32     // entries of next for each state
	next   []uint32   // by state and class: the index of the next state's first entry, combined with the flag found
	ends   [][]int32  // by state: the literals that end in it
}

// found marks an entry of literals.next whose state is the end of a literal.
const found = 1 << 31

// newLiterals returns the automaton for a list of literals, which must not be empty.
func newLiterals(list []string) *literals {
	l := &literals{stride: 1}
	for _, text := range list {
		for _, c := range []byte(text) {
			if c = lower(c); l.class[c] == 0 {
				l.class[c] = uint8(l.stride) //nolint:gosec // without capitals there are fewer than 256 bytes
				l.stride++
			}
		}
	}
	for c := 'A'; c <= 'Z'; c++ {
		l.class[c] = l.class[lower(byte(c))]
	}
	l.grow()
	for id, text := range list {
		at := uint32(0)
		for _, c := range []byte(text) {
			entry := at*l.stride + uint32(l.class[c])
			if l.next[entry] == 0 {
				l.next[entry] = l.grow()
			}
			at = l.next[entry]
		}
		l.ends[at] = append(l.ends[at], int32(id)) //nolint:gosec // no list is that long
	}
	l.link()
	return l
}

// grow adds a state and returns it.
func (l *literals) grow() uint32 {
	l.next = append(l.next, make([]uint32, l.stride)...)
	l.ends = append(l.ends, nil)
	return uint32(len(l.ends) - 1) //nolint:gosec // see newLiterals
}

// link turns the trie into an automaton: a missing transition becomes that of the longest suffix
// which is a state. It then renumbers states by their first entries.
func (l *literals) link() {
	suffix := make([]uint32, len(l.ends))
	queue := make([]uint32, 0, len(l.ends))
	for _, to := range l.next[:l.stride] {
		if to != 0 {
			queue = append(queue, to)
		}
	}
	for n := 0; n < len(queue); n++ {
		at := queue[n]
		row, shorter := l.next[at*l.stride:][:l.stride], l.next[suffix[at]*l.stride:][:l.stride]
		l.ends[at] = append(l.ends[at], l.ends[suffix[at]]...)
		for class, to := range row {
			if to == 0 {
				row[class] = shorter[class]
				continue
			}
			suffix[to] = shorter[class]
			queue = append(queue, to)
		}
	}
	for i, to := range l.next {
		l.next[i] = to * l.stride
		if len(l.ends[to]) > 0 {
			l.next[i] |= found
		}
	}
}

// find calls f with each occurrence of a literal, in the order of their ends.
func (l *literals) find(s string, f func(literal int32, end int)) {
	at := uint32(0)
	for i := range len(s) {
		if at = l.next[at+uint32(l.class[s[i]])]; at&found != 0 {
			at &^= found
			for _, id := range l.ends[at/l.stride] {
				f(id, i+1)
			}
		}
	}
}

// lower converts an ASCII letter to lower case.
func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + ('a' - 'A')
	}
	return c
}

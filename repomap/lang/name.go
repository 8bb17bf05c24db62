package lang

import (
	"encoding/binary"
	"math/bits"
)

// Factors of hash.
const (
	mixFinal = 0x9e3779b97f4a7c15
	mixBlock = 0xd6e8feb86659fd93
)

// hash returns a hash that is the same on every machine. It is fast, and does not withstand crafted
// collisions.
func hash(b []byte) uint64 {
	h := uint64(len(b)) * mixFinal
	for ; len(b) >= 8; b = b[8:] {
		h = mix(h^binary.LittleEndian.Uint64(b), mixBlock)
	}
	var rest uint64
	if cap(b) >= 8 { // bytes after b are read as well, and shifted out
		rest = firstBytes(binary.LittleEndian.Uint64(b[:8]), len(b))
	} else {
		for _, c := range b {
			rest = rest<<8 | uint64(c)
		}
	}
	h = mix(h^rest, mixFinal)
	return h ^ h>>29
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// firstBytes returns the first n bytes of w, at most seven, as a big-endian number.
func firstBytes(w uint64, n int) uint64 {
	return bits.ReverseBytes64(w << (64 - 8*n)) //nolint:gosec // 0 to 7
}

// readName returns the end of the name that begins at start, and its hash.
func (l *Language) readName(src []byte, start int) (end int, h uint64) {
	if l.plain && start+8 <= len(src) {
		w := binary.LittleEndian.Uint64(src[start:])
		if n := nameBytes(w); n < 8 { // most names: the same as hash, in one step
			h = mix(uint64(n)*mixFinal^firstBytes(w, n), mixFinal) //nolint:gosec // 0 to 7
			return start + n, h ^ h>>29
		}
		end = l.alphanumeric(src, start+8)
		return end, hash(src[start:end])
	}
	end = start + 1
	for end < len(src) && l.tails[src[end]] {
		end++
	}
	return end, hash(src[start:end])
}

// alphanumeric returns the end of a sequence of letters and digits.
func (l *Language) alphanumeric(src []byte, at int) int {
	for l.plain && at+8 <= len(src) {
		n := nameBytes(binary.LittleEndian.Uint64(src[at:]))
		if at += n; n < 8 {
			return at
		}
	}
	for at < len(src) && (l.classes[src[at]] == digit || l.classes[src[at]] == letter) {
		at++
	}
	return at
}

// nameBytes returns how many of eight bytes, the lowest first, can be part of a name: letters,
// digits, _ and non-ASCII bytes.
func nameBytes(w uint64) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	low := w &^ tops
	// Adding k to a byte sets its top bit if the byte is at least 0x80 - k.
	letter := low | 0x20*ones
	letter = (letter + (0x80-'a')*ones) &^ (letter + (0x80-'z'-1)*ones)
	digit := (low + (0x80-'0')*ones) &^ (low + (0x80-'9'-1)*ones)
	notLine := (low ^ '_'*ones) + 0x7F*ones
	return bits.TrailingZeros64(^(letter|digit|^notLine|w)&tops) / 8
}

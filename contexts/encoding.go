package contexts

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/workspace"
)

// decode returns the text of a file in UTF-8, in UTF-16 with a byte order mark, or in a single-byte
// encoding, which is taken for Windows-1252 (and so Latin-1). ok is false if data is not text. data
// may be the beginning of a file.
func decode(data []byte) (text string, ok bool) {
	switch {
	case bytes.HasPrefix(data, []byte("\xff\xfe\x00\x00")):
		return "", false // UTF-32, which is not supported
	case bytes.HasPrefix(data, []byte("\xff\xfe")):
		return decode16(data[2:], 0)
	case bytes.HasPrefix(data, []byte("\xfe\xff")):
		return decode16(data[2:], 1)
	case workspace.IsBinary(data):
		return "", false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if utf8.Valid(data) {
		return string(data), true
	}
	good, bad, control := 0, 0, 0 // non-ASCII characters, invalid bytes, control characters that do not occur in text
	for rest := data; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			bad++
		case size > 1:
			good++
		case r < ' ' && !strings.ContainsRune("\t\n\r\f\x1b", r):
			control++
		}
		rest = rest[size:]
	}
	const share = 20 // text has at most one control character per this many bytes
	switch {
	case control > len(data)/share:
		return "", false
	case good >= bad: // UTF-8 with a few errors, or cut off
		return strings.ToValidUTF8(string(data), "\uFFFD"), true
	}
	table := []rune(windows1252)
	var b strings.Builder
	for _, c := range data {
		r := rune(c)
		if c >= 0x80 && c < 0xa0 {
			r = table[c-0x80]
		}
		b.WriteRune(r)
	}
	return b.String(), true
}

// windows1252 has the characters of Windows-1252 at 0x80 to 0x9F, which are control characters in
// Latin-1.
const windows1252 = "€\uFFFD‚ƒ„…†‡ˆ‰Š‹Œ\uFFFDŽ\uFFFD\uFFFD‘’“”•–—˜™š›œ\uFFFDžŸ"

// decode16 decodes UTF-16. low is the index of the lower byte of each pair.
func decode16(data []byte, low int) (string, bool) {
	units := make([]uint16, 0, len(data)/2)
	for ; len(data) > 1; data = data[2:] {
		u := uint16(data[1-low])<<8 | uint16(data[low])
		if u == 0 {
			return "", false
		}
		units = append(units, u)
	}
	return string(utf16.Decode(units)), true
}

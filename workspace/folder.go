package workspace

import (
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/ignore"
)

// folder is a folder of an index, with its file names and its subfolders. It is immutable once it is
// part of a snapshot.
type folder struct {
	text       text // path relative to the root, with slashes and a final slash; empty for the root
	subs       []*folder
	outerRules *ignore.Rules // rules of the parent folder; nil for a root

	// names and lower have the concatenated file names in lexical order, as written and in lower
	// case. ends has the end offset of each name, and masks its maskOf.
	names, lower string
	ends         []uint32
	masks        []uint64
}

// text is a name or a path, prepared for matching.
type text struct {
	plain string
	lower string // as long as plain, with each letter at the same offset
	mask  uint64 // the characters in lower
}

func newText(s string) text {
	low := toLowerSameLen(s)
	return text{plain: s, lower: low, mask: maskOf(low)}
}

// name returns the last part of a folder's path.
func (t text) name() text {
	s := strings.TrimSuffix(t.plain, "/")
	i := strings.LastIndexByte(s, '/') + 1
	low := t.lower[i:len(s)]
	return text{plain: s[i:], lower: low, mask: maskOf(low)}
}

// file returns the name of the i-th file.
func (f *folder) file(i int) text {
	from := uint32(0)
	if i > 0 {
		from = f.ends[i-1]
	}
	to := f.ends[i]
	return text{plain: f.names[from:to], lower: f.lower[from:to], mask: f.masks[i]}
}

// fill sets the content of the folder. Its subfolders are new and still empty.
func (f *folder) fill(entries []fs.DirEntry, rules *ignore.Rules) {
	files, size := 0, 0
	for _, e := range entries {
		if !e.IsDir() {
			files++
			size += len(e.Name())
		}
	}
	var names strings.Builder
	names.Grow(size)
	f.ends, f.masks = make([]uint32, 0, files), make([]uint64, 0, files)
	for _, e := range entries {
		if e.IsDir() {
			f.subs = append(f.subs, &folder{text: newText(f.text.plain + e.Name() + "/"), outerRules: rules})
			continue
		}
		names.WriteString(e.Name())
		f.ends = append(f.ends, uint32(names.Len())) //nolint:gosec // names of one folder are less than 4 GiB
	}
	f.names = names.String()
	f.lower = toLowerSameLen(f.names)
	from := uint32(0)
	for _, to := range f.ends {
		f.masks = append(f.masks, maskOf(f.lower[from:to]))
		from = to
	}
}

// entries counts the files and folders directly in the folder.
func (f *folder) entries() int { return len(f.ends) + len(f.subs) }

// toLowerSameLen converts a text to lower case. It leaves letters unchanged whose lower case has a
// different length in bytes.
func toLowerSameLen(s string) string {
	i := 0
	for i < len(s) && s[i] < utf8.RuneSelf && (s[i] < 'A' || s[i] > 'Z') {
		i++
	}
	if i == len(s) {
		return s
	}
	b := []byte(s)
	for i < len(b) {
		if c := b[i]; c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				b[i] = c + 'a' - 'A'
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(b[i:])
		if low := unicode.ToLower(r); low != r && utf8.RuneLen(low) == size {
			utf8.EncodeRune(b[i:], low)
		}
		i += size
	}
	return string(b)
}

// maskOf returns the set of characters of a text. Each letter and digit has its own bit; other
// characters share bits. A text can contain another text only if its mask has all bits of the other
// mask.
func maskOf(s string) uint64 {
	m := uint64(0)
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z':
			m |= 1 << (c - 'a')
		case '0' <= c && c <= '9':
			m |= 1 << (26 + c - '0')
		default:
			m |= 1 << (36 + c%28)
		}
	}
	return m
}

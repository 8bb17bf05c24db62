package workspace

import (
	"io/fs"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/internal/ignore"
)

// folder is a folder of an index: the files in it, packed, and the folders. It does not
// change once it is part of a snapshot.
type folder struct {
	text  text // its path from the root, with slashes and one at the end; empty for the root
	subs  []*folder
	rules *ignore.Rules // in it
	above *ignore.Rules // in its parent; nil for a root

	// The files' names in lexical order, one after another, and in lower case; ends says
	// where each ends.
	names, lower string
	ends         []uint32
	masks        []uint64
}

// text is a name or a path with what is needed to match it.
type text struct {
	plain string
	lower string // as long as plain, with every letter at the same place
	mask  uint64 // which characters lower has
}

func newText(s string) text {
	low := lowered(s)
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

// fill sets what is in the folder. Folders in it are new, and still to be filled.
func (f *folder) fill(entries []fs.DirEntry, rules *ignore.Rules) {
	f.rules = rules
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
			f.subs = append(f.subs, &folder{text: newText(f.text.plain + e.Name() + "/"), above: rules})
			continue
		}
		names.WriteString(e.Name())
		f.ends = append(f.ends, uint32(names.Len())) //nolint:gosec // names of one folder are less than 4 GiB
	}
	f.names = names.String()
	f.lower = lowered(f.names)
	from := uint32(0)
	for _, to := range f.ends {
		f.masks = append(f.masks, maskOf(f.lower[from:to]))
		from = to
	}
}

// entries says how many files and folders are in it.
func (f *folder) entries() int { return len(f.ends) + len(f.subs) }

// lowered returns a text in lower case, leaving letters as they are that would need another
// number of bytes.
func lowered(s string) string {
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

// maskOf says which characters a text has: a bit for each letter and digit, the rest shares
// some. A text can only contain another if it has all its bits.
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

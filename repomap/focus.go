package repomap

import (
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// target is a focus, resolved in a tree.
type target struct {
	files map[int]float64 // by index in tree.order: the file's share of the focus
	names map[int32]bool  // by number

	unmatched []string // requested paths and names that were not found

	hints map[int]float64 // by index in tree.order, like files: files that have the words of a text
	words *wordset        // of the text; may be nil
	rare  []float64       // by number of a word: its rarity
}

// Weights of the parts of a focus.
const (
	askedFile = 1.0
	askedName = .6 // divided among the files that define it
	toldFile  = .6
	toldName  = .3
)

// maxWords is how many words of a text are used.
const maxWords = 2000

func (t *tree) target(f Focus) target {
	out := target{files: map[int]float64{}, names: map[int32]bool{}, hints: map[int]float64{}}
	aim := aim{t: t, out: &out}
	var asked []string
	for _, p := range f.Paths {
		if rel := t.relative(p); !aim.atPath(rel, askedFile) {
			asked = append(asked, p)
		}
	}
	named := append(asked, f.Names...)
	for _, n := range named {
		if !aim.atBase(n, askedFile) && !aim.atName(n, askedName) {
			out.unmatched = append(out.unmatched, n)
		}
	}
	for _, w := range counted(f.Text) {
		times := float64(w.times)
		switch {
		case strings.Contains(w.text, "/") && aim.atPath(t.relative(w.text), toldFile*times):
		case strings.Contains(w.text, ".") && aim.atBase(w.text, toldFile*times):
		default:
			for _, part := range strings.FieldsFunc(w.text, func(r rune) bool { return r == '.' || r == '/' || r == '#' }) {
				if telling(part) {
					aim.atName(part, toldName*times)
				}
			}
		}
	}
	t.aimAtWords(&out, strings.Join(append(named, f.Text), " "), wordsWorth*float64(max(1, len(named))))
	return out
}

// mention is a word in a text with its number of occurrences.
type mention struct {
	text  string
	times int
}

// counted returns the words of a text that may be names, without duplicates.
func counted(text string) []mention {
	var out []mention
	at := map[string]int{}
	for i, word := range strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`()[]{}<>,;:=*!?|", r)
	}) {
		if i == maxWords {
			break
		}
		word = strings.Trim(word, ".@#")
		n, known := at[word]
		if !known {
			n = len(out)
			at[word] = n
			out = append(out, mention{text: word})
		}
		out[n].times++
	}
	return out
}

// telling reports whether a word in a text is more likely a name than an ordinary word.
func telling(word string) bool {
	if len(word) < 4 {
		return false
	}
	inner := word[1:]
	return strings.ContainsAny(inner, "_-0123456789") || strings.ToLower(inner) != inner && strings.ToUpper(inner) != inner || word[0] >= 'A' && word[0] <= 'Z'
}

// relative converts a path to one relative to the root, with slashes.
func (t *tree) relative(p string) string {
	if filepath.IsAbs(p) {
		if rel, err := filepath.Rel(t.root, p); err == nil {
			p = rel
		}
	}
	return path.Clean(filepath.ToSlash(p))
}

func (out *target) add(files []int, worth float64) bool {
	for _, i := range files {
		out.files[i] += worth / float64(len(files))
	}
	return len(files) > 0
}

package repomap

import (
	"path"
	"path/filepath"
	"strings"
	"unicode"
)

// target is a focus, resolved to the files and names of a tree.
type target struct {
	files map[int]float64 // by index in tree.order: the file's share of the focus
	names map[int32]bool  // by number

	unmatched []string // requested paths and names that were not found

	hints      map[int]float64 // like files, for files that contain words of the text
	words      *wordset        // of the text; may be nil
	wordRarity []float64       // by number of a word, see wordset.match
}

// Weights of the parts of a focus.
const (
	requestedFileWeight = 1.0
	requestedNameWeight = .6 // divided among the files that define it
	textFileWeight      = .6
	textNameWeight      = .3
)

// maxWords is how many words of a text are used.
const maxWords = 2000

func (t *tree) target(f Focus) target {
	out := target{files: map[int]float64{}, names: map[int32]bool{}, hints: map[int]float64{}}
	resolver := focusResolver{t: t, out: &out}
	var notPaths []string
	for _, p := range f.Paths {
		if rel := t.relative(p); !resolver.addPath(rel, requestedFileWeight) {
			notPaths = append(notPaths, p)
		}
	}
	named := append(notPaths, f.Names...)
	for _, n := range named {
		if !resolver.addBase(n, requestedFileWeight) && !resolver.addName(n, requestedNameWeight) {
			out.unmatched = append(out.unmatched, n)
		}
	}
	for _, w := range mentions(f.Text) {
		times := float64(w.times)
		switch {
		case strings.Contains(w.text, "/") && resolver.addPath(t.relative(w.text), textFileWeight*times):
		case strings.Contains(w.text, ".") && resolver.addBase(w.text, textFileWeight*times):
		default:
			for _, part := range strings.FieldsFunc(w.text, func(r rune) bool { return r == '.' || r == '/' || r == '#' }) {
				if looksLikeName(part) {
					resolver.addName(part, textNameWeight*times)
				}
			}
		}
	}
	t.addTextWords(&out, strings.Join(append(named, f.Text), " "), wordsWeight*float64(max(1, len(named))))
	return out
}

// mention is a word in a text with its number of occurrences.
type mention struct {
	text  string
	times int
}

// mentions returns the words of a text that may be names, without duplicates.
func mentions(text string) []mention {
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

// looksLikeName reports whether a word in a text is more likely a name than an ordinary word.
func looksLikeName(word string) bool {
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

func (out *target) add(files []int, weight float64) bool {
	for _, i := range files {
		out.files[i] += weight / float64(len(files))
	}
	return len(files) > 0
}

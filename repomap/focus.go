package repomap

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// target is a focus, in terms of a tree.
type target struct {
	files map[int]float64 // by index in tree.order: how much of the focus is there
	names map[int32]bool  // by number

	hints map[int]float64 // by index in tree.order, as files: those that have the words of a text
	words *wordset        // of the text; nil without one
	rare  []float64       // by number of a word: how much it tells
}

// How much the parts of a focus are worth.
const (
	askedFile = 1.0
	askedName = .6 // shared by the files that define it
	toldFile  = .6
	toldName  = .3
)

// maxWords bounds how many words of a text are looked at.
const maxWords = 2000

func (t *tree) target(f Focus) target {
	out := target{files: map[int]float64{}, names: map[int32]bool{}, hints: map[int]float64{}}
	var asked []string
	for _, p := range f.Paths {
		if rel := t.relative(p); !t.aimAt(&out, rel, askedFile) {
			asked = append(asked, p)
		}
	}
	named := append(asked, f.Names...)
	for _, n := range named {
		if !t.aimAtBase(&out, n, askedFile) {
			t.aimAtName(&out, n, askedName)
		}
	}
	for i, word := range strings.FieldsFunc(f.Text, func(r rune) bool {
		return unicode.IsSpace(r) || strings.ContainsRune("\"'`()[]{}<>,;:=*!?|", r)
	}) {
		if i == maxWords {
			break
		}
		word = strings.Trim(word, ".@#")
		switch {
		case strings.Contains(word, "/") && t.aimAt(&out, t.relative(word), toldFile):
		case strings.Contains(word, ".") && t.aimAtBase(&out, word, toldFile):
		default:
			for _, part := range strings.FieldsFunc(word, func(r rune) bool { return r == '.' || r == '/' || r == '#' }) {
				if telling(part) {
					t.aimAtName(&out, part, toldName)
				}
			}
		}
	}
	t.aimAtWords(&out, strings.Join(append(named, f.Text), " "), wordsWorth*float64(max(1, len(named))))
	return out
}

// telling says whether a word of a text is more likely a name than a word.
func telling(word string) bool {
	if len(word) < 4 {
		return false
	}
	inner := word[1:]
	return strings.ContainsAny(inner, "_-0123456789") || strings.ToLower(inner) != inner && strings.ToUpper(inner) != inner || word[0] >= 'A' && word[0] <= 'Z'
}

// relative makes a path relative to the root, with slashes.
func (t *tree) relative(p string) string {
	if filepath.IsAbs(p) {
		if rel, err := filepath.Rel(t.root, p); err == nil {
			p = rel
		}
	}
	return path.Clean(filepath.ToSlash(p))
}

// aimAt adds a file, or what lies in a folder.
func (t *tree) aimAt(out *target, rel string, worth float64) bool {
	if rel == "." {
		return true // everything is nothing in particular
	}
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	var in []int
	for i, f := range t.order {
		if f.shown() && (f.path == rel || strings.HasPrefix(f.path, rel) && f.path[len(rel)] == '/') {
			in = append(in, i)
		}
	}
	return out.add(in, worth)
}

// aimAtBase adds the files of a name, as `rank.go`.
func (t *tree) aimAtBase(out *target, name string, worth float64) bool {
	var in []int
	for i, f := range t.order {
		if f.shown() && path.Base(f.path) == name {
			in = append(in, i)
		}
	}
	return out.add(in, worth)
}

// aimAtName adds a definition in whatever languages have it.
func (t *tree) aimAtName(out *target, name string, worth float64) {
	if i := strings.LastIndexAny(name, ".:#"); i >= 0 {
		name = name[i+1:]
	}
	var in []int
	for i, f := range t.order {
		if f.lang == nil || len(f.own) == 0 {
			continue
		}
		id, ok := t.names.ids.find(f.hash(name))
		if ok && slices.Contains(f.own, id) {
			in = append(in, i)
			out.names[id] = true
		}
	}
	out.add(in, worth)
}

func (out *target) add(files []int, worth float64) bool {
	for _, i := range files {
		out.files[i] += worth / float64(len(files))
	}
	return len(files) > 0
}

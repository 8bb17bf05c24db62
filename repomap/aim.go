package repomap

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// aim finds named paths and definitions in a tree, and adds them to a target. It is for one focus;
// its look-up tables are created when they are first needed, so that the many words of a long text
// do not each require a pass over all files.
type aim struct {
	t   *tree
	out *target

	bases  map[string][]int // shown files, by the last part of their path
	spaces []space

	// Files by the names that they define: the files for name n are definers[from[n]:from[n+1]].
	from     []int32
	definers []int32
}

// space is a language in a tree, with the folders that contain files of it: a private name is
// distinct in each of them.
type space struct {
	lang    *lang.Language
	folders []uint64 // see file.folder
}

// atPath adds a file, or the files in a folder. rel is relative to the root, and clean. It returns
// false if neither exists.
func (a *aim) atPath(rel string, worth float64) bool {
	if rel == "." {
		return true // the whole repository is not a focus
	}
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	order := a.t.order
	first := func(path string) int {
		i, _ := slices.BinarySearchFunc(order, path, func(f *file, path string) int { return strings.Compare(f.path, path) })
		return i
	}
	var in []int
	if i := first(rel); i < len(order) && order[i].path == rel && order[i].shown() {
		in = append(in, i)
	}
	for i := first(rel + "/"); i < len(order) && strings.HasPrefix(order[i].path, rel+"/"); i++ {
		if order[i].shown() {
			in = append(in, i)
		}
	}
	return a.out.add(in, worth)
}

// atBase adds the files with a name such as `rank.go`. It returns false if none exist.
func (a *aim) atBase(name string, worth float64) bool {
	if a.bases == nil {
		a.bases = make(map[string][]int, len(a.t.order))
		for i, f := range a.t.order {
			if f.shown() {
				base := path.Base(f.path)
				a.bases[base] = append(a.bases[base], i)
			}
		}
	}
	return a.out.add(a.bases[name], worth)
}

// atName adds the definitions of a name, in all languages. It returns false if it finds no definition.
func (a *aim) atName(name string, worth float64) bool {
	if i := strings.LastIndexAny(name, ".:#"); i >= 0 {
		name = name[i+1:]
	}
	if a.from == nil {
		a.collect()
	}
	var in []int
	for _, s := range a.spaces {
		h := s.lang.Hash(name)
		if !lang.Private(h) {
			in = a.defining(in, s.lang, h)
			continue
		}
		for _, folder := range s.folders {
			in = a.defining(in, s.lang, h^folder)
		}
	}
	return a.out.add(in, worth)
}

// defining appends the files of a language that define a name, given its hash as in file.hashes.
func (a *aim) defining(in []int, l *lang.Language, hash uint64) []int {
	id, ok := a.t.names.ids.find(hash)
	if !ok {
		return in
	}
	for _, i := range a.definers[a.from[id]:a.from[id+1]] {
		if a.t.order[i].lang == l {
			in = append(in, int(i))
			a.out.names[id] = true
		}
	}
	return in
}

// collect builds the table of which files define which names, and the list of languages and
// folders.
func (a *aim) collect() {
	a.from = make([]int32, len(a.t.names.tell)+1)
	total := int32(0)
	at := map[*lang.Language]int{} // index in spaces
	type place struct {
		lang   *lang.Language
		folder string
	}
	seen := map[place]bool{}
	for _, f := range a.t.order {
		if f.lang == nil || len(f.own) == 0 {
			continue
		}
		for _, id := range f.own {
			a.from[id+1]++
			total++
		}
		n, known := at[f.lang]
		if !known {
			n = len(a.spaces)
			at[f.lang] = n
			a.spaces = append(a.spaces, space{lang: f.lang})
		}
		if p := (place{f.lang, path.Dir(f.path)}); !seen[p] {
			seen[p] = true
			a.spaces[n].folders = append(a.spaces[n].folders, f.folder())
		}
	}
	for id := range len(a.from) - 1 {
		a.from[id+1] += a.from[id]
	}
	a.definers = make([]int32, total)
	next := slices.Clone(a.from)
	for i, f := range a.t.order {
		if f.lang == nil {
			continue
		}
		for _, id := range f.own {
			a.definers[next[id]] = int32(i) //nolint:gosec // at most maxFiles
			next[id]++
		}
	}
}

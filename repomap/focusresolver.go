package repomap

import (
	"path"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// focusResolver finds the paths and names of one focus in a tree, and adds them to a target. It
// builds its lookup tables when it first needs them. Without the tables, each word of a long text
// would need a pass over all files.
type focusResolver struct {
	t   *tree
	out *target

	bases     map[string][]int // shown files, by the last part of their path
	languages []langFolders

	// definers has the files by the names that they define. The files that define name n are
	// definers[definersFrom[n]:definersFrom[n+1]].
	definersFrom []int32
	definers     []int32
}

// langFolders is a language in a tree, with the folders that contain its files. The same private
// name in two folders is two names.
type langFolders struct {
	lang    *lang.Language
	folders []uint64 // see file.folderSalt
}

// addPath adds a file, or the files in a folder. rel is clean and relative to the root. addPath
// returns false if there is no such file or folder.
func (r *focusResolver) addPath(rel string, weight float64) bool {
	if rel == "." {
		return true // the whole repository, which adds nothing to the focus
	}
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return false
	}
	order := r.t.order
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
	return r.out.add(in, weight)
}

// addBase adds the files with a base name such as `rank.go`. It returns false if it finds no file.
func (r *focusResolver) addBase(name string, weight float64) bool {
	if r.bases == nil {
		r.bases = make(map[string][]int, len(r.t.order))
		for i, f := range r.t.order {
			if f.shown() {
				base := path.Base(f.path)
				r.bases[base] = append(r.bases[base], i)
			}
		}
	}
	return r.out.add(r.bases[name], weight)
}

// addName adds the definitions of a name, in all languages. It returns false if it finds no definition.
func (r *focusResolver) addName(name string, weight float64) bool {
	if i := strings.LastIndexAny(name, ".:#"); i >= 0 {
		name = name[i+1:]
	}
	if r.definersFrom == nil {
		r.indexDefiners()
	}
	var in []int
	for _, s := range r.languages {
		h := s.lang.Hash(name)
		if !lang.Private(h) {
			in = r.appendDefiners(in, s.lang, h)
			continue
		}
		for _, folder := range s.folders {
			in = r.appendDefiners(in, s.lang, h^folder)
		}
	}
	return r.out.add(in, weight)
}

// appendDefiners appends the files of a language that define a name. hash is a value of file.hashes.
func (r *focusResolver) appendDefiners(in []int, l *lang.Language, hash uint64) []int {
	id, ok := r.t.names.ids.find(hash)
	if !ok {
		return in
	}
	for _, i := range r.definers[r.definersFrom[id]:r.definersFrom[id+1]] {
		if r.t.order[i].lang == l {
			in = append(in, int(i))
			r.out.names[id] = true
		}
	}
	return in
}

// indexDefiners builds the table of the files that define each name, and the list of languages and
// folders.
func (r *focusResolver) indexDefiners() {
	r.definersFrom = make([]int32, len(r.t.names.distinctiveness)+1)
	total := int32(0)
	at := map[*lang.Language]int{} // index in r.languages
	type place struct {
		lang   *lang.Language
		folder string
	}
	seen := map[place]bool{}
	for _, f := range r.t.order {
		if f.lang == nil || len(f.definedNames) == 0 {
			continue
		}
		for _, id := range f.definedNames {
			r.definersFrom[id+1]++
			total++
		}
		n, known := at[f.lang]
		if !known {
			n = len(r.languages)
			at[f.lang] = n
			r.languages = append(r.languages, langFolders{lang: f.lang})
		}
		if p := (place{f.lang, path.Dir(f.path)}); !seen[p] {
			seen[p] = true
			r.languages[n].folders = append(r.languages[n].folders, f.folderSalt())
		}
	}
	for id := range len(r.definersFrom) - 1 {
		r.definersFrom[id+1] += r.definersFrom[id]
	}
	r.definers = make([]int32, total)
	next := slices.Clone(r.definersFrom)
	for i, f := range r.t.order {
		if f.lang == nil {
			continue
		}
		for _, id := range f.definedNames {
			r.definers[next[id]] = int32(i) //nolint:gosec // at most maxFiles
			next[id]++
		}
	}
}

package repomap

import "slices"

// maxVisibleImports is how many imports, direct and re-exported, are followed for one file.
const maxVisibleImports = 1000

// visibility determines which names one file can refer to: names that its folder or its imported
// files define.
type visibility struct {
	r *ranking
	// definers has the files by the names that they define. The files that define name n are
	// definers[from[n]:from[n+1]].
	from, definers []int32
	seenBy         []int32 // by file: the last file that sees it, plus one
	file           int32   // the current file, plus one
	all            bool    // the file has no known imports, so it can mean any name
	budget         int     // how many more imports are followed
}

func newVisibility(r *ranking) *visibility {
	v := &visibility{r: r, from: make([]int32, len(r.useWeight)+1), seenBy: make([]int32, len(r.t.order))}
	total := 0
	for _, f := range r.t.order {
		total += len(f.definedNames)
		for _, id := range f.definedNames {
			v.from[id+1]++
		}
	}
	for id := range r.useWeight {
		v.from[id+1] += v.from[id]
	}
	v.definers = make([]int32, total)
	next := slices.Clone(v.from)
	for i, f := range r.t.order {
		for _, id := range f.definedNames {
			v.definers[next[id]] = int32(i) //nolint:gosec // at most maxFiles
			next[id]++
		}
	}
	return v
}

// startFile selects the file for the following calls of sees.
func (v *visibility) startFile(i int) {
	f := v.r.t.order[i]
	if v.all = len(f.imports) == 0; v.all {
		return
	}
	v.file, v.budget = int32(i)+1, maxVisibleImports //nolint:gosec // at most maxFiles
	v.addFolder(v.r.t.mods.folderOf[i])
	for _, to := range f.imports {
		v.add(to, 2)
	}
}

func (v *visibility) addFolder(d int32) {
	for _, i := range v.r.t.mods.members[d] {
		v.seenBy[i] = v.file
	}
}

// add marks an imported file as seen and, up to the given depth, the files that it re-exports.
func (v *visibility) add(to int32, depth int) {
	if v.budget--; v.budget < 0 {
		return
	}
	if to < 0 {
		v.addFolder(^to)
		return
	}
	v.seenBy[to] = v.file
	if f := v.r.t.order[to]; depth > 0 && reexports(f) {
		for _, next := range f.imports {
			v.add(next, depth-1)
		}
	}
}

// sees reports whether the file can mean a name that it uses.
func (v *visibility) sees(name int32) bool {
	const maxDefiners = 64 // a name with so many definitions is not informative anyway
	definers := v.definers[v.from[name]:v.from[name+1]]
	if v.all || len(definers) > maxDefiners {
		return true
	}
	for _, i := range definers {
		if v.seenBy[i] == v.file {
			return true
		}
	}
	return false
}

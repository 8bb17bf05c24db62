package repomap

import "slices"

// maxVisibleImports is how many imports, direct and re-exported, are followed for one file.
const maxVisibleImports = 1000

// visibility determines which names one file can refer to: names that its folder or its imported
// files define.
type visibility struct {
	r *ranking
	// definers has the files by the names that they define. The files for name n are
	// definers[from[n]:from[n+1]].
	from, definers []int32
	seenBy         []int32 // by file: the last file that sees it, plus one
	file           int32
	all            bool // the file has no known imports, so it can mean any name
	budget         int  // how many more imports are followed
}

func newVisibility(r *ranking) *visibility {
	s := &visibility{r: r, from: make([]int32, len(r.useWeight)+1), seenBy: make([]int32, len(r.t.order))}
	total := 0
	for _, f := range r.t.order {
		total += len(f.own)
		for _, id := range f.own {
			s.from[id+1]++
		}
	}
	for id := range r.useWeight {
		s.from[id+1] += s.from[id]
	}
	s.definers = make([]int32, total)
	next := slices.Clone(s.from)
	for i, f := range r.t.order {
		for _, id := range f.own {
			s.definers[next[id]] = int32(i) //nolint:gosec // at most maxFiles
			next[id]++
		}
	}
	return s
}

// startFile selects the file for the following calls of sees.
func (s *visibility) startFile(i int) {
	f := s.r.t.order[i]
	if s.all = len(f.imports) == 0; s.all {
		return
	}
	s.file, s.budget = int32(i)+1, maxVisibleImports //nolint:gosec // at most maxFiles
	s.addFolder(s.r.t.mods.home[i])
	for _, to := range f.imports {
		s.add(to, 2)
	}
}

func (s *visibility) addFolder(d int32) {
	for _, i := range s.r.t.mods.members[d] {
		s.seenBy[i] = s.file
	}
}

// add marks an imported file as seen and, up to the given depth, the files that it re-exports.
func (s *visibility) add(to int32, depth int) {
	if s.budget--; s.budget < 0 {
		return
	}
	if to < 0 {
		s.addFolder(^to)
		return
	}
	s.seenBy[to] = s.file
	if f := s.r.t.order[to]; depth > 0 && reexports(f) {
		for _, next := range f.imports {
			s.add(next, depth-1)
		}
	}
}

// sees reports whether the file can mean a name that it uses.
func (s *visibility) sees(name int32) bool {
	const maxDefiners = 64 // a name with so many definitions is not informative anyway
	definers := s.definers[s.from[name]:s.from[name+1]]
	if s.all || len(definers) > maxDefiners {
		return true
	}
	for _, i := range definers {
		if s.seenBy[i] == s.file {
			return true
		}
	}
	return false
}

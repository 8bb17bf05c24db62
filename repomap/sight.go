package repomap

import "slices"

// maxSeen is how many imports, direct and re-exported, are followed for one file.
const maxSeen = 1000

// sight determines which names a file can refer to: those that are defined in files that it
// imports, or in its own folder.
type sight struct {
	r *ranking
	// Files by the names that they define: those of name n are definers[from[n]:from[n+1]].
	from, definers []int32
	seen           []int32 // by file: the last file that sees it, plus one
	file           int32
	all            bool // the file has no known imports, so it can mean any name
	left           int  // rest of maxSeen
}

func newSight(r *ranking) *sight {
	s := &sight{r: r, from: make([]int32, len(r.weight)+1), seen: make([]int32, len(r.t.order))}
	total := 0
	for _, f := range r.t.order {
		total += len(f.own)
		for _, id := range f.own {
			s.from[id+1]++
		}
	}
	for id := range r.weight {
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

// look starts with the next file.
func (s *sight) look(i int) {
	f := s.r.t.order[i]
	if s.all = len(f.imports) == 0; s.all {
		return
	}
	s.file, s.left = int32(i)+1, maxSeen //nolint:gosec // at most maxFiles
	s.folder(s.r.t.mods.home[i])
	for _, to := range f.imports {
		s.add(to, 2)
	}
}

func (s *sight) folder(d int32) {
	for _, i := range s.r.t.mods.members[d] {
		s.seen[i] = s.file
	}
}

// add marks an imported file as seen and, up to the given depth, the files that it re-exports.
func (s *sight) add(to int32, deep int) {
	if s.left--; s.left < 0 {
		return
	}
	if to < 0 {
		s.folder(^to)
		return
	}
	s.seen[to] = s.file
	if f := s.r.t.order[to]; deep > 0 && passesOn(f) {
		for _, next := range f.imports {
			s.add(next, deep-1)
		}
	}
}

// sees reports whether the file can mean a name that it uses.
func (s *sight) sees(name int32) bool {
	const most = 64 // a name with so many definitions is not informative anyway
	definers := s.definers[s.from[name]:s.from[name+1]]
	if s.all || len(definers) > most {
		return true
	}
	for _, i := range definers {
		if s.seen[i] == s.file {
			return true
		}
	}
	return false
}

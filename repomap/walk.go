package repomap

import (
	"math"
	"slices"
)

// Parameters of the random walk (PageRank).
const (
	damping    = .7   // probability to follow a link instead of starting again
	rounds     = 30   // at most
	accuracy   = 1e-5 // the walk ends when all ranks together change less in a round
	focusShare = .8   // share of the starting points that is in the focus, if there is one
)

// links has the uses and definitions of names, and the imports, of all files. They are in contiguous
// slices because each round of the walk reads all of them.
type links struct {
	from []int32   // by file: index of its first link; one more entry for the end
	name []int32   // by link
	part []float32 // by link: its share of the file's output, for each file that defines the name

	definedNamesFrom []int32 // by file: index of its first name in definedNames; one more entry for the end
	definedNames     []int32 // names

	importFrom []int32   // by file: index of its first import; one more entry for the end
	imported   []int32   // files
	importPart []float32 // by import: its share of the file's output to imports, before weighting by the imported file's role
}

// Weights of imports.
const (
	importShare      = .4 // of a file's output goes to the files that it imports
	notVisibleFactor = .2 // factor for a use of a name that is not defined in an imported file or in the same folder
)

// link computes for each use of a name its share of the file's output.
func (r *ranking) link() {
	files := r.t.order
	total, owned, imports := 0, 0, 0
	for _, f := range files {
		for _, to := range f.imports {
			if to < 0 {
				imports += len(r.t.mods.members[^to])
			} else {
				imports++
			}
		}
		total += len(f.refs)
		owned += len(f.definedNames)
	}
	l := links{
		from: make([]int32, len(files)+1), name: make([]int32, 0, total), part: make([]float32, 0, total),
		definedNamesFrom: make([]int32, len(files)+1), definedNames: make([]int32, 0, owned), importFrom: make([]int32, len(files)+1), imported: make([]int32, 0, imports), importPart: make([]float32, 0, imports),
	}
	v := newVisibility(r)
	for i, f := range files {
		l.linkImports(r, i)
		v.startFile(i)
		begin := len(l.name)
		sum := float32(0)
		for _, ref := range f.refs {
			if w := r.useWeight[ref.name] * useCountFactor(ref.count); w > 0 {
				if !v.sees(ref.name) {
					w *= notVisibleFactor
				}
				l.name, l.part = append(l.name, ref.name), append(l.part, w)
				sum += w
			}
		}
		for k := begin; k < len(l.part); k++ {
			l.part[k] /= sum * r.definerWeight[l.name[k]]
		}
		l.definedNames = append(l.definedNames, f.definedNames...)
		l.from[i+1], l.definedNamesFrom[i+1] = int32(len(l.name)), int32(len(l.definedNames)) //nolint:gosec // maxFiles of maxBytes have fewer names
	}
	r.links = l
}

// linkImports computes the share of each import of a file. The share of a folder is divided among
// its files.
func (l *links) linkImports(r *ranking, i int) {
	f, m := r.t.order[i], r.t.mods
	begin := len(l.imported)
	sum := float32(0)
	add := func(to int32, part float32) {
		if w := part * r.role[to]; w > 0 && int(to) != i {
			sum += w
			l.imported, l.importPart = append(l.imported, to), append(l.importPart, part)
		}
	}
	for _, to := range f.imports {
		if to >= 0 {
			add(to, 1)
			continue
		}
		for _, member := range m.members[^to] {
			add(member, 1/float32(len(m.members[^to])))
		}
	}
	for k := begin; k < len(l.importPart); k++ {
		l.importPart[k] /= sum
	}
	l.importFrom[i+1] = int32(len(l.imported)) //nolint:gosec // a file has few imports
}

// useCountFactor returns the factor for the weight of a name that a file uses several times: the
// square root of the number of uses, at most 4.
func useCountFactor(uses uint8) float32 {
	return squareRoots[min(int(uses), len(squareRoots)-1)]
}

// squareRoots has the square roots of 0 to 16.
var squareRoots = [...]float32{
	0, 1, 1.4142135623730951, 1.7320508075688772, 2, 2.23606797749979, 2.449489742783178, 2.6457513110645907,
	2.8284271247461903, 3, 3.1622776601683795, 3.3166247903554, 3.4641016151377544, 3.605551275463989,
	3.7416573867739413, 3.872983346207417, 4,
}

// computeStart computes the probability that a walk starts at each file.
func (r *ranking) computeStart() {
	files := r.t.order
	r.start = make([]float64, len(files))
	var sum, focusSum float64
	for i, f := range files {
		if !f.shown() {
			continue
		}
		w := float64(r.role[i]) * (1 + 3*r.t.history.weight(f))
		switch {
		case f.main:
			w *= 3
		case f.lang == nil:
			w *= landmarkWeight(f.path)
		}
		r.start[i] = w
		sum += w
		focusSum += r.focus.files[i] + r.focus.hints[i]
	}
	if sum == 0 {
		return
	}
	for i := range r.start {
		r.start[i] /= sum
		if focusSum > 0 {
			r.start[i] = (1-focusShare)*r.start[i] + focusShare*(r.focus.files[i]+r.focus.hints[i])/focusSum
		}
	}
}

// walk ranks files by PageRank. In each round, a file distributes its rank to the files that it
// imports and to the files that define the names it uses.
func (r *ranking) walk() {
	l := &r.links
	r.rank = slices.Clone(r.start)
	r.flow, r.importFlow = make([]float32, len(r.useWeight)), make([]float32, len(r.rank))
	next := make([]float64, len(r.rank))
	for range rounds {
		dangling := r.computeFlow()
		change := 0.0
		for i, begin := range r.start {
			in := r.importFlow[i]
			for _, id := range l.definedNames[l.definedNamesFrom[i]:l.definedNamesFrom[i+1]] {
				in += r.flow[id]
			}
			next[i] = (1-damping)*begin + damping*(float64(in*r.role[i])+dangling*begin)
			change += math.Abs(next[i] - r.rank[i])
		}
		r.rank, next = next, r.rank
		if change < accuracy {
			break
		}
	}
	r.computeFlow()
}

// computeFlow sums up the output of all files to names and to imports. It returns the total rank of
// the dangling files: those without links and imports.
func (r *ranking) computeFlow() (dangling float64) {
	clear(r.flow)
	clear(r.importFlow)
	l := &r.links
	for i, rank := range r.rank {
		first, end := l.from[i], l.from[i+1]
		firstImport, endImport := l.importFrom[i], l.importFrom[i+1]
		if first == end && firstImport == endImport {
			dangling += rank
			continue
		}
		toNames := float32(rank)
		if firstImport < endImport {
			toImports := toNames
			if first < end {
				toImports *= importShare
			}
			toNames -= toImports
			for k := firstImport; k < endImport; k++ {
				r.importFlow[l.imported[k]] += toImports * l.importPart[k]
			}
		}
		names, parts := l.name[first:end], l.part[first:end]
		for k, id := range names {
			r.flow[id] += toNames * parts[k]
		}
	}
	return dangling
}

package repomap

import (
	"math"
	"slices"
)

// How the walk along the links is.
const (
	damping  = .7 // how often it goes on instead of beginning again
	rounds   = 30
	accuracy = 1e-5 // ranks are compared in steps of a twelfth
	pull     = .8   // how much of the beginnings lies in the focus, if there is one
)

// links are the uses and the definitions of names in all files, one after the other: what
// a walk reads again and again is read in one line.
type links struct {
	from []int32   // by file: where its links begin; one more for the end
	name []int32   // by link
	part []float32 // by link: its share of what the file gives, for each file that defines the name

	ownFrom []int32 // by file: where its definitions begin; one more for the end
	own     []int32 // names
}

// link gives each use of a name its share of what its file gives.
func (r *ranking) link() {
	files := r.t.order
	total, owned := 0, 0
	for _, f := range files {
		total += len(f.refs)
		owned += len(f.own)
	}
	l := links{
		from: make([]int32, len(files)+1), name: make([]int32, 0, total), part: make([]float32, 0, total),
		ownFrom: make([]int32, len(files)+1), own: make([]int32, 0, owned),
	}
	for i, f := range files {
		begin := len(l.name)
		sum := float32(0)
		for _, ref := range f.refs {
			if w := r.weight[ref.name] * often(ref.count); w > 0 {
				l.name, l.part = append(l.name, ref.name), append(l.part, w)
				sum += w
			}
		}
		for k := begin; k < len(l.part); k++ {
			l.part[k] /= sum * r.defined[l.name[k]]
		}
		l.own = append(l.own, f.own...)
		l.from[i+1], l.ownFrom[i+1] = int32(len(l.name)), int32(len(l.own)) //nolint:gosec // maxFiles of maxBytes have fewer names
	}
	r.links = l
}

// often is what so many uses of a name weigh: little more than one.
func often(uses uint8) float32 { return roots[min(int(uses), len(roots)-1)] }

// roots are square roots, up to where more does not count.
var roots = [...]float32{
	0, 1, 1.4142135623730951, 1.7320508075688772, 2, 2.23606797749979, 2.449489742783178, 2.6457513110645907,
	2.8284271247461903, 3, 3.1622776601683795, 3.3166247903554, 3.4641016151377544, 3.605551275463989,
	3.7416573867739413, 3.872983346207417, 4,
}

// beginnings spreads where walks begin.
func (r *ranking) beginnings() {
	files := r.t.order
	r.begin = make([]float64, len(files))
	var sum, aimed float64
	for i, f := range files {
		if !f.shown() {
			continue
		}
		w := float64(r.role[i]) * (1 + 3*r.t.log.weight(f))
		switch {
		case f.main:
			w *= 3
		case f.lang == nil:
			w *= landmarkWeight(f.path)
		}
		r.begin[i] = w
		sum += w
		aimed += r.focus.files[i] + r.focus.hints[i]
	}
	if sum == 0 {
		return
	}
	for i := range r.begin {
		r.begin[i] /= sum
		if aimed > 0 {
			r.begin[i] = (1-pull)*r.begin[i] + pull*(r.focus.files[i]+r.focus.hints[i])/aimed
		}
	}
}

// walk ranks files: along each of its names a file gives what it has to those that define
// it.
func (r *ranking) walk() {
	l := &r.links
	r.rank = slices.Clone(r.begin)
	r.flow = make([]float32, len(r.weight))
	next := make([]float64, len(r.rank))
	for range rounds {
		stuck := r.flows()
		change := 0.0
		for i, begin := range r.begin {
			in := float32(0)
			for _, id := range l.own[l.ownFrom[i]:l.ownFrom[i+1]] {
				in += r.flow[id]
			}
			next[i] = (1-damping)*begin + damping*(float64(in*r.role[i])+stuck*begin)
			change += math.Abs(next[i] - r.rank[i])
		}
		r.rank, next = next, r.rank
		if change < accuracy {
			break
		}
	}
	r.flows()
}

// flows sums up what files give to names, and returns what those have that give nothing.
func (r *ranking) flows() (stuck float64) {
	clear(r.flow)
	l := &r.links
	for i, rank := range r.rank {
		from, to := l.from[i], l.from[i+1]
		if from == to {
			stuck += rank
			continue
		}
		names, parts, rank := l.name[from:to], l.part[from:to], float32(rank)
		for k, id := range names {
			r.flow[id] += rank * parts[k]
		}
	}
	return stuck
}

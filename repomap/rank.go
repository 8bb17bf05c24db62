package repomap

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// Focus is what a map is asked for.
type Focus struct {
	// Paths are files or folders, relative to the root with slashes. What is none of both
	// counts as a name.
	Paths []string
	Names []string // of definitions or files, exact
	// Text is what somebody wrote: the names of files and definitions in it count.
	Text string
}

// Map is a ranked map of one repository.
type Map struct {
	Root  string
	Files []File // best first
	Cut   bool   // the repository has more files than are read
}

// File is one file of a map.
type File struct {
	Path        string // relative to the root, with slashes
	Language    string
	Rank        float64      // its share of the whole, which is 1
	Definitions []Definition // in the order of the file
}

// Definition is one definition of a file.
type Definition struct {
	lang.Definition
	Score float64 // how much it tells; comparable within one map
}

// How the walk along the links is.
const (
	damping  = .7 // how often it goes on instead of beginning again
	rounds   = 30
	accuracy = 1e-7
	pull     = .8 // how much of the beginnings lies in the focus, if there is one
	boost    = 10 // how much more a name counts that was asked for
)

// ranking is the making of one map. Everything is computed in the order of files and their
// definitions, so that sums come out the same in each run.
type ranking struct {
	t     *tree
	focus target

	defined []float64 // by name: weights of the files that define it
	weight  []float64 // by name: what one use is worth
	begin   []float64 // by file: where walks begin
	rank    []float64 // by file
	flow    []float64 // by name: what comes along its links
}

func (t *tree) rank(f Focus) *Map {
	r := &ranking{t: t, focus: t.target(f)}
	r.weigh()
	r.beginnings()
	r.walk()
	m := &Map{Root: t.root, Cut: t.cut}
	for i, f := range t.order {
		if f.lang == nil {
			continue
		}
		out := File{Path: f.path, Language: f.lang.Name, Rank: r.rank[i], Definitions: make([]Definition, len(f.defs))}
		r.score(i, f, out.Definitions)
		m.Files = append(m.Files, out)
	}
	slices.SortStableFunc(m.Files, func(a, b File) int {
		return cmp.Or(cmp.Compare(step(b.Rank), step(a.Rank)), cmp.Compare(a.Path, b.Path))
	})
	return m
}

// step coarsens a rank: small differences, as an edit makes, change no order.
func step(rank float64) int {
	if rank <= 0 {
		return math.MinInt32
	}
	return int(math.Floor(8 * math.Log2(rank)))
}

// weigh gives each name the weight of one use: the rarer, the more.
func (r *ranking) weigh() {
	n := len(r.t.names.ids)
	r.defined, r.weight, r.flow = make([]float64, n), make([]float64, n), make([]float64, n)
	definers, users := make([]int32, n), make([]int32, n)
	files := 0
	for i, f := range r.t.order {
		if f.lang == nil {
			continue
		}
		files++
		w := r.fileWeight(i, f)
		for _, id := range f.own {
			r.defined[id] += w
			definers[id]++
		}
		for _, ref := range f.refs {
			users[ref.name]++
		}
	}
	for id := range r.weight {
		if definers[id] > 0 {
			rare := math.Log2(2 + float64(files)/(1+float64(users[id])))
			d := float64(definers[id])
			r.weight[id] = rare / d * float64(r.t.names.tell[id])
		}
	}
	for id := range r.focus.names {
		r.weight[id] *= boost
	}
}

// fileWeight is how much a file counts by what it is; one in the focus counts fully.
func (r *ranking) fileWeight(i int, f *file) float64 {
	if r.focus.files[i] > 0 {
		return 1
	}
	return f.role.weight()
}

// beginnings spreads where walks begin.
func (r *ranking) beginnings() {
	files := r.t.order
	r.begin = make([]float64, len(files))
	var sum, aimed float64
	for i, f := range files {
		if f.lang == nil {
			continue
		}
		w := r.fileWeight(i, f) * (1 + 3*r.t.log.weight(f))
		for j := range f.defs {
			if d := &f.defs[j]; d.Name == "main" && d.Kind == lang.Function {
				w *= 3
				break
			}
		}
		r.begin[i] = w
		sum += w
		aimed += r.focus.files[i]
	}
	if sum == 0 {
		return
	}
	for i := range r.begin {
		r.begin[i] /= sum
		if aimed > 0 {
			r.begin[i] = (1-pull)*r.begin[i] + pull*r.focus.files[i]/aimed
		}
	}
}

// walk ranks files: along each of its names a file gives what it has to those that define
// it.
func (r *ranking) walk() {
	files := r.t.order
	out := make([]float64, len(files)) // of a file's links together
	for i, f := range files {
		for _, ref := range f.refs {
			out[i] += r.link(ref)
		}
	}
	r.rank = slices.Clone(r.begin)
	next := make([]float64, len(files))
	for range rounds {
		r.flows(out)
		stuck := 0.0
		for i := range files {
			if out[i] == 0 {
				stuck += r.rank[i]
			}
		}
		change := 0.0
		for i, f := range files {
			in := 0.0
			w := r.fileWeight(i, f)
			for _, id := range f.own {
				if r.flow[id] > 0 {
					in += r.flow[id] * w / r.defined[id]
				}
			}
			next[i] = (1-damping)*r.begin[i] + damping*(in+stuck*r.begin[i])
			change += math.Abs(next[i] - r.rank[i])
		}
		r.rank, next = next, r.rank
		if change < accuracy {
			break
		}
	}
	r.flows(out)
}

// flows sums up what files give to names.
func (r *ranking) flows(out []float64) {
	clear(r.flow)
	for i, f := range r.t.order {
		if out[i] == 0 {
			continue
		}
		share := r.rank[i] / out[i]
		for _, ref := range f.refs {
			r.flow[ref.name] += share * r.link(ref)
		}
	}
}

// link is the weight of a file's uses of one name. Many uses say little more than one.
func (r *ranking) link(ref ref) float64 {
	n := float64(ref.count)
	if ref.count > 1 {
		n = roots[min(int(ref.count), len(roots)-1)]
	}
	return r.weight[ref.name] * n
}

// roots are square roots, up to where more does not count.
var roots = [...]float64{
	0, 1, 1.4142135623730951, 1.7320508075688772, 2, 2.23606797749979, 2.449489742783178, 2.6457513110645907,
	2.8284271247461903, 3, 3.1622776601683795, 3.3166247903554, 3.4641016151377544, 3.605551275463989,
	3.7416573867739413, 3.872983346207417, 4,
}

// score judges the definitions of one file.
func (r *ranking) score(i int, f *file, out []Definition) {
	w := r.fileWeight(i, f)
	rest := r.rank[i] * .05 / float64(1+len(f.defs)) // for what nobody names
	if r.focus.files[i] > 0 {
		rest *= 10
	}
	seen := map[int32]int{}
	for j := range f.defs {
		d := &f.defs[j]
		out[j].Definition = *d
		s := rest
		if id := f.named[j]; id >= 0 {
			if r.defined[id] > 0 {
				s += r.flow[id] * w / r.defined[id]
			}
			if r.focus.names[id] {
				s = s*boost + r.rank[i]
			}
			s /= float64(int(1) << min(seen[id], 8)) // overloads say less and less
			seen[id]++
		}
		out[j].Score = s * kindWeight(d)
	}
}

func kindWeight(d *lang.Definition) float64 {
	w := 1.0
	switch d.Kind {
	case lang.Constant, lang.Variable, lang.Property:
		w = .4
	case lang.Macro:
		w = .5
	case lang.Extension:
		w = .1
	}
	if strings.HasPrefix(d.Name, "_") {
		w *= .5
	}
	if d.Name == "main" && d.Kind == lang.Function {
		w *= 20
	}
	return w
}

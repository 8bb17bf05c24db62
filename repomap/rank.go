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
	// Paths are files or folders, relative to the root with slashes. Anything else
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

	Unmatched []string // the paths and names of the focus that nothing in the repository has
}

// File is one file of a map.
type File struct {
	Path        string            // relative to the root, with slashes
	Language    string            // empty for what is shown for its name only
	Rank        float64           // its share of the whole, which is 1
	Definitions []lang.Definition // in the order of the file; shared with other maps: not to be changed
	Scores      []float64         // by definition: how much it tells; comparable within one map
}

// boost is how much more a name counts that was asked for.
const boost = 10

// toldWord is how much the words of a text count in the name of a definition.
const toldWord = .2

// ranking is the making of one map. Everything is computed in the order of files and their
// definitions, so that sums come out the same in each run, and from nothing that an earlier
// map left behind.
type ranking struct {
	t     *tree
	focus target

	role    []float32 // by file: how much it counts by what it is
	defined []float32 // by name: weights of the files that define it
	weight  []float32 // by name: what one use is worth
	links   links
	begin   []float64 // by file: where walks begin
	rank    []float64 // by file
	flow    []float32 // by name: what comes along its links to each file that defines it, if it counted fully

	direct []float32 // by file: what comes along imports, if it counted fully

	seen []uint8 // by name: how often score met it in its file
}

func (t *tree) rank(f Focus) *Map {
	r := &ranking{t: t, focus: t.target(f)}
	r.weigh()
	r.beginnings()
	r.link()
	r.walk()
	return r.result()
}

// result puts the files in order, with scores for their definitions.
func (r *ranking) result() *Map {
	t := r.t
	defs := 0
	places := make([]place, 0, len(t.order))
	for i, f := range t.order {
		if f.shown() {
			defs += len(f.defs)
			p := place{file: int32(i), step: int32(step(r.rank[i])), tier: r.tier(i)} //nolint:gosec // at most maxFiles, and a logarithm
			places = append(places, p)
		}
	}
	slices.SortFunc(places, func(a, b place) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(b.step, a.step), cmp.Compare(a.file, b.file))
	})
	if len(places) > 0 && r.aimless() {
		places = mixed(places, t.mods.home)
	}
	m := &Map{Root: t.root, Cut: t.cut, Unmatched: r.focus.unmatched, Files: make([]File, len(places))}
	scores := make([]float64, defs)
	r.seen = make([]uint8, len(t.names.tell))
	for n, p := range places {
		f := t.order[p.file]
		out := &m.Files[n]
		out.Path, out.Rank, out.Definitions = f.path, r.rank[p.file], f.defs
		if f.lang != nil {
			out.Language = f.lang.Name
		}
		out.Scores, scores = scores[:len(f.defs):len(f.defs)], scores[len(f.defs):]
		r.score(int(p.file), f, out.Scores)
	}
	return m
}

// place is the position of a file in a map.
type place struct {
	file int32
	step int32 // of its rank
	tier int
}

// aimless says whether nothing in the repository has what was asked for.
func (r *ranking) aimless() bool { return len(r.focus.files)+len(r.focus.hints) == 0 }

// tier is 0 for what is asked for, whatever it is.
func (r *ranking) tier(i int) int {
	if r.focus.files[i]+r.focus.hints[i] > 0 {
		return 0
	}
	return r.t.order[i].role.tier()
}

// mixed bounds the share that one folder has of the first places: what is above three
// quarters waits for files of other folders, as long as the same tier has some.
func mixed(places []place, home []int32) []place {
	const few = 8
	out := make([]place, 0, len(places))
	had := map[int32]int{} // by folder: places in out
	var waiting []place    // of one folder: no other can have as much
	full := func(p place) bool { return had[home[p.file]] >= max(few, 3*(len(out)+1)/4) }
	add := func(p place) {
		out = append(out, p)
		had[home[p.file]]++
	}
	for _, p := range places {
		if len(waiting) > 0 && waiting[0].tier < p.tier {
			out, waiting = append(out, waiting...), nil
			clear(had)
		}
		if full(p) {
			waiting = append(waiting, p)
			continue
		}
		add(p)
		for len(waiting) > 0 && !full(waiting[0]) {
			add(waiting[0])
			waiting = waiting[1:]
		}
	}
	return append(out, waiting...)
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
	n := len(r.t.names.tell)
	r.role = make([]float32, len(r.t.order))
	r.defined, r.weight = make([]float32, n), make([]float32, n)
	definers, users, strength := make([]int32, n), make([]int32, n), make([]float32, n)
	files := 0
	for i, f := range r.t.order {
		r.role[i] = f.role.weight()
		if r.focus.files[i] > 0 {
			r.role[i] = 1 // requested files count fully
		}
		if f.lang == nil {
			continue
		}
		files++
		for _, id := range f.own {
			r.defined[id] += r.role[i]
			definers[id]++
		}
		for j, id := range f.named {
			if id >= 0 {
				strength[id] = max(strength[id], r.role[i]*linkStrength(f.defs[j].Kind))
			}
		}
		for _, ref := range f.refs {
			users[ref.name]++
		}
	}
	var rare [256]float32 // by users: most names have few
	for id := range r.weight {
		if definers[id] == 0 {
			continue
		}
		u := int(users[id])
		w := rare[min(u, len(rare)-1)]
		if w == 0 || u >= len(rare) {
			w = float32(math.Log2(2 + float64(files)/(1+float64(u))))
			if u < len(rare) {
				rare[u] = w
			}
		}
		r.weight[id] = w / float32(definers[id]) * r.t.names.tell[id] * strength[id]
	}
	for id := range r.focus.names {
		r.weight[id] *= boost
	}
}

// score judges the definitions of one file.
func (r *ranking) score(i int, f *file, out []float64) {
	w := float64(r.role[i])
	rest := r.rank[i] * .05 / float64(1+len(f.defs)) // for names without uses
	if r.focus.files[i] > 0 {
		rest *= 10
	}
	foreign := 1.0
	if r.tier(i) > test.tier() {
		foreign = w
	}
	hint := r.focus.hints[i] > 0
	for j := range f.defs {
		s := rest
		if id := f.named[j]; id >= 0 {
			s += float64(r.flow[id]) * w
			if r.focus.names[id] {
				s = s*boost + r.rank[i]
			}
			if hint {
				s += r.focus.told(f.defs[j].Name) * r.focus.hints[i] * toldWord
			}
			n := r.seen[id]
			s /= float64(int(1) << n) // overloads say less and less
			r.seen[id] = min(n+1, 8)
		}
		out[j] = s * kindWeight(&f.defs[j]) * foreign
	}
	for _, id := range f.own {
		r.seen[id] = 0
	}
}

// linkStrength is what the use of a name says about the file that defines it. Macros and
// constants are used everywhere, whatever their file is about.
func linkStrength(k lang.Kind) float32 {
	switch k {
	case lang.Macro:
		return .1
	case lang.Constant, lang.Variable:
		return .3
	}
	return 1
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
	if isMain(d) {
		w *= 20
	}
	return w
}

// isMain says whether a definition is where a program begins.
func isMain(d *lang.Definition) bool { return d.Name == "main" && d.Kind == lang.Function }

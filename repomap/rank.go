package repomap

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// Focus is what a map should concentrate on.
type Focus struct {
	// Paths are files or folders, relative to the root with slashes. Other entries are treated as
	// names.
	Paths []string
	Names []string // of definitions or files, exact
	// Text is free text; names of files and definitions in it are used.
	Text string
}

// Map is a ranked map of one repository.
type Map struct {
	Root  string
	Files []File // best first
	Cut   bool   // the repository has more files than the limit

	Unmatched []string // paths and names of the focus that do not exist in the repository
}

// File is one file of a map.
type File struct {
	Path        string            // relative to the root, with slashes
	Language    string            // empty for landmarks
	Rank        float64           // its share of the total, which is 1
	Definitions []lang.Definition // in the order of the file; shared with other maps, so they must not be changed
	Scores      []float64         // by definition: its importance, comparable within one map
}

// requestedNameFactor multiplies the weight of a requested name.
const requestedNameFactor = 10

// wordHintWeight is the weight of words of a text that occur in the name of a definition.
const wordHintWeight = .2

// ranking computes one map. It adds up floating-point numbers in the order of files and definitions,
// so that sums are the same in each run. It uses no state of earlier maps.
type ranking struct {
	t     *tree
	focus target

	role          []float32 // by file: weight of its role
	definerWeight []float32 // by name: sum of the weights of the files that define it
	useWeight     []float32 // by name: weight of one use
	links         links
	start         []float64 // by file: probability that walks start there
	rank          []float64 // by file
	flow          []float32 // by name: flow to each file that defines the name, before weighting by role

	importFlow []float32 // by file: flow along imports, before weighting by role

	occurrences []uint8 // by name: definitions so far in the current file of score
}

func (t *tree) rank(f Focus) *Map {
	r := &ranking{t: t, focus: t.target(f)}
	r.computeUseWeights()
	r.computeStart()
	r.link()
	r.walk()
	return r.result()
}

// result sorts the files and computes scores for their definitions.
func (r *ranking) result() *Map {
	t := r.t
	defs := 0
	positions := make([]filePosition, 0, len(t.order))
	for i, f := range t.order {
		if f.shown() {
			defs += len(f.defs)
			p := filePosition{file: int32(i), step: int32(rankStep(r.rank[i])), tier: r.tier(i)} //nolint:gosec // at most maxFiles, and a logarithm
			positions = append(positions, p)
		}
	}
	slices.SortFunc(positions, func(a, b filePosition) int {
		return cmp.Or(cmp.Compare(a.tier, b.tier), cmp.Compare(b.step, a.step), cmp.Compare(a.file, b.file))
	})
	if len(positions) > 0 && r.unfocused() {
		positions = interleaveFolders(positions, t.mods.folderOf)
	}
	m := &Map{Root: t.root, Cut: t.cut, Unmatched: r.focus.unmatched, Files: make([]File, len(positions))}
	scores := make([]float64, defs)
	r.occurrences = make([]uint8, len(t.names.distinctiveness))
	for n, p := range positions {
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

// filePosition has the keys by which a map sorts a file.
type filePosition struct {
	file int32
	step int32 // of its rank, see rankStep
	tier int
}

// unfocused reports whether nothing in the repository matches the focus.
func (r *ranking) unfocused() bool { return len(r.focus.files)+len(r.focus.hints) == 0 }

// tier returns 0 for requested files, otherwise the tier of the role.
func (r *ranking) tier(i int) int {
	if r.focus.files[i]+r.focus.hints[i] > 0 {
		return 0
	}
	return r.t.order[i].role.tier()
}

// interleaveFolders limits the share of one folder among the first positions to three quarters. It
// moves the other files of the folder down, after files of other folders in the same tier.
func interleaveFolders(positions []filePosition, folderOf []int32) []filePosition {
	const minFiles = 8
	out := make([]filePosition, 0, len(positions))
	count := map[int32]int{}   // by folder: number of its files in out
	var waiting []filePosition // all of the same folder
	full := func(p filePosition) bool { return count[folderOf[p.file]] >= max(minFiles, 3*(len(out)+1)/4) }
	add := func(p filePosition) {
		out = append(out, p)
		count[folderOf[p.file]]++
	}
	for _, p := range positions {
		if len(waiting) > 0 && waiting[0].tier < p.tier {
			out, waiting = append(out, waiting...), nil
			clear(count)
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

// rankStep rounds a rank to an eighth of a power of two. Small differences, such as those after an
// edit, then do not change the order.
func rankStep(rank float64) int {
	if rank <= 0 {
		return math.MinInt32
	}
	return int(math.Floor(8 * math.Log2(rank)))
}

// computeUseWeights computes the weight of one use of each name. Rare names weigh more.
func (r *ranking) computeUseWeights() {
	n := len(r.t.names.distinctiveness)
	r.role = make([]float32, len(r.t.order))
	r.definerWeight, r.useWeight = make([]float32, n), make([]float32, n)
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
		for _, id := range f.definedNames {
			r.definerWeight[id] += r.role[i]
			definers[id]++
		}
		for j, id := range f.nameIDs {
			if id >= 0 {
				strength[id] = max(strength[id], r.role[i]*linkStrength(f.defs[j].Kind))
			}
		}
		for _, ref := range f.refs {
			users[ref.name]++
		}
	}
	var rare [256]float32 // by number of users, as most names have few
	for id := range r.useWeight {
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
		r.useWeight[id] = w / float32(definers[id]) * r.t.names.distinctiveness[id] * strength[id]
	}
	for id := range r.focus.names {
		r.useWeight[id] *= requestedNameFactor
	}
}

// score computes the scores of the definitions of one file.
func (r *ranking) score(i int, f *file, out []float64) {
	w := float64(r.role[i])
	baseline := r.rank[i] * .05 / float64(1+len(f.defs)) // for names without uses
	if r.focus.files[i] > 0 {
		baseline *= 10
	}
	roleFactor := 1.0
	if r.tier(i) > test.tier() {
		roleFactor = w
	}
	hint := r.focus.hints[i] > 0
	for j := range f.defs {
		s := baseline
		if id := f.nameIDs[j]; id >= 0 {
			s += float64(r.flow[id]) * w
			if r.focus.names[id] {
				s = s*requestedNameFactor + r.rank[i]
			}
			if hint {
				s += r.focus.rarity(f.defs[j].Name) * r.focus.hints[i] * wordHintWeight
			}
			n := r.occurrences[id]
			s /= float64(int(1) << n) // each further overload counts half
			r.occurrences[id] = min(n+1, 8)
		}
		out[j] = s * kindWeight(&f.defs[j]) * roleFactor
	}
	for _, id := range f.definedNames {
		r.occurrences[id] = 0
	}
}

// linkStrength returns the weight of a link to a definition of a kind. Files use macros and
// constants whatever the file is about, so links to them say little.
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

// isMain reports whether a definition is the entry point of a program.
func isMain(d *lang.Definition) bool { return d.Name == "main" && d.Kind == lang.Function }

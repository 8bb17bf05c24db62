package repomap

import (
	"cmp"
	"container/heap"
	"path"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/visible"
)

// bytesPerToken is the estimate used throughout eca.
const bytesPerToken = 4

// Tokens estimates the number of tokens of a text.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// Parameters of the text.
const (
	outlineShare = .6  // of the budget, for definitions; the rest is for names of further files
	repeatFactor = .9  // to the power of n-1, the weight of a file's nth definition
	maxMisses    = 200 // consecutive definitions that do not fit before the search stops
)

// Text renders the map in at most the given number of tokens: files in the order of their paths
// with the most important signatures, indented by nesting. It is empty if nothing fits. Line
// numbers are left out, since they would change with every edit.
func (m *Map) Text(tokens int) string {
	p := &mapText{m: m, budget: tokens * bytesPerToken, shown: make([][]bool, len(m.Files)), named: make([]bool, len(m.Files))}
	p.addOutlines(int(float64(p.budget) * outlineShare))
	p.listFileNames()
	return p.text()
}

// mapText is the text of a map under construction.
type mapText struct {
	m      *Map
	budget int            // bytes available in all
	used   int            // bytes
	shown  [][]bool       // by file and definition; nil for a file without shown definitions
	named  []bool         // by file: its name is in the text
	groups map[string]int // by folder: number of its files that are listed by name only
}

// choice is the next definition of a file that could be shown.
type choice struct {
	file   int
	step   int
	next   int     // its index in order
	order  []int32 // the file's definitions, best first; computed when the first is taken
	factor float64
}

// addOutlines shows definitions, best first, until no more fit. It sorts the definitions of a file only
// when the first of them is next, which for most files never happens.
func (p *mapText) addOutlines(limit int) {
	files := make(choices, 0, len(p.m.Files))
	for i := range p.m.Files {
		if scores := p.m.Files[i].Scores; len(scores) > 0 {
			files = append(files, choice{file: i, step: rankStep(slices.Max(scores)), factor: 1})
		}
	}
	heap.Init(&files)
	for misses := 0; len(files) > 0 && misses < maxMisses; {
		c := &files[0]
		scores := p.m.Files[c.file].Scores
		if c.order == nil {
			c.order = bestFirst(scores)
		}
		if p.addDefinition(c.file, int(c.order[c.next]), limit) {
			misses = 0
		} else {
			misses++
		}
		c.next++
		c.factor *= repeatFactor
		if c.next == len(c.order) {
			heap.Pop(&files)
			continue
		}
		c.step = rankStep(scores[c.order[c.next]] * c.factor)
		heap.Fix(&files, 0)
	}
}

// bestFirst returns the indices of scores, the highest score first.
func bestFirst(scores []float64) []int32 {
	steps, order := make([]int, len(scores)), make([]int32, len(scores))
	for i, s := range scores {
		steps[i], order[i] = rankStep(s), int32(i) //nolint:gosec // a file has less definitions than bytes
	}
	slices.SortFunc(order, func(a, b int32) int { return cmp.Or(cmp.Compare(steps[b], steps[a]), cmp.Compare(a, b)) })
	return order
}

// choices is a heap, the best first; ties are in the order of files.
type choices []choice

func (c choices) Len() int      { return len(c) }
func (c choices) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c choices) Less(i, j int) bool {
	return c[i].step > c[j].step || c[i].step == c[j].step && c[i].file < c[j].file
}

// Push is not used: the heap starts with all files.
func (c *choices) Push(x any) { *c = append(*c, x.(choice)) } //nolint:forcetypeassert // by the heap's contract

// Pop removes the last element.
func (c *choices) Pop() any {
	last := len(*c) - 1
	out := (*c)[last]
	*c = (*c)[:last]
	return out
}

// addDefinition shows a definition and the definitions around it, if the text then has at most limit
// bytes.
func (p *mapText) addDefinition(file, def, limit int) bool {
	f := &p.m.Files[file]
	size := 0
	if !p.named[file] {
		size = len(visible.Name(f.Path)) + 1
	}
	for d := def; d >= 0; d = f.Definitions[d].Parent {
		if p.shown[file] == nil || !p.shown[file][d] {
			size += len(f.indent(d)) + len(f.Definitions[d].Signature) + 1
		}
	}
	if p.used+size > limit {
		return false
	}
	p.used += size
	p.named[file] = true
	if p.shown[file] == nil {
		p.shown[file] = make([]bool, len(f.Definitions))
	}
	for d := def; d >= 0; d = f.Definitions[d].Parent {
		p.shown[file][d] = true
	}
	return true
}

// listFileNames fills the remaining space with the names of the next files. Files of one folder
// share a line.
func (p *mapText) listFileNames() {
	p.groups = map[string]int{}
	for i := range p.m.Files {
		if p.named[i] {
			continue
		}
		file := p.m.Files[i].Path
		dir := groupOf(file)
		size := len(file) + 1
		switch p.groups[dir] {
		case 0:
		case 1:
			size = len(file) - len(dir) + len("{,}")
		default:
			size = len(file) - len(dir) + len(",")
		}
		if dir == "" {
			size = len(visible.Name(file)) + 1
		}
		if p.used+size <= p.budget {
			p.used += size
			p.named[i] = true
			p.groups[dir]++
		}
	}
}

// groupOf returns the folder, with a slash, under which a file can share a line with others:
// `dir/{a,b}`. It returns "" for a file that needs its own line.
func groupOf(file string) string {
	dir, base := path.Split(file)
	if strings.ContainsAny(base, "{,} ") || visible.Name(file) != file {
		return ""
	}
	return dir
}

func (p *mapText) text() string {
	var order []int
	for i := range p.m.Files {
		if p.named[i] {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(p.m.Files[a].Path, p.m.Files[b].Path) })
	names := map[string][]string{} // by folder
	for _, i := range order {
		if file := p.m.Files[i].Path; p.shown[i] == nil {
			dir := groupOf(file)
			names[dir] = append(names[dir], file[len(dir):])
		}
	}
	var b strings.Builder
	b.Grow(p.used)
	for _, i := range order {
		f := &p.m.Files[i]
		if dir := groupOf(f.Path); p.shown[i] == nil && dir != "" && len(names[dir]) != 1 {
			if len(names[dir]) > 1 { // the group is at the position of its first file
				b.WriteString(dir + "{" + strings.Join(names[dir], ",") + "}\n")
				names[dir] = nil
			}
			continue
		}
		b.WriteString(visible.Name(f.Path) + "\n")
		for d := range p.shown[i] {
			if p.shown[i][d] {
				b.WriteString(f.indent(d))
				b.WriteString(f.Definitions[d].Signature)
				b.WriteByte('\n')
			}
		}
	}
	return b.String()
}

// indent returns the indentation of a signature: a space, and one more per enclosing definition.
func (f *File) indent(d int) string {
	depth := 1
	for p := f.Definitions[d].Parent; p >= 0; p = f.Definitions[p].Parent {
		depth++
	}
	const spaces = "                "
	return spaces[:min(depth, len(spaces))]
}

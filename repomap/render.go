package repomap

import (
	"cmp"
	"slices"
	"strings"
)

// bytesPerToken is the guess of the whole house.
const bytesPerToken = 4

// Tokens guesses the tokens of a text.
func Tokens(text string) int { return (len(text) + bytesPerToken - 1) / bytesPerToken }

// How a text is filled.
const (
	outlineShare = .85 // of the budget, for definitions; the rest is for names of more files
	fatigue      = .9  // each further definition of a file is worth so much of the one before
	patience     = 200 // definitions in a row that do not fit before we stop looking
)

// Text renders the map in at most so many tokens: files in the order of their names, with
// the signatures that tell most, indented by where they are defined. It is empty if nothing
// fits. Numbers of lines are left out: they would change with every edit.
func (m *Map) Text(tokens int) string {
	p := &page{m: m, room: tokens * bytesPerToken, shown: make([][]bool, len(m.Files)), listed: make([]bool, len(m.Files))}
	p.outlines(int(float64(p.room) * outlineShare))
	p.rest()
	return p.text()
}

// page is a text that is being filled.
type page struct {
	m      *Map
	room   int      // bytes of the whole
	used   int      // bytes
	shown  [][]bool // by file and definition; nil if none is
	listed []bool   // by file: its name is there
}

// choice is a definition that could be shown.
type choice struct {
	file, def int
	worth     int
}

func (p *page) outlines(room int) {
	var all []choice
	for i := range p.m.Files {
		defs := p.m.Files[i].Definitions
		order := make([]int, len(defs))
		for j := range order {
			order[j] = j
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(step(defs[b].Score), step(defs[a].Score)) })
		tired := 1.0
		for _, j := range order {
			all = append(all, choice{i, j, step(defs[j].Score * tired)})
			tired *= fatigue
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return cmp.Compare(b.worth, a.worth) })
	for misses := 0; len(all) > 0 && misses < patience; all = all[1:] {
		if p.show(all[0], room) {
			misses = 0
		} else {
			misses++
		}
	}
}

// show adds a definition, and those it stands in, if there is room.
func (p *page) show(c choice, room int) bool {
	f := &p.m.Files[c.file]
	size := 0
	if !p.listed[c.file] {
		size = len(f.Path) + 1
	}
	for d := c.def; d >= 0; d = f.Definitions[d].Parent {
		if p.shown[c.file] == nil || !p.shown[c.file][d] {
			size += len(f.indent(d)) + len(f.Definitions[d].Signature) + 1
		}
	}
	if p.used+size > room {
		return false
	}
	p.used += size
	p.listed[c.file] = true
	if p.shown[c.file] == nil {
		p.shown[c.file] = make([]bool, len(f.Definitions))
	}
	for d := c.def; d >= 0; d = f.Definitions[d].Parent {
		p.shown[c.file][d] = true
	}
	return true
}

// rest fills what is left with the names of the next files.
func (p *page) rest() {
	for i := range p.m.Files {
		if size := len(p.m.Files[i].Path) + 1; !p.listed[i] && p.used+size <= p.room {
			p.used += size
			p.listed[i] = true
		}
	}
}

func (p *page) text() string {
	var order []int
	for i := range p.m.Files {
		if p.listed[i] {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(p.m.Files[a].Path, p.m.Files[b].Path) })
	var b strings.Builder
	b.Grow(p.used)
	for _, i := range order {
		f := &p.m.Files[i]
		b.WriteString(f.Path + "\n")
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

// indent is what stands before a signature: a space, and one for each definition it is in.
func (f *File) indent(d int) string {
	depth := 1
	for p := f.Definitions[d].Parent; p >= 0; p = f.Definitions[p].Parent {
		depth++
	}
	const spaces = "                "
	return spaces[:min(depth, len(spaces))]
}

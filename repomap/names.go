package repomap

import (
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// names numbers the names that files define. Numbers say nothing about order: they
// depend on how an index came to know the files.
type names struct {
	ids  table
	seen [1 << 14]uint64 // a bit by hash: most names of a file are defined nowhere
	dead int             // names that may have lost their last definition
	tell []float32       // by number: how much the name says by its looks
	last []int32         // by number: the last file that defined it, as a number of its own
	file int32
}

// table finds the numbers of names by lang.Language.Hash, which spreads well as it is.
type table struct {
	slots  []nameSlot // a power of two, at most half full
	hashes []uint64   // by number
}

// nameSlot has a number with one added, 0 while it is free, and half of the hash: most that
// do not match are seen without a look at hashes.
type nameSlot struct {
	half uint32
	id   int32
}

func newTable(n int) table {
	size := 64
	for size < 2*n {
		size *= 2
	}
	return table{slots: make([]nameSlot, size)}
}

// at returns where a name is, or would be. The lowest bits say less than the others: see
// lang.Private.
func (t *table) at(hash uint64) int {
	mask := len(t.slots) - 1
	i, half := int(hash>>1)&mask, uint32(hash>>32) //nolint:gosec // masked
	for t.slots[i].id != 0 && (t.slots[i].half != half || t.hashes[t.slots[i].id-1] != hash) {
		i = (i + 1) & mask
	}
	return i
}

func (t *table) find(hash uint64) (id int32, ok bool) {
	s := t.slots[t.at(hash)]
	return s.id - 1, s.id != 0
}

// add adds a missing name, and returns its number.
func (t *table) add(hash uint64) int32 {
	t.hashes = append(t.hashes, hash)
	if 2*len(t.hashes) > len(t.slots) {
		t.slots = newTable(len(t.slots)).slots
		for i, h := range t.hashes[:len(t.hashes)-1] {
			t.slots[t.at(h)] = nameSlot{uint32(h >> 32), int32(i + 1)} //nolint:gosec // maxFiles of maxBytes have fewer names
		}
	}
	id := int32(len(t.hashes)) //nolint:gosec // as above
	t.slots[t.at(hash)] = nameSlot{uint32(hash >> 32), id}
	return id - 1
}

// ref is a name that a file uses.
type ref struct {
	name  int32
	count uint8
}

// few is how many new names are looked for in all files. With more, all files are linked
// again.
const few = 64

// link brings the links of files up to date. changed are those that were read again, known
// is how many there were before.
func (n *names) link(all, changed []*file, known, workers int) {
	if n.ids.slots == nil || known == 0 || 4*len(changed) > len(all) || n.dead > len(n.tell)/2 {
		n.linkAll(all, workers)
		return
	}
	var added []uint64
	for _, f := range changed {
		fresh := len(n.tell)
		hashes := f.hashes()
		n.number(f, hashes)
		for i, h := range hashes {
			if int(f.named[i]) == fresh { // numbers are given in this order
				added = append(added, h)
				fresh++
			}
		}
		n.dead += len(f.own) // perhaps others than before: they are not counted
	}
	if len(added) > few {
		n.linkAll(all, workers)
		return
	}
	r := resolver{names: n, mine: make([]int32, len(n.tell))}
	for _, f := range changed {
		r.resolve(f)
	}
	if len(added) == 0 {
		return
	}
	var filter [1 << 8]bool // most uses are of none of them
	for _, h := range added {
		filter[h>>56] = true
	}
	for _, f := range all {
		if slices.ContainsFunc(f.uses.Names, func(h uint64) bool { return filter[h>>56] && slices.Contains(added, h) }) {
			r.resolve(f)
		}
	}
}

// linkAll forgets all numbers.
func (n *names) linkAll(all []*file, workers int) {
	hashes := make([][]uint64, len(all))
	inParts(len(all), workers, func(from, to int) {
		for i := from; i < to; i++ {
			hashes[i] = all[i].hashes()
		}
	})
	total := 0
	for _, f := range all {
		total += len(f.defs)
	}
	*n = names{ids: newTable(total * 2 / 3)} // many are defined more than once
	for i, f := range all {
		n.number(f, hashes[i])
	}
	inParts(len(all), workers, func(from, to int) {
		r := resolver{names: n, mine: make([]int32, len(n.tell))}
		for _, f := range all[from:to] {
			r.resolve(f)
		}
	})
}

// inParts has workers do as many parts of a work.
func inParts(size, workers int, do func(from, to int)) {
	part := (size + workers - 1) / workers
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() { do(min(w*part, size), min((w+1)*part, size)) })
	}
	wg.Wait()
}

func (n *names) add(h uint64, name string) int32 {
	id := n.ids.add(h)
	n.last = append(n.last, 0)
	n.tell = append(n.tell, looks(name))
	n.seen[h>>50] |= 1 << (h >> 44 & 63)
	return id
}

// looks says how much a name tells by its looks: words of the language of men, and short
// ones, are names of many things, most of them local.
func looks(name string) float32 {
	w := float32(1)
	inner := strings.TrimLeft(name, "_")
	if len(inner) < 4 {
		w = .4
	}
	capital, parts := false, false
	for i := 1; i < len(inner); i++ {
		switch c := inner[i]; {
		case 'A' <= c && c <= 'Z':
			capital = true
		case c == '_' || c == '-':
			parts = true
		case c >= utf8.RuneSelf:
			capital = capital || strings.ToLower(inner[1:]) != inner[1:]
			parts = parts || strings.ContainsAny(inner[i:], "_-")
			i = len(inner)
		}
	}
	switch {
	case capital || parts:
		return 1.5 * w
	case strings.ToLower(inner) == inner:
		return .3 * w
	}
	return w
}

// hashes are those of the names that the file defines, by definition; 0 for those that
// others cannot use by their name.
func (f *file) hashes() []uint64 {
	if len(f.defs) == 0 {
		return nil
	}
	out, folder := make([]uint64, len(f.defs)), f.folder()
	for i := range f.defs {
		if d := &f.defs[i]; d.Kind != lang.Extension {
			h := f.lang.Hash(d.Name)
			if lang.Private(h) {
				h ^= folder
			}
			out[i] = h
		}
	}
	return out
}

// number notes the names of a file's definitions, and that the file defines them: once,
// however often it does.
func (n *names) number(f *file, hashes []uint64) {
	n.file++
	f.named, f.own = make([]int32, len(f.defs)), nil
	for i, h := range hashes {
		if h == 0 {
			f.named[i] = -1
			continue
		}
		id, ok := n.ids.find(h)
		if !ok {
			id = n.add(h, f.defs[i].Name)
		}
		f.named[i] = id
		if n.last[id] != n.file {
			n.last[id] = n.file
			f.own = append(f.own, id)
		}
	}
}

// folder is what tells the private names of the file's folder apart from those of others.
func (f *file) folder() uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	dir, _ := path.Split(f.path)
	for _, c := range []byte(dir) {
		h = (h ^ uint64(c)) * prime
	}
	return (h ^ h>>32) &^ 1
}

// localise does to the file's uses what hashes does to its definitions.
func (f *file) localise() {
	folder := f.folder()
	for i, h := range f.uses.Names {
		if lang.Private(h) {
			f.uses.Names[i] = h ^ folder
		}
	}
}

// resolver links files, one after the other.
type resolver struct {
	names *names
	mine  []int32 // by name: the last file that defines it, as a number of its own
	file  int32
	refs  []ref
}

// resolve links one file. A name that the file defines itself is not another's.
func (r *resolver) resolve(f *file) {
	n := r.names
	r.file++
	for _, id := range f.own {
		r.mine[id] = r.file
	}
	r.refs = r.refs[:0]
	for i, h := range f.uses.Names {
		if n.seen[h>>50]&(1<<(h>>44&63)) == 0 {
			continue
		}
		if id, ok := n.ids.find(h); ok && r.mine[id] != r.file {
			r.refs = append(r.refs, ref{id, f.uses.Counts[i]})
		}
	}
	f.refs = slices.Clone(r.refs)
}

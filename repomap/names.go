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
	slots []nameSlot // a power of two, at most half full
	used  int
}

// nameSlot is free while its number is 0: numbers are kept with one added.
type nameSlot struct {
	hash uint64
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
	i := int(hash>>1) & mask //nolint:gosec // masked
	for t.slots[i].id != 0 && t.slots[i].hash != hash {
		i = (i + 1) & mask
	}
	return i
}

func (t *table) find(hash uint64) (id int32, ok bool) {
	s := t.slots[t.at(hash)]
	return s.id - 1, s.id != 0
}

// add adds a name that is not there.
func (t *table) add(hash uint64, id int32) {
	if 2*(t.used+1) > len(t.slots) {
		old := t.slots
		*t = newTable(len(old))
		for _, s := range old {
			if s.id != 0 {
				t.slots[t.at(s.hash)] = s
				t.used++
			}
		}
	}
	t.slots[t.at(hash)] = nameSlot{hash, id + 1}
	t.used++
}

// ref is a name that a file uses.
type ref struct {
	name  int32
	count uint16
}

// few is how many new names are looked for in all files. With more, all files are linked
// anew.
const few = 64

// link brings the links of files up to date. changed are those that were read anew, known
// is how many there were before.
func (n *names) link(all, changed []*file, known, workers int) {
	if n.ids.slots == nil || known == 0 || 4*len(changed) > len(all) || n.dead > len(n.tell)/2 {
		n.linkAll(all, workers)
		return
	}
	var added []uint64
	for _, f := range changed {
		f.own = nil
		n.file++
		each(f, func(i int, h uint64, name string) {
			id, ok := n.ids.find(h)
			if !ok {
				id = n.add(h, name)
				added = append(added, h)
			}
			n.define(f, i, id)
		})
		n.dead += len(f.own) // perhaps others than before: nobody counts them
	}
	if len(added) > few {
		n.linkAll(all, workers)
		return
	}
	for _, f := range changed {
		n.resolve(f)
	}
	if len(added) == 0 {
		return
	}
	var filter [1 << 8]bool // most uses are of none of them
	for _, h := range added {
		filter[h>>56] = true
	}
	for _, f := range all {
		if slices.ContainsFunc(f.uses, func(u lang.Use) bool { return filter[u.Name>>56] && slices.Contains(added, u.Name) }) {
			n.resolve(f)
		}
	}
}

// linkAll forgets all numbers.
func (n *names) linkAll(all []*file, workers int) {
	total := 0
	for _, f := range all {
		total += len(f.defs)
	}
	*n = names{ids: newTable(total)}
	for _, f := range all {
		f.own = nil
		n.file++
		each(f, func(i int, h uint64, name string) {
			id, ok := n.ids.find(h)
			if !ok {
				id = n.add(h, name)
			}
			n.define(f, i, id)
		})
	}
	var wg sync.WaitGroup
	part := (len(all) + workers - 1) / workers
	for w := range workers {
		files := all[min(w*part, len(all)):min((w+1)*part, len(all))]
		wg.Go(func() {
			for _, f := range files {
				n.resolve(f)
			}
		})
	}
	wg.Wait()
}

func (n *names) add(h uint64, name string) int32 {
	id := int32(len(n.tell)) //nolint:gosec // maxFiles of maxBytes have fewer names
	n.ids.add(h, id)
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

// each calls fn for each definition that others can use by its name, so that it can be
// numbered anew.
func each(f *file, fn func(i int, hash uint64, name string)) {
	f.named = make([]int32, len(f.defs))
	for i := range f.defs {
		f.named[i] = -1
		if d := &f.defs[i]; d.Kind != lang.Extension {
			fn(i, f.hash(d.Name), d.Name)
		}
	}
}

// hash is the number of a name that the file defines. Private ones are told apart by the
// folder.
func (f *file) hash(name string) uint64 {
	h := f.lang.Hash(name)
	if lang.Private(h) {
		h ^= f.folder()
	}
	return h
}

func (f *file) folder() uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	dir, _ := path.Split(f.path)
	for _, c := range []byte(dir) {
		h = (h ^ uint64(c)) * prime
	}
	return (h ^ h>>32) &^ 1
}

// localise does to the file's uses what hash does to definitions.
func (f *file) localise() {
	folder := f.folder()
	for i := range f.uses {
		if lang.Private(f.uses[i].Name) {
			f.uses[i].Name ^= folder
		}
	}
}

// define notes the name of a definition, and that the file defines it: once, however often
// it does.
func (n *names) define(f *file, i int, id int32) {
	f.named[i] = id
	if n.last[id] != n.file {
		n.last[id] = n.file
		f.own = append(f.own, id)
	}
}

// resolve links one file. A name that the file defines itself is not another's.
func (n *names) resolve(f *file) {
	var few [256]ref
	refs := few[:0]
	for _, u := range f.uses {
		if n.seen[u.Name>>50]&(1<<(u.Name>>44&63)) == 0 {
			continue
		}
		if id, ok := n.ids.find(u.Name); ok {
			refs = append(refs, ref{id, u.Count})
		}
	}
	if len(f.own) > 0 {
		own := slices.Clone(f.own)
		slices.Sort(own)
		refs = slices.DeleteFunc(refs, func(r ref) bool {
			_, mine := slices.BinarySearch(own, r.name)
			return mine
		})
	}
	f.refs = slices.Clone(refs)
}

package repomap

import (
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/seed-dec29ce4/eca/repomap/lang"
)

// names assigns numbers to the names that files define. The order of the numbers has no meaning:
// earlier updates of the tree determine it.
type names struct {
	ids             table
	hashBits        [1 << 14]uint64 // a bit for each name, from its hash: excludes quickly most used names that no file defines
	dead            int             // number of names that may have lost their last definition
	distinctiveness []float32       // by number, see distinctivenessOf
	lastFile        []int32         // by number: the value of file when number last saw a definition of the name
	file            int32           // number of calls of number
}

// table maps hashes of lang.Language.Hash, which are already well distributed, to numbers.
type table struct {
	slots  []nameSlot // the length is a power of two, at most half of them used
	hashes []uint64   // by number
}

// nameSlot is one slot of a table. Comparing half of the hash detects most mismatches without
// reading table.hashes.
type nameSlot struct {
	half uint32 // the upper half of the hash
	id   int32  // the number plus one; 0 if the slot is free
}

func newTable(n int) table {
	size := 64
	for size < 2*n {
		size *= 2
	}
	return table{slots: make([]nameSlot, size)}
}

// slot returns the index of the slot of a name, or of the free slot for it. It ignores the lowest
// bit of the hash, see lang.Private.
func (t *table) slot(hash uint64) int {
	mask := len(t.slots) - 1
	i, half := int(hash>>1)&mask, uint32(hash>>32) //nolint:gosec // masked
	for t.slots[i].id != 0 && (t.slots[i].half != half || t.hashes[t.slots[i].id-1] != hash) {
		i = (i + 1) & mask
	}
	return i
}

func (t *table) find(hash uint64) (id int32, ok bool) {
	s := t.slots[t.slot(hash)]
	return s.id - 1, s.id != 0
}

// add adds a missing name and returns its number.
func (t *table) add(hash uint64) int32 {
	t.hashes = append(t.hashes, hash)
	if 2*len(t.hashes) > len(t.slots) {
		t.slots = newTable(len(t.slots)).slots
		for i, h := range t.hashes[:len(t.hashes)-1] {
			t.slots[t.slot(h)] = nameSlot{uint32(h >> 32), int32(i + 1)} //nolint:gosec // maxFiles of maxBytes have fewer names
		}
	}
	id := int32(len(t.hashes)) //nolint:gosec // as above
	t.slots[t.slot(hash)] = nameSlot{uint32(hash >> 32), id}
	return id - 1
}

// ref is the use of a name in a file.
type ref struct {
	name  int32
	count uint8
}

// maxNewNames is the maximum number of new names for which link searches all files for uses. If
// there are more new names, link links all files again.
const maxNewNames = 64

// link updates the links between files. changed are the files that were read again, known is the
// former number of files.
func (n *names) link(all, changed []*file, known, workers int) {
	if n.ids.slots == nil || known == 0 || 4*len(changed) > len(all) || n.dead > len(n.distinctiveness)/2 {
		n.linkAll(all, workers)
		return
	}
	var added []uint64
	for _, f := range changed {
		nextID := len(n.distinctiveness)
		hashes := f.hashes()
		n.number(f, hashes)
		for i, h := range hashes {
			if int(f.nameIDs[i]) == nextID { // numbers are assigned in this order
				added = append(added, h)
				nextID++
			}
		}
		n.dead += len(f.definedNames) // the definitions may have changed, so the count is an upper bound
	}
	if len(added) > maxNewNames {
		n.linkAll(all, workers)
		return
	}
	r := resolver{names: n, definedIn: make([]int32, len(n.distinctiveness))}
	for _, f := range changed {
		r.resolve(f)
	}
	if len(added) == 0 {
		return
	}
	var filter [1 << 8]bool // most uses are not of a new name
	for _, h := range added {
		filter[h>>56] = true
	}
	for _, f := range all {
		if slices.ContainsFunc(f.uses.Names, func(h uint64) bool { return filter[h>>56] && slices.Contains(added, h) }) {
			r.resolve(f)
		}
	}
}

// linkAll discards all numbers and links all files.
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
	*n = names{ids: newTable(total * 2 / 3)} // many names are defined more than once
	for i, f := range all {
		n.number(f, hashes[i])
	}
	inParts(len(all), workers, func(from, to int) {
		r := resolver{names: n, definedIn: make([]int32, len(n.distinctiveness))}
		for _, f := range all[from:to] {
			r.resolve(f)
		}
	})
}

// inParts divides the range 0 to size among workers.
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
	n.lastFile = append(n.lastFile, 0)
	n.distinctiveness = append(n.distinctiveness, distinctivenessOf(name))
	n.hashBits[h>>50] |= 1 << (h >> 44 & 63)
	return id
}

// distinctivenessOf estimates by its spelling how distinctive a name is. English words and short
// names get low values: most of their uses are local variables.
func distinctivenessOf(name string) float32 {
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

// hashes returns the hashes of the names that the file defines, by definition; 0 for names that
// other files cannot use.
func (f *file) hashes() []uint64 {
	if len(f.defs) == 0 {
		return nil
	}
	out, salt := make([]uint64, len(f.defs)), f.folderSalt()
	for i := range f.defs {
		if d := &f.defs[i]; d.Kind != lang.Extension {
			h := f.lang.Hash(d.Name)
			if lang.Private(h) {
				h ^= salt
			}
			out[i] = h
		}
	}
	return out
}

// number sets the file's nameIDs and definedNames, and assigns numbers to new names.
func (n *names) number(f *file, hashes []uint64) {
	n.file++
	f.nameIDs, f.definedNames = make([]int32, len(f.defs)), nil
	for i, h := range hashes {
		if h == 0 {
			f.nameIDs[i] = -1
			continue
		}
		id, ok := n.ids.find(h)
		if !ok {
			id = n.add(h, f.defs[i].Name)
		}
		f.nameIDs[i] = id
		if n.lastFile[id] != n.file {
			n.lastFile[id] = n.file
			f.definedNames = append(f.definedNames, id)
		}
	}
}

// folderSalt returns a value that distinguishes the private names of the file's folder from those of
// other folders.
func (f *file) folderSalt() uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	dir, _ := path.Split(f.path)
	for _, c := range []byte(dir) {
		h = (h ^ uint64(c)) * prime
	}
	return (h ^ h>>32) &^ 1
}

// saltPrivateUses changes the hashes of private names in the file's uses in the same way as hashes
// changes those of the definitions.
func (f *file) saltPrivateUses() {
	salt := f.folderSalt()
	for i, h := range f.uses.Names {
		if lang.Private(h) {
			f.uses.Names[i] = h ^ salt
		}
	}
}

// resolver finds the names in the uses of files, one file after the other.
type resolver struct {
	names     *names
	definedIn []int32 // by name: the value of file when resolve last saw a definition of the name
	file      int32   // number of calls of resolve
	refs      []ref
}

// resolve sets the refs of one file. A name that the file itself defines does not refer to other files.
func (r *resolver) resolve(f *file) {
	n := r.names
	r.file++
	for _, id := range f.definedNames {
		r.definedIn[id] = r.file
	}
	r.refs = r.refs[:0]
	for i, h := range f.uses.Names {
		if n.hashBits[h>>50]&(1<<(h>>44&63)) == 0 {
			continue
		}
		if id, ok := n.ids.find(h); ok && r.definedIn[id] != r.file {
			r.refs = append(r.refs, ref{id, f.uses.Counts[i]})
		}
	}
	f.refs = slices.Clone(r.refs)
}

package repomap

import (
	"path"
	"strings"
)

// modules finds the files of a tree by the names under which other files import them.
type modules struct {
	order             []*file
	exact             map[string]int32   // by path, with and without extension: the first file; for a folder, its index file
	stems             map[string][]int32 // files, by the last part of their module's name, folded
	dirs              map[string]int32   // folders, by path
	foldersByLastPart map[string][]int32 // folders, by the last part of their path, folded
	folders           []string           // paths, by number of the folder
	members           [][]int32          // files with source code, by number of the folder
	folderOf          []int32            // by file: number of its folder
}

// Limits of resolving an import.
const (
	maxCandidates    = 256 // files or folders with the same last part of the name
	maxDropped       = 2   // last parts of a module's name that may be names defined in the module
	maxReexportChain = 3   // length of a chain of files that re-export a name
)

func newModules(order []*file) *modules {
	m := &modules{
		order: order, exact: make(map[string]int32, 2*len(order)), stems: make(map[string][]int32, len(order)),
		dirs: map[string]int32{}, foldersByLastPart: map[string][]int32{}, folderOf: make([]int32, len(order)),
	}
	addExact := func(name string, i int32) {
		if _, taken := m.exact[name]; !taken {
			m.exact[name] = i
		}
	}
	for n, f := range order {
		i := int32(n) //nolint:gosec // at most maxFiles
		dir := path.Dir(f.path)
		d, known := m.dirs[dir]
		if !known {
			d = int32(len(m.folders)) //nolint:gosec // as above
			m.dirs[dir] = d
			m.folders, m.members = append(m.folders, dir), append(m.members, nil)
			end := fold(path.Base(dir))
			m.foldersByLastPart[end] = append(m.foldersByLastPart[end], d)
		}
		m.folderOf[i] = d
		if f.lang == nil {
			continue
		}
		m.members[d] = append(m.members[d], i)
		addExact(f.path, i)
		addExact(strings.TrimSuffix(f.path, path.Ext(f.path)), i)
		module := moduleOf(f.path)
		addExact(module, i)
		stem := fold(path.Base(module))
		m.stems[stem] = append(m.stems[stem], i)
	}
	return m
}

// isIndexFile reports whether a file, given without its extension, is the index file of its
// folder.
func isIndexFile(stem string) bool {
	switch stem {
	case "index", "mod", "__init__", "init", "lib":
		return true
	}
	return false
}

// moduleOf returns the name of a file's module: its path without the extension, or the folder if
// the file is its index file.
func moduleOf(file string) string {
	stem := strings.TrimSuffix(file, path.Ext(file))
	if base := path.Base(stem); isIndexFile(base) {
		if stem = path.Dir(stem); base == "lib" && path.Base(stem) == "src" { // in Rust
			stem = path.Dir(stem)
		}
	}
	return stem
}

// fold removes the differences between the names of a module and of its file, as in `ShopBasket`
// and `shop_basket`.
func fold(name string) string {
	plain := true
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] < 0x80 && name[i] != '_' && name[i] != '-' && !isUpper(name[i])
	}
	if plain {
		return name
	}
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '_' || r == '-' {
			return -1
		}
		return r
	}, name))
}

// resolve returns the imports of a file without duplicates: numbers of files, and ^n for all files
// of folder n.
func (m *modules) resolve(f *file) (out []int32) {
	if f.lang == nil {
		return nil
	}
	dir := path.Dir(f.path)
	for _, name := range f.uses.Imports {
		to, ok := m.find(f, dir, name, maxReexportChain)
		if !ok || to >= 0 && m.order[to] == f {
			continue
		}
		known := false
		for _, o := range out {
			known = known || o == to
		}
		if !known {
			out = append(out, to)
		}
	}
	return out
}

// find resolves an import of a file, and follows up to maxReexports files that re-export names.
func (m *modules) find(f *file, dir, name string, maxReexports int) (to int32, ok bool) {
	family := f.lang.Family()
	if family == "c" || strings.HasPrefix(name, ".") {
		full := path.Join(dir, name)
		for _, p := range []string{full, strings.TrimSuffix(full, path.Ext(full))} {
			if i, ok := m.exact[p]; ok && m.order[i].lang.Family() == family {
				return i, true
			}
			if family == "c" {
				break
			}
		}
		if family != "c" {
			return 0, false
		}
		return m.header(dir, name)
	}
	parts := strings.Split(strings.TrimSuffix(name, path.Ext(name)), "/")
	droppedPart := "" // the last part that was dropped from the name
	for dropped := 0; dropped <= maxDropped && len(parts) > 0; dropped++ {
		last := fold(parts[len(parts)-1])
		if family != "go" {
			if to, ok := m.nearest(f, m.stems[last], parts, func(i int32) (string, bool) { return moduleOf(m.order[i].path), m.order[i].lang.Family() == family }); ok {
				return m.reexportedFrom(to, droppedPart, maxReexports), true
			}
		}
		if to, ok := m.nearest(f, m.foldersByLastPart[last], parts, func(d int32) (string, bool) { return m.folders[d], len(m.members[d]) > 0 }); ok {
			return ^to, true
		}
		if family == "go" {
			break
		}
		droppedPart, parts = parts[len(parts)-1], parts[:len(parts)-1]
	}
	return 0, false
}

// reexportedFrom returns the file from which an index file re-exports a name. If the index file does
// not re-export the name, reexportedFrom returns the index file.
func (m *modules) reexportedFrom(to int32, name string, maxReexports int) int32 {
	f := m.order[to]
	if name == "" || maxReexports == 0 || !reexports(f) {
		return to
	}
	for _, from := range f.uses.Imports {
		if strings.HasSuffix(from, "/"+name) {
			if next, ok := m.find(f, path.Dir(f.path), from, maxReexports-1); ok && next >= 0 {
				return next
			}
		}
	}
	return to
}

// header finds a header file in C by the end of its path.
func (m *modules) header(dir, name string) (to int32, ok bool) {
	most := -1
	stem := fold(path.Base(strings.TrimSuffix(name, path.Ext(name))))
	for _, i := range m.stems[stem][:min(len(m.stems[stem]), maxCandidates)] {
		p := m.order[i].path
		if p == name || strings.HasSuffix(p, "/"+name) {
			if near := commonPathLen(dir, p); near > most {
				to, most = i, near
			}
		}
	}
	return to, most >= 0
}

// nearest returns the candidate whose path ends with the most parts of a module's name. Of equal
// candidates, it returns the one nearest to the importing file.
func (m *modules) nearest(f *file, candidates []int32, parts []string, pathOf func(int32) (string, bool)) (to int32, ok bool) {
	best, most := 0, 0
	for _, c := range candidates[:min(len(candidates), maxCandidates)] {
		p, ok := pathOf(c)
		if !ok {
			continue
		}
		score, rest := matchTrailingParts(p, parts)
		if score < best || score == 0 || score == 1 && !importable(f.path, rest) {
			continue
		}
		if near := commonPathLen(f.path, p); score > best || near > most {
			to, best, most = c, score, near
		}
	}
	return to, best > 0
}

// matchTrailingParts returns how many of the last parts of a module's name are also at the end of a
// path, and the rest of the path. Folders such as src are not part of a module's name.
func matchTrailingParts(p string, parts []string) (score int, rest string) {
	for n := len(parts) - 1; n >= 0 && p != "." && p != ""; {
		dir, base := path.Split(p)
		switch {
		case fold(base) == fold(parts[n]):
			score++
			n--
		case score > 0 && isSourceFolder(base):
		default:
			return score, p
		}
		p = strings.TrimSuffix(dir, "/")
	}
	return score, p
}

func isSourceFolder(folder string) bool {
	switch folder {
	case "src", "lib", "main", "java", "kotlin", "scala", "python", "include", "app":
		return true
	}
	return false
}

// importable reports whether a module with a one-part name can be imported from a file: it is in a
// folder above the file, or at the top of the sources.
func importable(file, rest string) bool {
	if rest == "" || rest == "." || strings.HasPrefix(file, rest+"/") || strings.TrimSuffix(file, path.Ext(file)) == rest {
		return true
	}
	for part := range strings.SplitSeq(rest, "/") {
		if !isSourceFolder(part) {
			return false
		}
	}
	return true
}

// commonPathLen returns the length in bytes of the longest common prefix of two paths, in whole parts.
func commonPathLen(a, b string) (n int) {
	for i := 0; i < len(a) && i < len(b) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			n = i
		}
	}
	return n
}

// reexports reports whether a file re-exports the names that it imports.
func reexports(f *file) bool {
	ext := path.Ext(f.path)
	return strings.HasPrefix(ext, ".h") || isIndexFile(strings.TrimSuffix(path.Base(f.path), ext))
}

package sandbox

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Changes are the changes at protected paths since they were found.
type Changes struct {
	New []Change // no element is below another
	// Missed is why there may be further changes; empty if the list is complete.
	Missed string
}

// Change is a protected path that is new, or whose file was replaced.
type Change struct {
	Path string
	Info fs.FileInfo
}

// Since returns the protected paths that are new since p was found, whose file was replaced, or which
// a new search does not consider protected any more. A path that moved together with its folder is
// not new: it is read-only at its new path as well. begun is the time when the command started.
func (p Places) Since(begun time.Time) Changes {
	if p.found == nil {
		return Changes{}
	}
	guard := p.guard
	guard.wide, guard.recheck, guard.common = true, true, slices.Concat(p.Write, guard.common)
	now := FindPlaces(guard)
	out := Changes{Missed: now.missed}
	for id, dir := range now.closed {
		if _, before := p.closed[id]; !before {
			out.Missed = "a folder cannot be listed (" + dir + ")"
		}
	}
	var gone []place
	differs := map[string]fs.FileInfo{}
	for path, old := range p.found {
		if _, ok := now.found[path]; ok {
			continue
		}
		switch info, err := os.Lstat(path); {
		case err != nil && old.link == "":
			gone = append(gone, old)
		case err != nil, ofWorktree(path) && old.same(place{info: info}) && changed(info).Before(begun):
		default:
			differs[path] = info
		}
	}
	for path, current := range now.found {
		old, known := p.found[path]
		switch {
		case known && old.same(current) && old.link == current.link:
		case !known && slices.ContainsFunc(gone, func(old place) bool { return old.same(current) }):
		case !known && p.missed != "" && changed(current.info).Before(begun): // the earlier, incomplete search may have missed it
		default:
			differs[path] = current.info
		}
	}
	for _, path := range p.missing {
		if info, err := os.Lstat(path); err == nil {
			differs[path] = info
		}
	}
	for _, path := range slices.Sorted(maps.Keys(differs)) {
		below := false
		for dir := filepath.Dir(path); dir != filepath.Dir(dir) && !below; dir = filepath.Dir(dir) {
			_, below = differs[dir]
		}
		if !below {
			out.New = append(out.New, Change{path, differs[path]})
		}
	}
	return out
}

// ofWorktree reports whether path is one of the files (commondir, gitdir) that link a worktree and
// its repository. FindPlaces does not find these files any more once the worktree was moved.
func ofWorktree(path string) bool {
	name := filepath.Base(path)
	return (name == "commondir" || name == "gitdir") && filepath.Base(filepath.Dir(filepath.Dir(path))) == "worktrees"
}

// mark identifies a file across restarts of the machine. A restart may change device numbers, and on
// some file systems also inode numbers, but not the change time.
type mark struct {
	Inode   uint64      `json:"inode,omitempty"`
	Changed int64       `json:"changed"`
	Type    fs.FileMode `json:"type"`
}

func markOf(info fs.FileInfo) mark {
	id, _ := linkCount(info)
	return mark{id.number, changed(info).UnixNano(), info.Mode().Type()}
}

// same reports whether a place that was found earlier and one that was found now are the same file.
func (old place) same(current place) bool {
	if old.recorded == nil {
		return os.SameFile(old.info, current.info)
	}
	a, b := *old.recorded, markOf(current.info)
	return a.Type == b.Type && (a.Inode == b.Inode || a.Changed == b.Changed)
}

// record is the JSON form of Places. Paths are bytes, since they need not be valid UTF-8.
type record struct {
	Roots   [][]byte         `json:"roots"`
	Write   [][]byte         `json:"write,omitempty"`
	Names   Names            `json:"names"`
	Home    []byte           `json:"home,omitempty"`
	Common  [][]byte         `json:"common,omitempty"`
	Found   []recordedPlace  `json:"found,omitempty"`
	Missing [][]byte         `json:"missing,omitempty"`
	Closed  []recordedClosed `json:"closed,omitempty"`
	Missed  string           `json:"missed,omitempty"`
}

type recordedPlace struct {
	Path []byte `json:"path"`
	Link []byte `json:"link,omitempty"`
	Mark mark   `json:"mark"`
}

type recordedClosed struct {
	ID   string `json:"id"`
	Path []byte `json:"path"`
}

// Record encodes places for RecordedPlaces.
func (p Places) Record() ([]byte, error) {
	r := record{
		Roots: toBytes(p.guard.Roots), Write: toBytes(p.guard.write), Names: p.guard.Names, Home: []byte(p.guard.Home),
		Common: toBytes(slices.Concat(p.Write, p.guard.common)), Missing: toBytes(p.missing), Missed: p.missed,
	}
	for path, is := range p.found {
		m := is.recorded
		if m == nil {
			made := markOf(is.info)
			m = &made
		}
		r.Found = append(r.Found, recordedPlace{[]byte(path), []byte(is.link), *m})
	}
	for id, path := range p.closed {
		r.Closed = append(r.Closed, recordedClosed{id, []byte(path)})
	}
	return json.Marshal(r)
}

// RecordedPlaces decodes the result of Record. The places can only be used for Since.
func RecordedPlaces(data []byte) (Places, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return Places{}, err
	}
	if len(r.Roots) == 0 {
		return Places{}, fmt.Errorf("it names no workspace")
	}
	p := Places{
		guard: Guard{Roots: toStrings(r.Roots), Names: r.Names, Home: string(r.Home), write: toStrings(r.Write), common: toStrings(r.Common)},
		found: map[string]place{}, missing: toStrings(r.Missing), closed: map[string]string{}, missed: r.Missed,
	}
	for _, f := range r.Found {
		p.found[string(f.Path)] = place{link: string(f.Link), recorded: &f.Mark}
	}
	for _, c := range r.Closed {
		p.closed[c.ID] = string(c.Path)
	}
	return p, nil
}

// Roots returns the workspace folders that were searched; nil if there was no search.
func (p Places) Roots() []string {
	if p.found == nil {
		return nil
	}
	return p.guard.Roots
}

func toBytes(list []string) (out [][]byte) {
	for _, s := range list {
		out = append(out, []byte(s))
	}
	return out
}

func toStrings(list [][]byte) (out []string) {
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

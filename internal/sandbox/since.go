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

// Since searches again and returns the protected paths that changed: they are new, their file was
// replaced, or they are no longer protected. A path that moved together with its folder is not new: it
// is read-only at its new path as well. started is the time when the command started.
func (p Places) Since(started time.Time) Changes {
	if p.found == nil {
		return Changes{}
	}
	guard := p.guard
	guard.wide, guard.recheck, guard.common = true, true, slices.Concat(p.Write, guard.common)
	now := FindPlaces(guard)
	out := Changes{Missed: now.incompleteReason}
	for id, dir := range now.unlisted {
		if _, before := p.unlisted[id]; !before {
			out.Missed = "a folder cannot be listed (" + dir + ")"
		}
	}
	var removed []place
	changed := map[string]fs.FileInfo{}
	for path, old := range p.found {
		if _, ok := now.found[path]; ok {
			continue
		}
		switch info, err := os.Lstat(path); {
		case err != nil && old.link == "":
			removed = append(removed, old)
		case err != nil, isWorktreeLink(path) && old.sameFile(place{info: info}) && changeTime(info).Before(started):
		default:
			changed[path] = info
		}
	}
	for path, current := range now.found {
		old, known := p.found[path]
		switch {
		case known && old.sameFile(current) && old.link == current.link:
		case !known && slices.ContainsFunc(removed, func(old place) bool { return old.sameFile(current) }):
		case !known && p.incompleteReason != "" && changeTime(current.info).Before(started): // the earlier, incomplete search may have missed it
		default:
			changed[path] = current.info
		}
	}
	for _, path := range p.missing {
		if info, err := os.Lstat(path); err == nil {
			changed[path] = info
		}
	}
	for _, path := range slices.Sorted(maps.Keys(changed)) {
		below := false
		for dir := filepath.Dir(path); dir != filepath.Dir(dir) && !below; dir = filepath.Dir(dir) {
			_, below = changed[dir]
		}
		if !below {
			out.New = append(out.New, Change{path, changed[path]})
		}
	}
	return out
}

// isWorktreeLink reports whether path is one of the files (commondir, gitdir) that link a worktree to
// its repository. FindPlaces no longer finds these files once the worktree was moved.
func isWorktreeLink(path string) bool {
	name := filepath.Base(path)
	return (name == "commondir" || name == "gitdir") && filepath.Base(filepath.Dir(filepath.Dir(path))) == "worktrees"
}

// fileMark identifies a file across restarts of the machine. A restart may change device numbers, and on
// some file systems also inode numbers, but not the change time.
type fileMark struct {
	Inode   uint64      `json:"inode,omitempty"`
	Changed int64       `json:"changed"`
	Type    fs.FileMode `json:"type"`
}

func newFileMark(info fs.FileInfo) fileMark {
	id, _ := linkCount(info)
	return fileMark{id.number, changeTime(info).UnixNano(), info.Mode().Type()}
}

// sameFile reports whether a place that was found earlier and one that was found now are the same file.
func (old place) sameFile(current place) bool {
	if old.recorded == nil {
		return os.SameFile(old.info, current.info)
	}
	a, b := *old.recorded, newFileMark(current.info)
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
	Path []byte   `json:"path"`
	Link []byte   `json:"link,omitempty"`
	Mark fileMark `json:"mark"`
}

type recordedClosed struct {
	ID   string `json:"id"`
	Path []byte `json:"path"`
}

// Record encodes places for RecordedPlaces.
func (p Places) Record() ([]byte, error) {
	r := record{
		Roots: toBytes(p.guard.Roots), Write: toBytes(p.guard.write), Names: p.guard.Names, Home: []byte(p.guard.Home),
		Common: toBytes(slices.Concat(p.Write, p.guard.common)), Missing: toBytes(p.missing), Missed: p.incompleteReason,
	}
	for path, found := range p.found {
		m := found.recorded
		if m == nil {
			newMark := newFileMark(found.info)
			m = &newMark
		}
		r.Found = append(r.Found, recordedPlace{[]byte(path), []byte(found.link), *m})
	}
	for id, path := range p.unlisted {
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
		found: map[string]place{}, missing: toStrings(r.Missing), unlisted: map[string]string{}, incompleteReason: r.Missed,
	}
	for _, f := range r.Found {
		p.found[string(f.Path)] = place{link: string(f.Link), recorded: &f.Mark}
	}
	for _, c := range r.Closed {
		p.unlisted[c.ID] = string(c.Path)
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

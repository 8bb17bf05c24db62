package plugins

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Files of sources and plugins.
const (
	marketFile   = ".eca-plugin/marketplace.json"
	manifestFile = ".eca-plugin/plugin.json"
)

// Limits for sources.
const (
	maxJSON    = 1 << 20 // bytes of one file
	maxEntries = 2000    // plugins of one source
	maxPlugins = 200     // installed, dependencies included
)

// entry is a plugin of a marketplace.
type entry struct {
	Name         string
	Description  string
	Path         string // below the source
	Dependencies []string
}

// market is a source with its plugins.
type market struct {
	source         Source
	dir            string // may be empty
	commit         string // of a repository
	entries        []entry
	missing        bool   // it has not been fetched yet
	unusableReason string // why it cannot be used; may be empty
}

// reader reads each source at most once, for one call of the Store.
type reader struct {
	store    *Store
	in       Inputs
	markets  map[string]*market
	problems []config.Problem
	missing  []Source
	stamps   []stamp
}

// reader returns a new reader. The caller must hold s.mu.
func (s *Store) reader(in Inputs) *reader {
	return &reader{store: s, in: in, markets: map[string]*market{}}
}

func (r *reader) problem(path string, line int, format string, args ...any) {
	p := config.Problem{Origin: config.Origin{Source: path, Line: line}, Cause: fmt.Sprintf(format, args...)}
	for _, other := range r.problems {
		if other == p {
			return
		}
	}
	r.problems = append(r.problems, p)
}

// watchFile records a file whose changes make the Set stale.
func (r *reader) watchFile(path string) {
	r.stamps = append(r.stamps, newStamp(path, r.store.opts.Now()))
}

// market reads a source; nil if no source has that name.
func (r *reader) market(name string) *market {
	if m, ok := r.markets[name]; ok {
		return m
	}
	for _, src := range r.in.Sources {
		if src.Name != name {
			continue
		}
		m := &market{source: src}
		r.markets[name] = m
		r.locate(m)
		if m.dir != "" {
			r.read(m)
		}
		if m.unusableReason != "" {
			r.problem("plugins."+name, 0, "the source cannot be used: %s", m.unusableReason)
		}
		return m
	}
	return nil
}

// locate determines the folder of a source.
func (r *reader) locate(m *market) {
	src := m.source
	if !IsGit(src.Location) {
		switch info, err := os.Stat(src.Location); {
		case src.Location == "":
			m.unusableReason = "it has no source: a git URL or a folder"
		case src.Commit != "":
			m.unusableReason = "only a git repository can be pinned to a commit"
		case err != nil:
			r.watchFile(src.Location)
			m.unusableReason = fmt.Sprintf("the folder %s does not exist", src.Location)
		case !info.IsDir():
			m.unusableReason = fmt.Sprintf("%s is not a folder", src.Location)
		default:
			m.dir = src.Location
		}
		return
	}
	repo, err := newRepository(src)
	if err != nil {
		m.unusableReason = err.Error()
		return
	}
	current := filepath.Join(r.store.folder(repo), currentFile)
	r.watchFile(current)
	if m.commit = repo.commit; m.commit == "" {
		m.commit = r.store.current(repo)
	}
	if m.commit != "" {
		if dir := filepath.Join(r.store.folder(repo), m.commit); isDir(dir) {
			m.dir = dir
			return
		}
	}
	m.commit = ""
	if err := r.store.failed[repo]; err != nil {
		m.unusableReason = err.Error()
		return
	}
	m.missing = true
	r.missing = append(r.missing, src)
}

// read reads the marketplace file of a source.
func (r *reader) read(m *market) {
	path := filepath.Join(m.dir, filepath.FromSlash(marketFile))
	var list struct {
		Plugins []json.RawMessage `json:"plugins"`
	}
	switch line, err := r.decodeFile(m.dir, marketFile, &list); {
	case errors.Is(err, fs.ErrNotExist):
		m.unusableReason = fmt.Sprintf("%s: %v; a source lists its plugins in this file", path, err)
		return
	case err != nil && line > 0:
		m.unusableReason = fmt.Sprintf("%s:%d: %v", path, line, err)
		return
	case err != nil:
		m.unusableReason = fmt.Sprintf("%s: %v", path, err)
		return
	}
	if len(list.Plugins) > maxEntries {
		r.problem(path, 0, "it has more than %d plugins; the rest are ignored", maxEntries)
		list.Plugins = list.Plugins[:maxEntries]
	}
	seen := map[string]bool{}
	for i, raw := range list.Plugins {
		e, err := parseEntry(raw)
		switch {
		case err != nil:
			r.problem(path, 0, "plugin %d is ignored: %v", i+1, err)
		case seen[e.Name]:
			r.problem(path, 0, "plugin %d is ignored: %s is listed twice", i+1, e.Name)
		default:
			seen[e.Name] = true
			m.entries = append(m.entries, e)
		}
	}
}

// parseEntry parses one plugin of a marketplace.
func parseEntry(raw json.RawMessage) (entry, error) {
	var w struct {
		Name         string   `json:"name"`
		Description  string   `json:"description"`
		Source       string   `json:"source"`
		Path         string   `json:"path"`
		Dependencies []string `json:"dependencies"`
	}
	if _, err := decode(raw, &w); err != nil {
		return entry{}, err
	}
	e := entry{w.Name, strings.Join(strings.Fields(w.Description), " "), w.Source, w.Dependencies}
	if e.Path == "" {
		e.Path = w.Path
	}
	switch {
	case !validName(e.Name):
		return entry{}, fmt.Errorf("its name %.80q must be one word without @, : and slashes, of at most %d characters", e.Name, maxName)
	case e.Path == "":
		return entry{}, fmt.Errorf("%s has no source, the path of its folder", e.Name)
	}
	return e, nil
}

// file reads a file below a folder that it must not lead out of. For a missing file the error is
// fs.ErrNotExist, unless the file is missing only briefly, as happens while it is saved.
func (r *reader) file(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	r.watchFile(path)
	data, err := readBelow(dir, name)
	switch last, ok := r.store.lastRead[path]; {
	case err == nil:
		r.store.lastRead[path] = data
	case !errors.Is(err, fs.ErrNotExist):
	case ok && r.store.opts.Removed != nil && !r.store.opts.Removed(path):
		r.stamps = append(r.stamps, stamp{changedRecently: true}) // makes the next Load look again
		return last, nil
	default:
		delete(r.store.lastRead, path)
	}
	return data, err
}

func readBelow(dir, name string) ([]byte, error) {
	data, err := safeio.ReadWithin(dir, filepath.Join(dir, filepath.FromSlash(name)), maxJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	return data, safeio.Cause(err)
}

// decodeFile reads and decodes a JSON file. An invalid file, as happens while it is edited and
// saved, is replaced by its last valid content and reported as a problem. line is the line of the
// error, 0 if unknown.
func (r *reader) decodeFile(dir, name string, v any) (line int, err error) {
	path := filepath.Join(dir, filepath.FromSlash(name))
	data, err := r.file(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		delete(r.store.lastValid, path)
		return 0, err
	}
	if err == nil {
		if line, err = decode(data, v); err == nil {
			r.store.lastValid[path] = data
			return 0, nil
		}
	}
	last, ok := r.store.lastValid[path]
	if !ok {
		return line, err
	}
	r.problem(path, line, "%v (what the file said before stays in effect)", err)
	return decode(last, v)
}

// decode decodes JSON. line is the line of the error, 0 if unknown.
func decode(data []byte, v any) (line int, err error) {
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	err = json.Unmarshal(data, v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	offset := int64(0)
	switch {
	case err == nil:
		return 0, nil
	case errors.As(err, &syntax):
		offset, err = syntax.Offset, fmt.Errorf("invalid JSON: %w", err)
	case errors.As(err, &kind):
		offset, err = kind.Offset, fmt.Errorf("%s cannot be a JSON %s", kind.Field, kind.Value)
		if kind.Field == "" {
			err = fmt.Errorf("it must be a JSON object, not a JSON %s", kind.Value)
		}
	}
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n")), err
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

package extensions

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Loader reads extensions. It reads a file again only when the file has changed.
type Loader struct {
	now  func() time.Time
	read func(path string) ([]byte, error)

	mu      sync.Mutex // guards the fields below
	entries map[key]*entry
	last    *Set
	marks   []mark // the inputs of the last Set
}

// NewLoader returns a loader that has not read any files. now returns the current time.
func NewLoader(now func() time.Time) *Loader {
	return &Loader{now: now, read: readFile, entries: map[key]*entry{}}
}

// key identifies a file in one role: the same file may be a rule and a command.
type key struct{ kind, path string }

// mark is the state of one input of a Set, for comparisons.
type mark struct {
	key
	entry  *entry
	root   string
	plugin Plugin
	cause  string // why a folder cannot be read
}

// entry is a parsed file.
type entry struct {
	item     any // Agent, Skill, Rule or Command; nil if the file was never usable
	problems []config.Problem
	stamps   []stamp // states of the file and of those that it includes
	sum      [sha256.Size]byte
	unit     *config.Unit // the part that needs trust, or nil
}

// stamp is the state of a file before it was read.
type stamp struct {
	path            string
	info            fs.FileInfo // nil: it did not exist
	changedRecently bool        // a further change might not change the modification time
}

// timeResolution is the age from which a modification time is certain to differ after the next
// change.
const timeResolution = 2 * time.Second

// Load returns the current extensions. changed is false if the Set is the same as before.
func (l *Loader) Load(in Inputs) (set *Set, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &gatherer{loader: l, in: in, set: &Set{}, used: map[key]bool{}}
	for _, root := range in.Roots {
		g.set.roots = append(g.set.roots, resolve(root))
	}
	g.agents()
	g.skills()
	g.rules()
	g.commands()
	for k := range l.entries {
		if !g.used[k] {
			delete(l.entries, k)
		}
	}
	if l.last != nil && slices.Equal(l.marks, g.marks) && slices.Equal(l.last.roots, g.set.roots) && slices.Equal(l.last.Files, g.files()) {
		return l.last, false
	}
	g.finish()
	l.last, l.marks = g.set, g.marks
	return g.set, true
}

// gatherer builds one Set.
type gatherer struct {
	loader   *Loader
	in       Inputs
	set      *Set
	used     map[key]bool
	marks    []mark
	watch    []string
	deferred []func() // fill the Set if it differs from the last one
}

func (g *gatherer) problem(path string, line int, format string, args ...any) {
	g.set.Problems = append(g.set.Problems, config.Problem{Origin: config.Origin{Source: path, Line: line}, Cause: fmt.Sprintf(format, args...)})
}

// files returns the paths to watch.
func (g *gatherer) files() []string {
	slices.Sort(g.watch)
	g.watch = slices.Compact(g.watch)
	return g.watch
}

func (g *gatherer) finish() {
	for _, fill := range g.deferred {
		fill()
	}
	g.set.Files = g.files()
	sortBy(g.set.Agents, func(a Agent) string { return a.ID })
	sortBy(g.set.Skills, func(s Skill) string { return s.Name })
	sortBy(g.set.Rules, func(r Rule) string { return r.ID })
	sortBy(g.set.Commands, func(c Command) string { return c.Name })
	slices.SortStableFunc(g.set.Problems, func(a, b config.Problem) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), a.Line-b.Line, cmp.Compare(a.Cause, b.Cause))
	})
}

// sortBy sorts a list by the keys of its items. slices.SortFunc would be compiled once for each type,
// which takes 16 kB in the program.
func sortBy[T any](list []T, key func(T) string) {
	sort.Slice(list, func(i, j int) bool { return key(list[i]) < key(list[j]) })
}

// location is a file or a folder to search.
type location struct {
	path, root string
	plugin     Plugin // zero if it belongs to no plugin
	claude     bool   // it belongs to Claude Code
}

// locations returns the locations of a kind of extension in order of precedence: the workspace
// folders, the global folder, paths of the configuration, plugins.
func (g *gatherer) locations(named []string, folders ...string) []location {
	var out []location
	for _, root := range g.in.Roots {
		for _, f := range folders {
			out = append(out, location{path: filepath.Join(root, filepath.FromSlash(f)), root: root})
		}
	}
	for _, root := range g.in.Roots {
		out = append(out, g.claude(filepath.Join(root, ".claude"), root, folders[0])...)
	}
	if g.in.ConfigHome != "" && !g.in.Pure {
		out = append(out, location{path: filepath.Join(g.in.ConfigHome, filepath.Base(folders[0]))})
	}
	if g.in.ClaudeHome != "" {
		out = append(out, g.claude(g.in.ClaudeHome, "", folders[0])...)
	}
	for _, path := range named {
		if path == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(path, "~/"); ok {
			if home, err := os.UserHomeDir(); err == nil {
				path = filepath.Join(home, rest)
			}
		}
		if filepath.IsAbs(path) {
			out = append(out, location{path: path})
			continue
		}
		for _, root := range g.in.Roots {
			out = append(out, location{path: filepath.Join(root, path), root: root})
		}
	}
	for _, p := range slices.Backward(g.in.Plugins) {
		out = append(out, location{path: filepath.Join(p.Dir, filepath.Base(folders[0])), plugin: p})
	}
	return out
}

// claude returns the location of Claude Code's extensions of a kind, if they are enabled.
func (g *gatherer) claude(dir, root, folder string) []location {
	kind := filepath.Base(folder)
	if !g.in.Claude || g.in.Pure || kind == kindRule {
		return nil
	}
	return []location{{path: filepath.Join(dir, kind), root: root, claude: true}}
}

// loadFiles calls use for each usable file of the given locations.
func loadFiles[T any](g *gatherer, kind string, s search, places []location, parse func(path, text string) (T, *fault), use func(f foundFile, item T)) {
	for _, p := range places {
		s.boundary = p.plugin.Dir
		files, watch, err := s.find(p.path, p.root)
		g.watch = append(g.watch, watch...)
		if err != nil {
			g.problem(p.path, 0, "%s: %v", kind, safeio.Cause(err))
			g.marks = append(g.marks, mark{key: key{kind, p.path}, cause: err.Error()})
		}
		for _, f := range append(files, g.absent(kind, p, files)...) {
			f.plugin, f.claude = p.plugin, p.claude
			k := key{kind, f.path}
			if g.used[k] {
				continue
			}
			g.used[k] = true
			read := func(path, text string) (any, *fault) { return asAny(parse(path, text)) }
			if p.claude && kind == kindAgent {
				read = func(path, text string) (any, *fault) { return asAny(parseClaudeAgent(path, text)) }
			}
			e := g.loader.entry(k, f, g.in, read)
			g.marks = append(g.marks, mark{key: k, entry: e, root: p.root, plugin: p.plugin})
			for _, s := range e.stamps {
				g.watch = append(g.watch, s.path)
			}
			g.set.Problems = append(g.set.Problems, e.problems...)
			if e.unit != nil {
				g.set.Units = append(g.set.Units, *e.unit)
			}
			if e.item != nil {
				g.deferred = append(g.deferred, func() { use(f, e.item.(T)) })
			}
		}
	}
}

// absent returns the files that were found at a location before and are missing only briefly, as
// happens while an editor saves them.
func (g *gatherer) absent(kind string, p location, files []foundFile) (missing []foundFile) {
	if g.in.Removed == nil {
		return nil
	}
	for k, e := range g.loader.entries {
		if k.kind != kind || e.item == nil || k.path != p.path && !strings.HasPrefix(k.path, p.path+string(filepath.Separator)) ||
			slices.ContainsFunc(files, func(f foundFile) bool { return f.path == k.path }) {
			continue
		}
		if _, err := os.Stat(k.path); errors.Is(err, fs.ErrNotExist) && !g.in.Removed(k.path) {
			missing = append(missing, foundFile{path: k.path, root: p.root})
		}
	}
	sortBy(missing, func(f foundFile) string { return f.path })
	return missing
}

// entry returns the parsed file, from memory if it has not changed.
func (l *Loader) entry(k key, f foundFile, in Inputs, parse func(path, text string) (any, *fault)) *entry {
	before := l.entries[k]
	if f.info == nil {
		return before // it is missing only briefly
	}
	if before != nil && before.isUnchanged(f.info) && !before.trustChanged(in) {
		return before
	}
	e := &entry{stamps: []stamp{l.stamp(f.path, f.info)}}
	data, err := l.read(f.path)
	e.sum = sha256.Sum256(data)
	if err == nil && before != nil && before.sum == e.sum && before.includesUnchanged() && !before.trustChanged(in) {
		before.stamps[0] = e.stamps[0] // only its modification time has changed
		return before
	}
	l.entries[k] = e
	var flt *fault
	switch {
	case errors.Is(err, safeio.ErrNotRegular):
		flt = faultf(0, "it is not a regular file; replace it with one, or remove it")
	case err != nil:
		flt = faultf(0, "it cannot be read: %v", safeio.Cause(err))
	case before != nil && before.item != nil && len(bytes.TrimSpace(data)) == 0:
		flt = faultf(0, "it is empty") // an editor may be about to write it
	case bytes.IndexByte(data, 0) >= 0:
		flt = faultf(0, "it is not text")
	case !e.checkTrust(k, f, data, in):
		return e
	default:
		e.item, flt = parse(f.path, l.expand(string(data), f, in, k.kind, e))
	}
	if flt != nil {
		e.item = nil
		if before != nil && before.item != nil {
			e.item = before.item
			flt.cause += " (what the file said before stays in effect)"
		}
		e.problems = append(e.problems, config.Problem{Origin: config.Origin{Source: f.path, Line: flt.line}, Cause: flt.cause})
	}
	return e
}

// checkTrust records the part of a workspace's file that needs trust, and reports whether the file may
// be used.
func (e *entry) checkTrust(k key, f foundFile, data []byte, in Inputs) bool {
	if in.Trusts == nil || f.root == "" {
		return true
	}
	text := string(data)
	if k.kind == kindAgent || f.claude {
		text = "" // its strings are expanded with the configuration, or not at all
	}
	u, needed := config.TextUnit(f.root, f.path, text, leadsOut(f.root, f.path, data))
	if !needed {
		return true
	}
	u.Trusted = in.Trusts(u)
	e.unit = &u
	for _, named := range u.Files {
		e.stamps = append(e.stamps, stamp{path: named, info: stat(named)})
	}
	return u.Trusted
}

// trustChanged reports whether the trust in a file has changed since it was read.
func (e *entry) trustChanged(in Inputs) bool {
	return e.unit != nil && in.Trusts != nil && in.Trusts(*e.unit) != e.unit.Trusted
}

// leadsOut reports whether the content of a file in a folder was read from outside the folder.
func leadsOut(root, path string, data []byte) bool {
	inside, err := safeio.ReadWithin(root, path, maxFile)
	return err != nil || !bytes.Equal(inside, data)
}

// expand expands the dynamic strings of a file. The strings of agents are expanded together with
// the configuration.
func (l *Loader) expand(text string, f foundFile, in Inputs, kind string, e *entry) string {
	if in.Expand == nil || kind == kindAgent || f.claude {
		return text
	}
	out, files, err := in.Expand(text, filepath.Dir(f.path), f.plugin.Dir)
	if err != nil {
		e.problems = append(e.problems, config.Problem{Origin: config.Origin{Source: f.path}, Cause: strings.ReplaceAll(err.Error(), "\n", "; ")})
	}
	for _, included := range files {
		e.stamps = append(e.stamps, l.stamp(included, stat(included)))
	}
	return out
}

// stat returns a file's state, or nil.
func stat(path string) fs.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil
	}
	return info
}

// stamp returns a file's state before it is read.
func (l *Loader) stamp(path string, info fs.FileInfo) stamp {
	s := stamp{path: path, info: info}
	if info != nil {
		age := l.now().Sub(info.ModTime())
		s.changedRecently = age < timeResolution // also true if the modification time is in the future
	}
	return s
}

// isUnchanged reports whether nothing has changed since an entry was read. info is the file's present
// state.
func (e *entry) isUnchanged(info fs.FileInfo) bool {
	return e.stamps[0].same(info) && e.includesUnchanged()
}

// includesUnchanged reports whether the files that a file includes are unchanged.
func (e *entry) includesUnchanged() bool {
	return !slices.ContainsFunc(e.stamps[1:], func(s stamp) bool { return !s.same(stat(s.path)) })
}

func (s stamp) same(now fs.FileInfo) bool {
	return safeio.Same(s.info, now) && (s.info == nil || !s.changedRecently)
}

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) { return safeio.Read(path, maxFile) }

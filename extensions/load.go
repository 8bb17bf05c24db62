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
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Loader reads extensions, each file once as long as it stays as it is.
type Loader struct {
	now  func() time.Time
	read func(path string) ([]byte, error)

	mu      sync.Mutex // guards the fields below
	entries map[key]*entry
	last    *Set
	marks   []mark // the inputs of the last Set
}

// NewLoader returns a loader that has read nothing. now is the time.
func NewLoader(now func() time.Time) *Loader {
	return &Loader{now: now, read: readFile, entries: map[key]*entry{}}
}

// key is a file in a role: the same file may be a rule and a command.
type key struct{ kind, path string }

// mark identifies one state of the inputs of a Set.
type mark struct {
	key
	entry  *entry
	root   string
	plugin Plugin
	cause  string // of a folder that cannot be read
}

// entry is a file as it was read.
type entry struct {
	item     any // Agent, Skill, Rule or Command; nil if it never could be used
	problems []Problem
	stamps   []stamp // of the file and of those that it includes
	sum      [sha256.Size]byte
	unit     *config.Unit // the part that needs trust, or nil
}

// stamp is the state of a file when it was read.
type stamp struct {
	path            string
	info            fs.FileInfo // nil: it did not exist
	changedRecently bool        // a change right after it would have the same time
}

// timeResolution is the age from which a file's time distinguishes a change from the next one.
const timeResolution = 2 * time.Second

// Load returns what the files say now. changed is false if it is the same Set as before.
func (l *Loader) Load(in Inputs) (set *Set, changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := &gather{loader: l, in: in, set: &Set{}, used: map[key]bool{}}
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

// gather makes one Set.
type gather struct {
	loader   *Loader
	in       Inputs
	set      *Set
	used     map[key]bool
	marks    []mark
	watch    []string
	deferred []func() // fill the Set, if it is another one
}

func (g *gather) problem(path string, line int, format string, args ...any) {
	g.set.Problems = append(g.set.Problems, Problem{path, line, fmt.Sprintf(format, args...)})
}

// files returns what to watch.
func (g *gather) files() []string {
	slices.Sort(g.watch)
	g.watch = slices.Compact(g.watch)
	return g.watch
}

func (g *gather) finish() {
	for _, fill := range g.deferred {
		fill()
	}
	g.set.Files = g.files()
	slices.SortFunc(g.set.Agents, func(a, b Agent) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(g.set.Skills, func(a, b Skill) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(g.set.Rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(g.set.Commands, func(a, b Command) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(g.set.Problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), a.Line-b.Line, cmp.Compare(a.Cause, b.Cause))
	})
}

// location is a file or a folder to look at.
type location struct {
	path, root string
	plugin     Plugin // empty: of none
	claude     bool   // it is Claude Code's
}

// locations lists the locations of a kind of extension, in the order of precedence: the workspace folders in
// their order, the global folder, what the configuration names, plugins.
func (g *gather) locations(named []string, folders ...string) []location {
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
func (g *gather) claude(dir, root, folder string) []location {
	kind := filepath.Base(folder)
	if !g.in.Claude || g.in.Pure || kind == kindRule {
		return nil
	}
	return []location{{path: filepath.Join(dir, kind), root: root, claude: true}}
}

// look calls use with each usable file.
func (g *gather) look(kind string, s search, places []location, parse func(path, text string) (any, *fault), use func(f foundFile, item any)) {
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
			read := parse
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
				g.deferred = append(g.deferred, func() { use(f, e.item) })
			}
		}
	}
}

// absent lists the files that were found at a place before and are missing for a moment, as
// while they are saved.
func (g *gather) absent(kind string, p location, files []foundFile) (missing []foundFile) {
	if g.in.Gone == nil {
		return nil
	}
	for k, e := range g.loader.entries {
		if k.kind != kind || e.item == nil || k.path != p.path && !strings.HasPrefix(k.path, p.path+string(filepath.Separator)) ||
			slices.ContainsFunc(files, func(f foundFile) bool { return f.path == k.path }) {
			continue
		}
		if _, err := os.Stat(k.path); errors.Is(err, fs.ErrNotExist) && !g.in.Gone(k.path) {
			missing = append(missing, foundFile{path: k.path, root: p.root})
		}
	}
	slices.SortFunc(missing, func(a, b foundFile) int { return cmp.Compare(a.path, b.path) })
	return missing
}

// entry returns a file as it is, from memory if it has not changed.
func (l *Loader) entry(k key, f foundFile, in Inputs, parse func(path, text string) (any, *fault)) *entry {
	before := l.entries[k]
	if f.info == nil {
		return before // it is missing for a moment
	}
	if before != nil && before.current(f.info) && !before.outdated(in) {
		return before
	}
	e := &entry{stamps: []stamp{l.stamp(f.path, f.info)}}
	data, err := l.read(f.path)
	e.sum = sha256.Sum256(data)
	if err == nil && before != nil && before.sum == e.sum && before.included() && !before.outdated(in) {
		before.stamps[0] = e.stamps[0] // it was only touched
		return before
	}
	l.entries[k] = e
	var flt *fault
	switch {
	case err != nil:
		flt = faultf(0, "it cannot be read: %v", safeio.Cause(err))
	case before != nil && before.item != nil && len(bytes.TrimSpace(data)) == 0:
		flt = faultf(0, "it is empty") // as when it is about to be written
	case bytes.IndexByte(data, 0) >= 0:
		flt = faultf(0, "it is not text")
	case !e.trusted(k, f, data, in):
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
		e.problems = append(e.problems, Problem{f.path, flt.line, flt.cause})
	}
	return e
}

// trusted records the part of a workspace's file that needs trust, and reports whether the file
// may be used.
func (e *entry) trusted(k key, f foundFile, data []byte, in Inputs) bool {
	if in.Trusts == nil || f.root == "" {
		return true
	}
	text := string(data)
	if k.kind == kindAgent || f.claude {
		text = "" // its strings are the configuration's, or not dynamic
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

// outdated reports whether the trust in a file has changed since it was read.
func (e *entry) outdated(in Inputs) bool {
	return e.unit != nil && in.Trusts != nil && in.Trusts(*e.unit) != e.unit.Trusted
}

// leadsOut reports whether the content of a folder's file came from outside the folder.
func leadsOut(root, path string, data []byte) bool {
	inside, err := safeio.ReadWithin(root, path, maxFile)
	return err != nil || !bytes.Equal(inside, data)
}

// expand resolves the dynamic strings of a file. Those of agents are resolved with the
// configuration's.
func (l *Loader) expand(text string, f foundFile, in Inputs, kind string, e *entry) string {
	if in.Expand == nil || kind == kindAgent || f.claude {
		return text
	}
	out, files, err := in.Expand(text, filepath.Dir(f.path), f.plugin.Dir)
	if err != nil {
		e.problems = append(e.problems, Problem{f.path, 0, strings.ReplaceAll(err.Error(), "\n", "; ")})
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

// stamp notes a file's state before it is read.
func (l *Loader) stamp(path string, info fs.FileInfo) stamp {
	s := stamp{path: path, info: info}
	if info != nil {
		age := l.now().Sub(info.ModTime())
		s.changedRecently = age < timeResolution // and if the file is from the future
	}
	return s
}

// current says whether nothing has changed since an entry was read. info is the file's
// now.
func (e *entry) current(info fs.FileInfo) bool { return e.stamps[0].same(info) && e.included() }

// included says whether what a file includes has not changed.
func (e *entry) included() bool {
	return !slices.ContainsFunc(e.stamps[1:], func(s stamp) bool { return !s.same(stat(s.path)) })
}

func (s stamp) same(now fs.FileInfo) bool {
	return safeio.Same(s.info, now) && (s.info == nil || !s.changedRecently)
}

// readFile reads a file of at most maxFile bytes.
func readFile(path string) ([]byte, error) { return safeio.Read(path, maxFile) }

// Package plugins finds the plugins that a user installed: folders with agents, skills,
// rules, commands, hooks, MCP servers and configuration, offered by sources that the user
// named (eca-features 21).
//
//	<source>/.eca-plugin/marketplace.json   {"plugins": [{"name", "description", "source", "dependencies"}]}
//	<plugin>/.eca-plugin/plugin.json        {"dependencies": ["name", "name@source"]}
//	<plugin>/eca.json, .mcp.json, hooks/hooks.json
//	<plugin>/agents, skills, rules, commands
//
// A source is a folder, or a git repository of which the cache holds one checkout for each
// commit that was ever in use:
//
//	<cache>/<address>-<hash>/current        the commit that counts unless the user pins another
//	<cache>/<address>-<hash>/<commit>/      the files; they never change
//
// It guarantees that Load never fails and needs no network: what cannot be used is named
// in Problems with its file, and the others load; that nothing outside a plugin's folder
// counts as the plugin's, by whatever path or link; that reading is bounded; that a
// repository is only fetched when it is missing or somebody asks for its news; and that a
// fetch that fails leaves what was there.
//
// It reads no agents, skills, rules or commands (package extensions does), decides nothing
// about configuration (package config puts a plugin's below the user's), and does not
// judge what a plugin does: hooks and MCP servers of a plugin act with the user's rights.
package plugins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/safeio"
)

// Inputs say what the user wants.
type Inputs struct {
	Sources []Source
	Install []string // name, or name@source
}

// Source is a place that offers plugins.
type Source struct {
	Name     string
	Location string // a git URL or a folder
	Commit   string // of a repository: this one and no other; empty: the one fetched last
	// Builtin says that the user did not name it: names without a source mean its plugins
	// only where no other source has them.
	Builtin bool
}

// Plugin is one that is in effect.
type Plugin struct {
	Name        string
	Source      string // the name of its source
	Description string
	Dir         string // with links resolved
	NeededBy    string // the plugin, as name@source, it was loaded for; empty: the user installed it
}

// ID returns name@source.
func (p Plugin) ID() string { return p.Name + "@" + p.Source }

// Problem is something that is not used.
type Problem struct {
	Path  string // the file, or the key of the configuration
	Line  int    // 0 if unknown
	Cause string
}

func (p Problem) String() string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Cause)
	}
	return p.Path + ": " + p.Cause
}

// Set is what is in effect, at one moment. It must not be changed.
type Set struct {
	Plugins  []Plugin             // in the order in which they are merged: dependencies first
	Layers   []config.PluginLayer // their configuration, in that order
	Problems []Problem
	Missing  []Source // repositories to fetch before all plugins are known
	Files    []string // to watch
}

// Installed returns the plugins; a nil Set has none.
func (s *Set) Installed() []Plugin {
	if s == nil {
		return nil
	}
	return s.Plugins
}

// Configuration returns the Layers; a nil Set has none.
func (s *Set) Configuration() []config.PluginLayer {
	if s == nil {
		return nil
	}
	return s.Layers
}

// Wrong returns the Problems; a nil Set has none.
func (s *Set) Wrong() []Problem {
	if s == nil {
		return nil
	}
	return s.Problems
}

// Watch returns the Files; a nil Set has none.
func (s *Set) Watch() []string {
	if s == nil {
		return nil
	}
	return s.Files
}

// Options are what a Store needs.
type Options struct {
	Cache    string     // folder of the repositories' checkouts
	Children *proc.Pool // starts git; nil: without a supervisor
	Getenv   func(string) string
	Now      func() time.Time
	NewID    func() string
	Limit    time.Duration // of one fetch; default: two minutes
	// Gone says whether a file that was there, and that is missing now, is to count no more:
	// some editors remove a file before they write it again. Nil says that it is.
	Gone func(path string) bool
}

// defaultLimit is how long fetching a repository may take.
const defaultLimit = 2 * time.Minute

// Store reads sources and fetches repositories. It is safe for concurrent use.
type Store struct {
	opts    Options
	ctx     context.Context //nolint:containedctx // the life of the fetches, which have several waiters
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex // guards what follows
	closed    bool
	fetches   map[repository]*fetch
	failed    map[repository]error // until it is requested again
	last      *Set
	lastIn    Inputs
	stamps    []stamp
	lastValid map[string][]byte // by path: files as they were when they could be used last
	lastRead  map[string][]byte // by path: files as they were read last
}

// New returns a store; Close must be called.
func New(o Options) *Store {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	s := &Store{opts: o, fetches: map[repository]*fetch{}, failed: map[repository]error{}, lastValid: map[string][]byte{}, lastRead: map[string][]byte{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close ends fetches.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// Load returns what the user's plugins are now, without the network. changed is false if
// it is the same Set as before.
func (s *Store) Load(in Inputs) (set *Set, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last != nil && reflect.DeepEqual(in, s.lastIn) && !slices.ContainsFunc(s.stamps, stamp.stale) {
		return s.last, false
	}
	r := s.reader(in)
	set = r.resolve()
	s.lastIn, s.stamps = in, r.stamps
	if s.last != nil && reflect.DeepEqual(set, s.last) {
		return s.last, false
	}
	s.last = set
	return set, true
}

// forget has the next Load look again.
func (s *Store) forgetLocked() { s.stamps = []stamp{{changedRecently: true}} }

// stamp is the state of a file when it was looked at.
type stamp struct {
	path            string
	info            fs.FileInfo // nil: it did not exist
	changedRecently bool        // it had changed so shortly before that it may change again unnoticed
}

// timeResolution is how old a change must be to differ from the next in the time of the file.
const timeResolution = 2 * time.Second

func newStamp(path string, now time.Time) stamp {
	s := stamp{path: path}
	if info, err := os.Stat(path); err == nil {
		s.info, s.changedRecently = info, now.Sub(info.ModTime()) < timeResolution
	}
	return s
}

// stale says that a file may be another one by now.
func (s stamp) stale() bool {
	info, _ := os.Stat(s.path) // or nil
	return s.changedRecently || !safeio.Same(s.info, info)
}

// Offer is a plugin that a source has.
type Offer struct {
	Name        string
	Source      string
	Description string
}

// State is what is known of a source.
type State struct {
	Source
	Git     bool
	At      string // the commit that is checked out; empty: none yet, or a folder
	Offers  []Offer
	Problem string // why it cannot be used; empty if it can
}

// Shown returns the location without credentials.
func (s Source) Shown() string { return withoutSecrets(s.Location) }

// Sources tells of all sources and what they offer, without the network.
func (s *Store) Sources(in Inputs) []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reader(in)
	var out []State
	for _, src := range r.in.Sources {
		st := State{Source: src, Git: IsGit(src.Location)}
		m := r.market(src.Name)
		st.At = m.commit
		switch {
		case m.missing:
			st.Problem = "Not fetched yet"
		case m.broken != "":
			st.Problem = m.broken
		}
		for _, e := range m.entries {
			st.Offers = append(st.Offers, Offer{e.Name, src.Name, e.Description})
		}
		out = append(out, st)
	}
	return out
}

// Find returns which sources have a plugin; ref is name or name@source. An obstacle,
// a missing repository included, is an error; *UnfetchedError names that.
func (s *Store) Find(in Inputs, ref string) ([]Offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reader(in)
	found := r.find(ref, "")
	if len(r.missing) > 0 {
		return nil, &UnfetchedError{r.missing}
	}
	if len(found) == 0 {
		causes := make([]string, len(r.problems))
		for i, p := range r.problems {
			causes[i] = p.Cause
		}
		return nil, errors.New(cmp.Or(strings.Join(causes, "; "), fmt.Sprintf("there is no plugin %q", ref)))
	}
	out := make([]Offer, len(found))
	for i, f := range found {
		out[i] = Offer{f.entry.Name, f.market.source.Name, f.entry.Description}
	}
	return out, nil
}

// UnfetchedError tells of repositories that have to be fetched first.
type UnfetchedError struct{ Sources []Source }

func (e *UnfetchedError) Error() string {
	names := make([]string, len(e.Sources))
	for i, s := range e.Sources {
		names[i] = s.Name
	}
	return "not fetched yet: " + strings.Join(names, ", ")
}

// parseRef takes name or name@source apart.
func parseRef(ref string) (name, source string, err error) {
	name, source, qualified := strings.Cut(ref, "@")
	switch {
	case !validName(name):
		return "", "", fmt.Errorf("%q is not a plugin: the name must be one word without @, : and slashes", ref)
	case qualified && source == "":
		return "", "", fmt.Errorf("%q names no source after the @", ref)
	}
	return name, source, nil
}

// maxName bounds names: commands and hooks are called by them.
const maxName = 64

// validName says whether a plugin can have a name: it becomes part of what users type.
func validName(name string) bool {
	return name != "" && len(name) <= maxName && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r > 0x7f && (r < 0xa1 || r == 0x2028 || r == 0x2029) || strings.ContainsRune(`/\:@"'`+"`", r)
	})
}

// resolveBelow returns the folder that a path below base leads to, with links resolved. It is an
// error if that is not below base.
func resolveBelow(base, rel string) (string, error) {
	local := filepath.FromSlash(rel)
	if strings.HasPrefix(rel, "/") || !filepath.IsLocal(local) {
		return "", fmt.Errorf("%q is not a path within %s", rel, base)
	}
	realBase, err := filepath.EvalSymlinks(base)
	if err != nil {
		return "", safeio.Cause(err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(realBase, local))
	if err != nil {
		return "", fmt.Errorf("there is no folder %s: %w", rel, safeio.Cause(err))
	}
	if below, err := filepath.Rel(realBase, real); err != nil || !filepath.IsLocal(below) {
		return "", fmt.Errorf("%q is a link that leads out of %s", rel, base)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", rel)
	}
	return real, nil
}

// Package plugins finds the plugins that a user installed: folders with agents, skills,
// rules, commands, hooks, MCP servers and configuration, offered by sources that the user
// named (eca-features.md 21).
//
//	<source>/.eca-plugin/marketplace.json   {"plugins": [{"name", "description", "source", "dependencies"}]}
//	<plugin>/.eca-plugin/plugin.json        {"dependencies": ["name", "name@source"]}
//	<plugin>/eca.json, .mcp.json, hooks/hooks.json
//	<plugin>/agents, skills, rules, commands
//
// A source is a folder, or a git repository. For repositories the cache has one checkout for each
// commit that was in use:
//
//	<cache>/<address>-<hash>/current        the commit that is used unless the user pins another
//	<cache>/<address>-<hash>/<commit>/      the files; they never change
//
// Load never fails and needs no network: a file that cannot be used is listed in Problems, and the
// others load. Files outside a plugin's folder are never used, whatever path or symlink leads
// there. Reading is bounded. A repository is fetched only when it is missing or the user asks for
// an update; a failed fetch leaves the old checkout in place.
//
// The package does not read agents, skills, rules or commands (package extensions does), does not
// merge configuration (package config does), and does not judge what a plugin does: its hooks and
// MCP servers have the user's rights.
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

// Inputs are the plugin settings of the user.
type Inputs struct {
	Sources []Source
	Install []string // name, or name@source
}

// Source is a folder or repository that offers plugins.
type Source struct {
	Name     string
	Location string // a git URL or a folder
	Commit   string // for a repository: the pinned commit; empty for the last one fetched
	// Builtin means that the user did not configure the source. A plugin name without a source
	// refers to a built-in source only if no other source has the plugin.
	Builtin bool
}

// Plugin is a plugin that is in effect.
type Plugin struct {
	Name        string
	Source      string // the name of its source
	Description string
	Dir         string // with symlinks resolved
	NeededBy    string // the plugin, as name@source, that depends on it; empty if the user installed it
}

// ID returns name@source.
func (p Plugin) ID() string { return p.Name + "@" + p.Source }

// Set is a snapshot of the plugins in effect. It must not be changed.
type Set struct {
	Plugins  []Plugin             // in the order in which they are merged: dependencies first
	Layers   []config.PluginLayer // their configuration, in that order
	Problems []config.Problem     // the Source of one is a file, or a key of the configuration
	Missing  []Source             // repositories to fetch before all plugins are known
	Files    []string             // to watch
}

// Installed returns the plugins; nil for a nil Set.
func (s *Set) Installed() []Plugin {
	if s == nil {
		return nil
	}
	return s.Plugins
}

// Configuration returns the Layers; nil for a nil Set.
func (s *Set) Configuration() []config.PluginLayer {
	if s == nil {
		return nil
	}
	return s.Layers
}

// AllProblems returns the Problems; nil for a nil Set.
func (s *Set) AllProblems() []config.Problem {
	if s == nil {
		return nil
	}
	return s.Problems
}

// Watch returns the Files; nil for a nil Set.
func (s *Set) Watch() []string {
	if s == nil {
		return nil
	}
	return s.Files
}

// Options are the dependencies of a Store.
type Options struct {
	Cache    string     // folder for checkouts of repositories
	Children *proc.Pool // starts git; nil starts it without a supervisor
	Getenv   func(string) string
	Now      func() time.Time
	NewID    func() string
	Limit    time.Duration // for one fetch; default: two minutes
	// Removed reports whether a used file that is missing now is considered deleted; some editors
	// delete a file before they write it again. If Removed is nil, every missing file is deleted.
	Removed func(path string) bool
}

// defaultLimit is how long a fetch may take.
const defaultLimit = 2 * time.Minute

// Store reads sources and fetches repositories. It is safe for concurrent use.
type Store struct {
	opts    Options
	ctx     context.Context //nolint:containedctx // the lifetime of fetches, which several callers wait for
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex // guards the fields below
	closed    bool
	fetches   map[repository]*fetch
	failed    map[repository]error // errors of fetches, until the next attempt
	last      *Set
	lastIn    Inputs
	stamps    []stamp
	lastValid map[string][]byte // by path: the last valid content
	lastRead  map[string][]byte // by path: the last content
}

// New returns a store. The caller must call Close.
func New(o Options) *Store {
	if o.Limit == 0 {
		o.Limit = defaultLimit
	}
	s := &Store{opts: o, fetches: map[repository]*fetch{}, failed: map[repository]error{}, lastValid: map[string][]byte{}, lastRead: map[string][]byte{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	return s
}

// Close stops all fetches.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.running.Wait()
}

// Load returns the current plugins, without using the network. changed is false if the Set is the
// same as before.
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

// forgetLocked makes the next Load read all files again.
func (s *Store) forgetLocked() { s.stamps = []stamp{{changedRecently: true}} }

// stamp is the state of a file when it was read.
type stamp struct {
	path            string
	info            fs.FileInfo // nil: it did not exist
	changedRecently bool        // a further change might not change the modification time
}

// timeResolution is the age from which a modification time is certain to differ after the next
// change.
const timeResolution = 2 * time.Second

func newStamp(path string, now time.Time) stamp {
	s := stamp{path: path}
	if info, err := os.Stat(path); err == nil {
		s.info, s.changedRecently = info, now.Sub(info.ModTime()) < timeResolution
	}
	return s
}

// stale reports whether a file may have changed.
func (s stamp) stale() bool {
	info, _ := os.Stat(s.path) // nil if it does not exist
	return s.changedRecently || !safeio.Same(s.info, info)
}

// Offer is a plugin that a source offers.
type Offer struct {
	Name        string
	Source      string
	Description string
}

// State describes a source.
type State struct {
	Source
	Git     bool
	At      string // the commit that is checked out; empty for a folder, or if none is
	Offers  []Offer
	Ignored []config.Problem // mistakes in its list of plugins, which leave out a plugin each
	Problem string           // why it cannot be used; empty if it can
}

// Shown returns the location without credentials.
func (s Source) Shown() string { return withoutSecrets(s.Location) }

// Sources describes all sources and their plugins, without using the network.
func (s *Store) Sources(in Inputs) []State {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.reader(in)
	var out []State
	for _, src := range r.in.Sources {
		st := State{Source: src, Git: IsGit(src.Location)}
		known := len(r.problems)
		m := r.market(src.Name)
		st.At = m.commit
		switch {
		case m.missing:
			st.Problem = "Not fetched yet"
		case m.unusableReason != "":
			st.Problem = m.unusableReason
		default:
			st.Ignored = r.problems[known:]
		}
		for _, e := range m.entries {
			st.Offers = append(st.Offers, Offer{e.Name, src.Name, e.Description})
		}
		out = append(out, st)
	}
	return out
}

// Find returns the sources that offer a plugin; ref is name or name@source. It returns an error if
// the plugin cannot be determined; if repositories are missing, that is an *UnfetchedError.
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
		return nil, errors.New(cmp.Or(strings.Join(causes, "; "), fmt.Sprintf("unknown plugin %q", ref)))
	}
	out := make([]Offer, len(found))
	for i, f := range found {
		if _, err := resolveBelow(f.market.dir, f.entry.Path); err != nil {
			return nil, fmt.Errorf("%s of the source %s is wrong: %w", marketFile, f.market.source.Name, err)
		}
		out[i] = Offer{f.entry.Name, f.market.source.Name, f.entry.Description}
	}
	return out, nil
}

// UnfetchedError names repositories that must be fetched first.
type UnfetchedError struct{ Sources []Source }

func (e *UnfetchedError) Error() string {
	names := make([]string, len(e.Sources))
	for i, s := range e.Sources {
		names[i] = s.Name
	}
	return "not fetched yet: " + strings.Join(names, ", ")
}

// parseRef splits name or name@source.
func parseRef(ref string) (name, source string, err error) {
	name, source, qualified := strings.Cut(ref, "@")
	switch {
	case !validName(name):
		return "", "", fmt.Errorf("%q is not a valid plugin: the name must be one word without @, : and slashes (add a folder or a URL to plugins in the configuration, as a source)", ref)
	case qualified && source == "":
		return "", "", fmt.Errorf("%q names no source after the @", ref)
	}
	return name, source, nil
}

// maxName is the limit of names, which become part of the names of commands and hooks.
const maxName = 64

// validName reports whether a plugin may have a name, which becomes part of what users type.
func validName(name string) bool {
	return name != "" && len(name) <= maxName && name != "." && name != ".." && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r == 0x7f || r > 0x7f && (r < 0xa1 || r == 0x2028 || r == 0x2029) || strings.ContainsRune(`/\:@"'`+"`", r)
	})
}

// resolveBelow returns the folder at a path below base, with symlinks resolved. It returns an error
// if that is not below base.
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
	if !safeio.Within(realBase, real) {
		return "", fmt.Errorf("%q is a link that leads out of %s", rel, base)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", fmt.Errorf("%s is not a folder", rel)
	}
	return real, nil
}

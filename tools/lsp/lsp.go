// Package lsp runs the language servers that the user has, and asks them about the code: what is
// wrong in it, where symbols are defined and used. They serve clients whose editor cannot be asked.
//
//   - table.go: the known servers, one row per language;
//   - servers.go: which server serves which file; starting, ending, restarting after a pause;
//   - server.go: one server and the conversation with it;
//   - documents.go: which files it has open, as they are on the disk;
//   - reports.go: the diagnostics that it reports, and waiting until it has checked a file;
//   - navigate.go, symbols.go: definitions, references, symbols.
//
// A server starts when a file that it serves is first changed or asked about. It ends after ten
// minutes without use, when it uses more than 4 GiB of memory, and when more recently used ones take
// its place. One that fails is started again after a pause that doubles each time. Whatever a server
// sends or leaves out costs a bounded amount of memory, and a bounded time that shrinks to nothing if
// it never reports: nothing fails because of a server but the question that it was asked.
//
// The package speaks a small part of LSP with its own message types: those of go.lsp.dev/protocol
// add 2.4 MB to the program. It does not decide whether a server may start, and how it is bound: see
// Options.Bind.
//
// Entry points: New, then Servers.With.
package lsp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Limits of servers.
const (
	startTime     = 30 * time.Second // until initialize is answered
	idleTime      = 10 * time.Minute
	maxRunning    = 8
	maxMemory     = 4 << 30 // bytes
	checkInterval = 15 * time.Second
	firstPause    = time.Second // after the first failure
	longestPause  = 5 * time.Minute
	healthyTime   = time.Minute // a server that ran that long has not failed at the start
	closeTime     = 500 * time.Millisecond

	maxMessage = 16 << 20  // bytes
	floodBurst = 128 << 20 // bytes, beyond floodRate
	floodRate  = 4 << 20   // bytes per second
)

// Limits of what is kept of a server's reports.
const (
	maxOpen        = 64      // documents
	maxDependents  = 20      // documents that are checked along with edited ones
	maxText        = 1 << 20 // bytes of a document
	maxPerFile     = 500     // diagnostics
	maxFiles       = 2000    // with diagnostics
	maxKept        = 20_000  // diagnostics of all files
	maxMessageText = 2000    // bytes of a diagnostic's message
)

// Options are what Servers need. None may be nil.
type Options struct {
	Children *proc.Pool
	Getenv   func(string) string
	Now      func() time.Time
	Version  string // of eca
	Failed   func() // a server has failed that is not among the Failures yet
	Log      *slog.Logger
}

// Settings are what may differ from one configuration to the next.
type Settings struct {
	Config config.LSP
	Roots  []string // workspace folders

	// Bind returns how a server is bound, and its environment; an error says why it must not run.
	// named says that the configuration names it.
	Bind func(named bool) (sandbox.Policy, []string, error)

	Wait      time.Duration // for a server to check a file
	StartWait time.Duration // for a server to start
}

// View is Servers with settings. It never changes.
type View struct {
	*Servers
	settings  Settings
	workspace *workspace.Workspace
	defs      []definition
}

// With returns a view with settings.
func (s *Servers) With(o Settings) *View {
	v := &View{Servers: s, settings: o, workspace: workspace.New(o.Roots...)}
	if !o.Config.Off {
		v.defs, _ = definitions(o.Config.Servers)
	}
	return v
}

// Problems says what is wrong in the configuration, by the name of a server.
func (v *View) Problems() map[string]string {
	_, problems := definitions(v.settings.Config.Servers)
	for _, d := range v.defs {
		if _, ok := v.installed(d); d.named && !ok {
			var names []string
			for _, p := range d.programs {
				names = append(names, p.name)
			}
			problems[d.name] = fmt.Sprintf("there is no program %s (PATH is searched); install it, or correct lsp.%s.command", strings.Join(names, " or "), d.name)
		}
	}
	return problems
}

// Check is one installed server, to be tried.
type Check struct {
	Name, Program string
	Named         bool     // by the configuration
	Extensions    []string // of the files that it is for
	// Start starts the server and ends it again, unless it was running. It returns why it cannot run.
	Start func(ctx context.Context) error
}

// maxWalked is how many entries of the workspace are looked at for languages.
const maxWalked = 100_000

// Extensions returns the extensions of the files of the workspace.
func (v *View) Extensions(ctx context.Context) map[string]bool {
	out, left := map[string]bool{}, maxWalked
	for _, root := range v.settings.Roots {
		_ = workspace.Walk(ctx, root, func(f workspace.File) error { // folders that cannot be read have none
			if left--; left < 0 {
				return filepath.SkipAll
			}
			if f.Regular {
				out[filepath.Ext(f.Path)] = true
			}
			return nil
		})
	}
	return out
}

// Checks returns the installed servers, the first one of each language.
func (v *View) Checks() (out []Check) {
	for _, d := range v.defs {
		f, ok := v.installed(d)
		if !ok {
			continue
		}
		out = append(out, Check{d.name, f.path, d.named, slices.Sorted(maps.Keys(d.files)), func(ctx context.Context) error {
			if len(v.settings.Roots) == 0 {
				return errors.New("there is no workspace folder to start it in")
			}
			project := workspace.Resolve(v.settings.Roots[0])
			v.mu.Lock()
			running := v.running[f.key(project)] != nil
			v.mu.Unlock()
			s, err := v.start(f, project)
			if err != nil {
				return err
			}
			if !running {
				defer s.stop(nil)
			}
			return s.available(ctx)
		}})
	}
	return out
}

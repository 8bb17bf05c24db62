// Package lsp runs installed language servers and queries them about the code: diagnostics,
// definitions and references. It serves clients whose editor does not answer such queries.
//
//   - table.go: the known servers, one row per language;
//   - servers.go: which server serves which file; starting, stopping, restarting after a pause;
//   - server.go: one server and the connection to it;
//   - documents.go: the documents that the server has open, synchronized with the disk;
//   - reports.go: the diagnostics that it reports, and waiting until it has checked a file;
//   - navigate.go, symbols.go: definitions, references, symbols.
//
// A server starts when a file that it serves is first changed or queried. It stops after ten
// minutes without use, when it uses more than 4 GiB of memory, or when too many servers run and
// others were used more recently. A failed server is restarted after a pause that doubles each
// time. A misbehaving server costs a bounded amount of memory and time (almost none if it never
// reports), and fails only the queries sent to it.
//
// The package implements a small part of LSP with its own message types, since those of
// go.lsp.dev/protocol would add 2.4 MB to the program. It does not decide whether a server may
// start and how it is sandboxed: see Options.Bind.
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
	startTime     = 30 * time.Second // for initialize
	idleTime      = 10 * time.Minute
	maxRunning    = 8
	maxMemory     = 4 << 30          // bytes; see Servers.maxMemory
	checkInterval = 15 * time.Second // see Servers.checkInterval
	firstPause    = time.Second      // after the first failure
	longestPause  = 5 * time.Minute
	healthyTime   = time.Minute // a server that ran this long did not fail at its start
	closeTime     = 500 * time.Millisecond

	maxMessage = 16 << 20  // bytes
	floodBurst = 128 << 20 // bytes that may exceed floodRate
	floodRate  = 4 << 20   // bytes per second
)

// Limits of the stored diagnostics of a server.
const (
	maxOpen        = 64      // documents
	maxDependents  = 20      // documents that are checked together with edited ones
	maxText        = 1 << 20 // bytes of a document
	maxPerFile     = 500     // diagnostics
	maxFiles       = 2000    // files with diagnostics
	maxKept        = 20_000  // diagnostics of all files
	maxMessageText = 2000    // bytes of a diagnostic's message
)

// Options are the dependencies of Servers. None may be nil.
type Options struct {
	Children *proc.Pool
	Getenv   func(string) string
	Now      func() time.Time
	Version  string // of eca
	Failed   func() // called after a failure that Failures does not include yet
	Log      *slog.Logger
}

// Settings are the options that depend on the configuration.
type Settings struct {
	Config config.LSP
	Roots  []string // workspace folders

	// Bind returns the sandbox policy and the environment of a server; an error tells why it must
	// not run. named means that the configuration names the server.
	Bind func(named bool) (sandbox.Policy, []string, error)

	Wait      time.Duration // how long to wait until a server has checked a file
	StartWait time.Duration // how long to wait for a server to start
}

// View combines Servers with settings. It is immutable.
type View struct {
	*Servers
	settings  Settings
	workspace *workspace.Workspace
	defs      []definition
}

// With returns a view with the given settings.
func (s *Servers) With(o Settings) *View {
	v := &View{Servers: s, settings: o, workspace: workspace.New(o.Roots...)}
	if !o.Config.Off {
		v.defs, _ = definitions(o.Config.Servers)
	}
	return v
}

// Problems describes errors in the configuration, by the name of a server.
func (v *View) Problems() map[string]string {
	_, problems := definitions(v.settings.Config.Servers)
	for _, d := range v.defs {
		if !d.configured {
			continue
		}
		if _, ok := v.installed(d); !ok {
			var names []string
			for _, p := range d.programs {
				names = append(names, p.name)
			}
			problems[d.name] = fmt.Sprintf("cannot find %s in PATH; install it, or correct lsp.%s.command", strings.Join(names, " or "), d.name)
		}
	}
	return problems
}

// Check is a check of one installed server.
type Check struct {
	Name, Program string
	Named         bool     // by the configuration
	Extensions    []string // of the files that it is for
	// Start starts the server, and stops it again unless it was already running. It returns why the server
	// cannot run.
	Start func(ctx context.Context) error
}

// maxWalked limits the entries of the workspace that Extensions visits.
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

// Checks returns a check for the preferred installed server of each language.
func (v *View) Checks() (out []Check) {
	for _, d := range v.defs {
		f, ok := v.installed(d)
		if !ok {
			continue
		}
		out = append(out, Check{d.name, f.path, d.configured, slices.Sorted(maps.Keys(d.files)), func(ctx context.Context) error {
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
			return s.awaitReady(ctx)
		}})
	}
	return out
}

package servers

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/consent"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/mcp"
)

// If an MCP server has changed since the user agreed to it, the user is asked again: about its
// command before it is started, and about its tools before they are used (docs/mcp.md). A new
// server needs no question: entries in the user's own files are the user's decision, and those of a
// workspace are covered by trust (package daemon/trust).

// agreements stores which servers and tools the user agreed to.
type agreements struct {
	opts  Options
	store *consent.ServerStore

	mu              sync.Mutex // guards the fields below
	pendingLaunches map[string]pendingLaunch
	edits           map[string]int  // by server: the number of running edits by eca
	asked           map[string]bool // hashes of changes that the user was asked about
}

// pendingLaunch is a start of a server that waits for the user's consent.
type pendingLaunch struct {
	launch     consent.Launch
	difference string
}

func newAgreements(o Options) *agreements {
	return &agreements{
		opts: o, store: o.Agreed, pendingLaunches: map[string]pendingLaunch{}, edits: map[string]int{}, asked: map[string]bool{},
	}
}

// record changes the record of a server. what describes the change in the log if it fails.
func (a *agreements) record(name, what string, change func(*consent.Server)) {
	if err := a.store.Change(a.key(name), change); err != nil {
		a.opts.Log.Warn("cannot record "+what, "server", name, "err", err)
	}
}

// forget deletes the record of a server that was removed.
func (a *agreements) forget(name, key string) {
	if err := a.store.Forget(key); err != nil {
		a.opts.Log.Warn("cannot delete the record of a removed MCP server", "server", name, "err", err)
	}
}

// addPending keeps a start until the user agrees to it.
func (a *agreements) addPending(name string, h pendingLaunch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pendingLaunches[name] = h
}

// isPending reports whether a server does not start, because the user has not agreed to how it starts.
func (a *agreements) isPending(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, pending := a.pendingLaunches[name]
	return pending
}

// takePending removes and returns the pending start of a server. editing is true while eca edits the
// server for the user.
func (a *agreements) takePending(name string) (h pendingLaunch, editing, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok = a.pendingLaunches[name]
	delete(a.pendingLaunches, name)
	return h, a.edits[name] > 0, ok
}

// agreeToPending agrees to the waiting start of a server, if there is one.
func (a *agreements) agreeToPending(name string) bool {
	h, _, ok := a.takePending(name)
	if ok {
		a.agreeToLaunch(name, h.launch)
	}
	return ok
}

// key returns the key of a server's record. It includes the file that defines the server, because
// another file may define another server with the same name.
func (a *agreements) key(name string) string {
	origin, _ := a.opts.Config().Origin("mcpServers", name)
	return name + " of " + origin.Source
}

// recordsLaunch reports whether the launch of a server is recorded: only if it comes from a
// configuration file outside the workspace. Files of the workspace are covered by trust, and
// settings of the editor or the environment come from the user's own programs at each start.
func (a *agreements) recordsLaunch(name string) bool {
	cfg, ws := a.opts.Config(), a.opts.Workspace()
	for _, key := range []string{"command", "args", "env", "url"} {
		origin, ok := cfg.Origin("mcpServers", name, key)
		if ok && filepath.IsAbs(origin.Source) && !ws.Contains(origin.Source) {
			return true
		}
	}
	return false
}

func launchOf(s config.MCPServer) consent.Launch {
	l := consent.Launch{Command: s.Command, Args: s.Args, URL: s.URL}
	for name, value := range s.Env {
		if l.Env == nil {
			l.Env = map[string]string{}
		}
		l.Env[name] = consent.Sum(name, value)
	}
	return l
}

// checkLaunch returns an error that describes the difference if a server must not be started as it
// is configured now.
func (a *agreements) checkLaunch(name string, s config.MCPServer) error {
	if !a.recordsLaunch(name) {
		return nil
	}
	now := launchOf(s)
	_, editing, _ := a.takePending(name)
	known, err := a.store.Get(a.key(name))
	if err != nil {
		return err
	}
	if known.Launch != nil && !editing {
		difference := known.Launch.Difference(now, a.opts.Presentable)
		if difference == "" {
			return nil
		}
		a.addPending(name, pendingLaunch{now, difference})
		return fmt.Errorf("how it is started has changed since you agreed to it: %s. To agree, start it in the editor, or run: eca mcp allow %s", difference, visible.Argument(name))
	}
	a.agreeToLaunch(name, now)
	return nil
}

func (a *agreements) agreeToLaunch(name string, now consent.Launch) {
	a.record(name, "how an MCP server is started", func(s *consent.Server) { s.Launch = &now })
}

// spokenVersionAge is how long the recorded protocol version of a server is assumed to be right:
// the program may be replaced under the same name.
const spokenVersionAge = 7 * 24 * time.Hour

func launchSum(s config.MCPServer) string {
	l := launchOf(s)
	parts := append([]string{l.URL, l.Command}, l.Args...)
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		parts = append(parts, l.Env[name])
	}
	return consent.Sum(parts...)
}

// lastVersion implements mcp.Deps.LastVersion.
func (a *agreements) lastVersion(name string, s config.MCPServer) string {
	known, err := a.store.Get(a.key(name))
	if err != nil || known.Spoken == nil || known.Spoken.Launch != launchSum(s) || a.opts.Now().Sub(known.Spoken.At) > spokenVersionAge {
		return "" // the server is asked
	}
	return known.Spoken.Version
}

// saveVersion implements mcp.Deps.SaveVersion.
func (a *agreements) saveVersion(name string, s config.MCPServer, version string) {
	if a.lastVersion(name, s) == version {
		return
	}
	now := &consent.Spoken{Version: version, Launch: launchSum(s), At: a.opts.Now().UTC().Truncate(time.Second)}
	a.record(name, "which version of the protocol an MCP server speaks", func(s *consent.Server) { s.Spoken = now })
}

// editWithAgreement runs an edit that the user requested through eca. The user thereby agrees to how
// the server is started after the edit.
func (a *agreements) editWithAgreement(name string, edit func() error) error {
	a.countEdits(name, 1)
	defer a.countEdits(name, -1)
	err := edit()
	if s, ok := a.opts.Config().MCPServers[name]; ok && err == nil && a.recordsLaunch(name) {
		a.agreeToLaunch(name, launchOf(s))
	}
	return err
}

func (a *agreements) countEdits(name string, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.edits[name] += by; a.edits[name] == 0 {
		delete(a.edits, name)
	}
}

// AllowMCPServer agrees to the current launch of a server and to the current descriptions of its
// tools.
func (sv *Servers) AllowMCPServer(name string) {
	if sv.agreements.agreeToPending(name) {
		sv.manager.Start(name)
	}
	status, _ := sv.manager.Status(name)
	if status.Offer == nil {
		return
	}
	changed := false
	for _, t := range status.Offer.Tools {
		if _, differs := t.Changed(); differs {
			sv.agreements.agreeToTool(name, t.Described())
			changed = true
		}
	}
	if changed {
		sv.manager.Relist(name)
	}
}

// maxDescription limits the recorded part of a description, in bytes.
const maxDescription = 2 << 10

func recordOf(t mcp.Described) consent.Tool {
	return consent.Tool{Sum: consent.Sum(t.Description, string(t.Schema)), Description: shorten.Bytes(t.Description, maxDescription)}
}

// changedTools implements mcp.Deps.Agreed.
func (a *agreements) changedTools(server string, list []mcp.Described) map[string]mcp.AgreedTool {
	key, changed := a.key(server), map[string]mcp.AgreedTool{}
	known, err := a.store.Get(key)
	if err != nil {
		a.opts.Log.Warn("cannot read the recorded tools of an MCP server", "server", server, "err", err)
		for _, t := range list {
			changed[t.Name] = mcp.AgreedTool{}
		}
		return changed
	}
	newTools := map[string]consent.Tool{}
	for _, t := range list {
		now := recordOf(t)
		switch before, recorded := known.Tools[t.Name]; {
		case !recorded:
			newTools[t.Name] = now
		case before.Sum != now.Sum:
			changed[t.Name] = mcp.AgreedTool{Description: before.Description}
		}
	}
	if len(newTools) > 0 {
		a.record(server, "what the tools of an MCP server say", func(s *consent.Server) {
			for name, tool := range newTools {
				if _, recorded := s.Tools[name]; !recorded {
					s.Tools[name] = tool
				}
			}
		})
	}
	return changed
}

func (a *agreements) agreeToTool(server string, t mcp.Described) {
	a.record(server, "what a tool of an MCP server says", func(s *consent.Server) { s.Tools[t.Name] = recordOf(t) })
}

// wasAsked reports whether the user has already been asked about a change, and records that they
// have.
func (a *agreements) wasAsked(changeHash string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.asked[changeHash]
	a.asked[changeHash] = true
	return before
}

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
	"github.com/seed-dec29ce4/eca/mcp"
)

// An MCP server that is not what it was when the user last agreed to it is asked about
// again: how it is started before it is, and its tools before they are used (docs/mcp.md).
// A new server needs no question: the user's own files are the user's decision, and
// a workspace's are trusted as a whole (package daemon/trust).

// agreements are what the user agreed to.
type agreements struct {
	opts  Options
	store *consent.ServerStore

	mu           sync.Mutex // guards what follows
	heldLaunches map[string]heldLaunch
	edits        map[string]int  // edits of ours that are being made
	asked        map[string]bool // sums of changes that the user was asked about
}

// heldLaunch is a start that waits for the user's consent.
type heldLaunch struct {
	launch     consent.Launch
	difference string
}

func newAgreements(o Options) *agreements {
	return &agreements{
		opts: o, store: o.Agreed, heldLaunches: map[string]heldLaunch{}, edits: map[string]int{}, asked: map[string]bool{},
	}
}

// record changes what is recorded of a server; what names it in a log.
func (a *agreements) record(name, what string, change func(*consent.Server)) {
	if err := a.store.Change(a.key(name), change); err != nil {
		a.opts.Log.Warn("it cannot be recorded "+what, "server", name, "err", err)
	}
}

// forget drops what is recorded of a server that was removed.
func (a *agreements) forget(name, key string) {
	if err := a.store.Forget(key); err != nil {
		a.opts.Log.Warn("it is still recorded what a removed MCP server was", "server", name, "err", err)
	}
}

// hold keeps a start for the user to agree to; take removes and returns it.
func (a *agreements) hold(name string, h heldLaunch) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heldLaunches[name] = h
}

func (a *agreements) take(name string) (h heldLaunch, renewing, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h, ok = a.heldLaunches[name]
	delete(a.heldLaunches, name)
	return h, a.edits[name] > 0, ok
}

// agreeToHeld agrees to the start that waits, if there is one.
func (a *agreements) agreeToHeld(name string) bool {
	h, _, ok := a.take(name)
	if ok {
		a.agreeToLaunch(name, h.launch)
	}
	return ok
}

// key names a server in the record: the same name may be another server elsewhere.
func (a *agreements) key(name string) string {
	origin, _ := a.opts.Config().Origin("mcpServers", name)
	return name + " of " + origin.Source
}

// pinsLaunch says whether it is recorded how a server is started: if a file says so that
// is not trusted as a whole. Settings of the editor or the environment come from the
// user's own programs, again at each start.
func (a *agreements) pinsLaunch(name string) bool {
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

// checkLaunch says whether a server may be started as it is configured now; the error
// says what is different.
func (a *agreements) checkLaunch(name string, s config.MCPServer) error {
	if !a.pinsLaunch(name) {
		return nil
	}
	now := launchOf(s)
	_, renewing, _ := a.take(name)
	known, err := a.store.Get(a.key(name))
	if err != nil {
		return err
	}
	if known.Launch != nil && !renewing {
		difference := known.Launch.Difference(now, a.opts.Presentable)
		if difference == "" {
			return nil
		}
		a.hold(name, heldLaunch{now, difference})
		return fmt.Errorf("it is to be started in another way than when you agreed to it: %s. Start the server to agree, or run: eca mcp allow %s", difference, name)
	}
	a.agreeToLaunch(name, now)
	return nil
}

func (a *agreements) agreeToLaunch(name string, now consent.Launch) {
	a.record(name, "how an MCP server is started", func(s *consent.Server) { s.Launch = &now })
}

// spokenAge is how long the version that a server spoke is taken for granted: it may be
// another program by then, under the same name.
const spokenAge = 7 * 24 * time.Hour

func launchSum(s config.MCPServer) string {
	l := launchOf(s)
	parts := append([]string{l.URL, l.Command}, l.Args...)
	for _, name := range slices.Sorted(maps.Keys(l.Env)) {
		parts = append(parts, l.Env[name])
	}
	return consent.Sum(parts...)
}

// spokenVersion implements mcp.Deps.Spoken.
func (a *agreements) spokenVersion(name string, s config.MCPServer) string {
	known, err := a.store.Get(a.key(name))
	if err != nil || known.Spoken == nil || known.Spoken.Launch != launchSum(s) || a.opts.Now().Sub(known.Spoken.At) > spokenAge {
		return "" // it is asked for
	}
	return known.Spoken.Version
}

// keepSpokenVersion implements mcp.Deps.Spoke.
func (a *agreements) keepSpokenVersion(name string, s config.MCPServer, version string) {
	if a.spokenVersion(name, s) == version {
		return
	}
	now := &consent.Spoken{Version: version, Launch: launchSum(s), At: a.opts.Now().UTC().Truncate(time.Second)}
	a.record(name, "which version of the protocol an MCP server speaks", func(s *consent.Server) { s.Spoken = now })
}

// whileRenewing makes an edit of ours, by which the user agrees to how a server is started.
func (a *agreements) whileRenewing(name string, edit func() error) error {
	a.countRenewals(name, 1)
	defer a.countRenewals(name, -1)
	err := edit()
	if s, ok := a.opts.Config().MCPServers[name]; ok && err == nil && a.pinsLaunch(name) {
		a.agreeToLaunch(name, launchOf(s))
	}
	return err
}

func (a *agreements) countRenewals(name string, by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.edits[name] += by; a.edits[name] == 0 {
		delete(a.edits, name)
	}
}

// AllowMCPServer agrees to a server as it is now: how it is started, and what its tools
// say.
func (sv *Servers) AllowMCPServer(name string) {
	if sv.agreements.agreeToHeld(name) {
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

// maxKept is how much of a description is recorded, in bytes.
const maxKept = 2 << 10

func pinOf(t mcp.Described) consent.Tool {
	return consent.Tool{Sum: consent.Sum(t.Description, string(t.Schema)), Description: shorten.Bytes(t.Description, maxKept)}
}

// changedTools implements mcp.Deps.Agreed.
func (a *agreements) changedTools(server string, list []mcp.Described) map[string]mcp.AgreedTool {
	key, changed := a.key(server), map[string]mcp.AgreedTool{}
	known, err := a.store.Get(key)
	if err != nil {
		a.opts.Log.Warn("it is not known what the tools of an MCP server said before", "server", server, "err", err)
		for _, t := range list {
			changed[t.Name] = mcp.AgreedTool{}
		}
		return changed
	}
	fresh := map[string]consent.Tool{}
	for _, t := range list {
		pin := pinOf(t)
		switch before, seen := known.Tools[t.Name]; {
		case !seen:
			fresh[t.Name] = pin
		case before.Sum != pin.Sum:
			changed[t.Name] = mcp.AgreedTool{Description: before.Description}
		}
	}
	if len(fresh) > 0 {
		a.record(server, "what the tools of an MCP server say", func(s *consent.Server) {
			for name, pin := range fresh {
				if _, seen := s.Tools[name]; !seen {
					s.Tools[name] = pin
				}
			}
		})
	}
	return changed
}

func (a *agreements) agreeToTool(server string, t mcp.Described) {
	a.record(server, "what a tool of an MCP server says", func(s *consent.Server) { s.Tools[t.Name] = pinOf(t) })
}

// wasAsked says whether the user was asked about a change, and notes that they are.
func (a *agreements) wasAsked(mark string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.asked[mark]
	a.asked[mark] = true
	return before
}

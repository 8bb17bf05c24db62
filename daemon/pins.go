package daemon

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/pinned"
	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/mcp"
	"github.com/seed-dec29ce4/eca/tools/ask"
)

// An MCP server that is not what it was when the user last agreed to it is asked about
// again: how it is started before it is, and its tools before they are used (docs/mcp.md).
// What is seen for the first time needs no question: the user's own files are the user's
// word, and a workspace's are trusted as wholes (trust.go).

// pinKey names a server in the record: the same name may be another server elsewhere.
func (d *Daemon) pinKey(name string) string {
	origin, _ := d.Config().Origin("mcpServers", name)
	return name + " of " + origin.Source
}

// pinsLaunch says whether it is recorded how a server is started: if a file says so that
// is not trusted as a whole. What the editor or the environment says comes from the user's
// own programs, anew at each start.
func (d *Daemon) pinsLaunch(name string) bool {
	cfg := d.Config()
	for _, key := range []string{"command", "args", "env", "url"} {
		origin, ok := cfg.Origin("mcpServers", name, key)
		if ok && filepath.IsAbs(origin.Source) && !d.workspace.Load().Contains(origin.Source) {
			return true
		}
	}
	return false
}

func launchOf(s config.MCPServer) pinned.Launch {
	l := pinned.Launch{Command: s.Command, Args: s.Args, URL: s.URL}
	for name, value := range s.Env {
		if l.Env == nil {
			l.Env = map[string]string{}
		}
		l.Env[name] = pinned.Sum(name, value)
	}
	return l
}

// agreesToLaunch says whether a server may be started as it is configured now; the error
// says what is different.
func (d *Daemon) agreesToLaunch(name string, s config.MCPServer) error {
	if !d.pinsLaunch(name) {
		return nil
	}
	now := launchOf(s)
	d.pins.mu.Lock()
	renewed := d.pins.renewing[name] > 0
	delete(d.pins.held, name)
	d.pins.mu.Unlock()
	known, err := d.agreed.Get(d.pinKey(name))
	if err != nil {
		return err
	}
	if known.Launch != nil && !renewed {
		difference := known.Launch.Difference(now)
		if difference == "" {
			return nil
		}
		difference = d.Presentable(difference)
		d.pins.mu.Lock()
		d.pins.held[name] = heldLaunch{now, difference}
		d.pins.mu.Unlock()
		return fmt.Errorf("it is to be started in another way than when you agreed to it: %s. Start the server to agree, or run: eca mcp allow %s", difference, name)
	}
	d.agreeToLaunch(name, now)
	return nil
}

func (d *Daemon) agreeToLaunch(name string, now pinned.Launch) {
	if err := d.agreed.Change(d.pinKey(name), func(s *pinned.Server) { s.Launch = &now }); err != nil {
		d.opts.Log.Warn("it can not be recorded how an MCP server is started", "server", name, "err", err)
	}
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
	return pinned.Sum(parts...)
}

// spokenVersion implements mcp.Deps.Spoken.
func (d *Daemon) spokenVersion(name string, s config.MCPServer) string {
	known, err := d.agreed.Get(d.pinKey(name))
	if err != nil || known.Spoken == nil || known.Spoken.Launch != launchSum(s) || d.opts.Now().Sub(known.Spoken.At) > spokenAge {
		return "" // it is asked for
	}
	return known.Spoken.Version
}

// keepSpokenVersion implements mcp.Deps.Spoke.
func (d *Daemon) keepSpokenVersion(name string, s config.MCPServer, version string) {
	if d.spokenVersion(name, s) == version {
		return
	}
	now := &pinned.Spoken{Version: version, Launch: launchSum(s), At: d.opts.Now().UTC().Truncate(time.Second)}
	if err := d.agreed.Change(d.pinKey(name), func(s *pinned.Server) { s.Spoken = now }); err != nil {
		d.opts.Log.Warn("it can not be recorded which version of the protocol an MCP server speaks", "server", name, "err", err)
	}
}

// pins is what waits for the user's word, or has it just now.
type pins struct {
	mu       sync.Mutex // guards what follows
	held     map[string]heldLaunch
	renewing map[string]int // edits of ours that are being made
}

// heldLaunch is a start that waits for the user's word.
type heldLaunch struct {
	launch     pinned.Launch
	difference string
}

// renewing makes an edit of ours, which is the user's word for how a server is started.
func (d *Daemon) renewing(name string, edit func() error) error {
	d.pins.mu.Lock()
	d.pins.renewing[name]++
	d.pins.mu.Unlock()
	err := edit()
	if s, ok := d.Config().MCPServers[name]; ok && err == nil && d.pinsLaunch(name) {
		d.agreeToLaunch(name, launchOf(s))
	}
	d.pins.mu.Lock()
	defer d.pins.mu.Unlock()
	if d.pins.renewing[name]--; d.pins.renewing[name] == 0 {
		delete(d.pins.renewing, name)
	}
	return err
}

// AllowMCPServer agrees to a server as it is now: how it is started, and what its tools
// say.
func (d *Daemon) AllowMCPServer(name string) {
	d.pins.mu.Lock()
	held, ok := d.pins.held[name]
	delete(d.pins.held, name)
	d.pins.mu.Unlock()
	if ok {
		d.agreeToLaunch(name, held.launch)
		d.mcp.Start(name)
	}
	status, _ := d.mcp.Status(name)
	if status.Offer == nil {
		return
	}
	any := false
	for _, t := range status.Offer.Tools {
		if _, changed := t.Changed(); changed {
			d.agreeToTool(name, t.Described())
			any = true
		}
	}
	if any {
		d.mcp.Relist(name)
	}
}

// maxKept is how much of a description is recorded, in bytes.
const maxKept = 2 << 10

func pinOf(t mcp.Described) pinned.Tool {
	return pinned.Tool{Sum: pinned.Sum(t.Description, string(t.Schema)), Description: shorten.Bytes(t.Description, maxKept)}
}

// agreedTools implements mcp.Deps.Agreed.
func (d *Daemon) agreedTools(server string, list []mcp.Described) map[string]mcp.Before {
	key, changed := d.pinKey(server), map[string]mcp.Before{}
	known, err := d.agreed.Get(key)
	if err != nil {
		d.opts.Log.Warn("it is not known what the tools of an MCP server said before", "server", server, "err", err)
		for _, t := range list {
			changed[t.Name] = mcp.Before{}
		}
		return changed
	}
	fresh := map[string]pinned.Tool{}
	for _, t := range list {
		pin := pinOf(t)
		switch before, seen := known.Tools[t.Name]; {
		case !seen:
			fresh[t.Name] = pin
		case before.Sum != pin.Sum:
			changed[t.Name] = mcp.Before{Description: before.Description}
		}
	}
	if len(fresh) > 0 {
		err := d.agreed.Change(key, func(s *pinned.Server) {
			for name, pin := range fresh {
				if _, seen := s.Tools[name]; !seen {
					s.Tools[name] = pin
				}
			}
		})
		if err != nil {
			d.opts.Log.Warn("it can not be recorded what the tools of an MCP server say", "server", server, "err", err)
		}
	}
	return changed
}

func (d *Daemon) agreeToTool(server string, t mcp.Described) {
	if err := d.agreed.Change(d.pinKey(server), func(s *pinned.Server) { s.Tools[t.Name] = pinOf(t) }); err != nil {
		d.opts.Log.Warn("it can not be recorded what a tool of an MCP server says", "server", server, "tool", t.Name, "err", err)
	}
}

// changedServers says of each server what waits for the user's word.
func (d *Daemon) changedServers() map[string]string {
	out := map[string]string{}
	d.pins.mu.Lock()
	for name, h := range d.pins.held {
		out[name] = "It is to be started in another way: " + h.difference + "."
	}
	d.pins.mu.Unlock()
	for _, status := range d.mcp.Statuses() {
		if status.Offer == nil {
			continue
		}
		var lines []string
		for _, t := range status.Offer.Tools {
			before, changed := t.Changed()
			if !changed {
				continue
			}
			line := "- `" + t.Spec().Name + "`: other parameters"
			if now := t.Described().Description; now != before.Description {
				line = fmt.Sprintf("- `%s` said: %s\n  and says now: %s", t.Spec().Name, oneParagraph(before.Description), oneParagraph(now))
			}
			lines = append(lines, line)
		}
		if more := len(lines) - maxListed; more > 0 {
			lines = append(lines[:maxListed], fmt.Sprintf("- and %d more", more))
		}
		if len(lines) > 0 {
			out[status.Name] = "Its tools say something else about themselves:\n" + strings.Join(lines, "\n")
		}
	}
	return out
}

// oneParagraph is a text of a server in a list, not too long.
func oneParagraph(text string) string {
	const limit = 600
	return "“" + shorten.Bytes(strings.Join(strings.Fields(text), " "), limit) + "”"
}

// agreeLabel is the answer that agrees.
const agreeLabel = "Allow it"

// askChanged asks the user, in a chat, about servers that are not what they were. Each
// change is asked about once; the chat goes on meanwhile with what was agreed to.
func (d *Daemon) askChanged(ctx context.Context, chatID string, questions ask.Client) {
	changes := d.changedServers()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		mark := pinned.Sum(name, changes[name])
		d.mu.Lock()
		before := d.asked[mark]
		d.asked[mark] = true
		d.mu.Unlock()
		if before {
			continue
		}
		answer, err := questions.Ask(ctx, ask.Question{
			ChatID: chatID, Text: fmt.Sprintf("The MCP server `%s` is not what it was when you agreed to it. %s", name, changes[name]),
			Options: []ask.Option{
				{Label: agreeLabel, Description: "It is used as it is now"},
				{Label: "Not now", Description: "Each call of what changed is asked about; another start has to be allowed first"},
			},
		})
		switch {
		case err != nil:
			if ctx.Err() == nil {
				d.opts.Log.Warn("the user could not be asked about an MCP server", "server", name, "err", err)
			}
			return
		case !answer.Cancelled && answer.Text == agreeLabel && d.changedServers()[name] == changes[name]:
			d.AllowMCPServer(name)
		}
	}
}

// changedNotices tell users who can not be asked which servers are not what they were.
func (d *Daemon) changedNotices() []string {
	if c := d.client.Load(); c == nil || c.questions != nil {
		return nil
	}
	var out []string
	changes := d.changedServers()
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		out = append(out, fmt.Sprintf("The MCP server %s is not what it was when you agreed to it. %s\nCalls of what changed are asked about. `eca mcp allow %s` in a terminal agrees to all of it.", name, changes[name], name))
	}
	return out
}

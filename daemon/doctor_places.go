package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/keychain"
	"github.com/seed-dec29ce4/eca/mcp"
)

// checkState says whether chats, keys and approvals can be stored.
func (d *Daemon) checkState(context.Context) []doctor.Finding {
	var out []doctor.Finding
	for name, dir := range map[string]string{"state directory": d.opts.StateDir, "cache directory": d.opts.CacheDir} {
		status := doctor.OK
		text := dir + " can be written"
		if err := store.Writable(dir); err != nil {
			status, text = doctor.Problem, fmt.Sprintf("%v: chats are not kept; %s", err, store.Remedy(err, "XDG_STATE_HOME"))
			if dir == d.opts.CacheDir {
				status, text = doctor.Warning, fmt.Sprintf("%v: what could be kept is made again each time; %s", err, store.Remedy(err, "XDG_CACHE_HOME"))
			}
		}
		out = append(out, finding(status, name, "%s", text))
	}
	slices.SortFunc(out, func(a, b doctor.Finding) int { return strings.Compare(b.Subject, a.Subject) })
	return out
}

// checkKeychain says whether the system's keychain takes secrets.
func (d *Daemon) checkKeychain(context.Context) []doctor.Finding {
	if d.opts.Keychain == nil {
		return []doctor.Finding{finding(doctor.Note, "keychain", "not used")}
	}
	switch _, err := d.opts.Keychain.Get("doctor"); {
	case err == nil, errors.Is(err, keychain.ErrNone):
		return []doctor.Finding{finding(doctor.OK, "keychain", "answers")}
	case errors.Is(err, keychain.ErrAbsent) && d.Config().Auth.Store != "keychain":
		return []doctor.Finding{finding(doctor.Note, "keychain", "%v; logins are kept in %s", err, d.creds.Load().Path())}
	default:
		return []doctor.Finding{finding(doctor.Warning, "keychain", "%v", err)}
	}
}

const serversSection = "MCP servers"

// serverChecks has a check for each MCP server. One that does not run is started, unless
// nobody is to be asked.
func (d *Daemon) serverChecks(offline bool) []doctor.Check {
	cfg := d.Config()
	var out []doctor.Check
	for _, name := range slices.Sorted(maps.Keys(cfg.MCPServers)) {
		subject := "MCP server " + name
		out = append(out, doctor.Check{Section: serversSection, Subject: subject, Run: func(ctx context.Context) []doctor.Finding {
			if cfg.MCPServers[name].Disabled {
				return []doctor.Finding{finding(doctor.Note, subject, "disabled")}
			}
			s, _ := d.mcp.Status(name)
			if s.State != mcp.Running && offline {
				return []doctor.Finding{finding(doctor.Note, subject, "not started")}
			}
			if s.State != mcp.Running {
				var err error
				if s, err = d.TryMCPServer(ctx, name); err != nil && ctx.Err() != nil {
					return nil // the report says that there was no answer
				} else if err != nil {
					return []doctor.Finding{finding(doctor.Problem, subject, "%s", d.Presentable(err.Error()))}
				}
			}
			if s.State != mcp.Running {
				return []doctor.Finding{finding(doctor.Problem, subject, "%s: %s", s.State, d.Presentable(s.Reason))}
			}
			tools := 0
			if s.Offer != nil {
				tools = len(s.Offer.Tools)
			}
			return []doctor.Finding{finding(doctor.OK, subject, "runs and offers %s", counted(tools, "tool"))}
		}})
	}
	return out
}

package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/chat/store"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/esrp/journal"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/keychain"
	"github.com/seed-dec29ce4/eca/mcp"
)

// checkState reports whether the state and the cache directory can be written.
func (k *checkup) checkState(context.Context) []doctor.Finding {
	var out []doctor.Finding
	for name, dir := range map[string]string{"state directory": k.opts.StateDir, "cache directory": k.opts.CacheDir} {
		status := doctor.OK
		text := dir + " can be written"
		if err := store.Writable(dir); err != nil {
			status, text = doctor.Problem, fmt.Sprintf("%v: chats are not kept; %s", err, store.Remedy(err, "XDG_STATE_HOME"))
			if dir == k.opts.CacheDir {
				status, text = doctor.Warning, fmt.Sprintf("%v: nothing is cached; %s", err, store.Remedy(err, "XDG_CACHE_HOME"))
			}
		}
		out = append(out, doctor.Found(status, name, "%s", text))
	}
	slices.SortStableFunc(out, func(a, b doctor.Finding) int { return strings.Compare(b.Subject, a.Subject) })
	return out
}

// checkJournal reports whether the record of calls is complete.
func (k *checkup) checkJournal(ctx context.Context) []doctor.Finding {
	checked := make(chan error, 1)
	go func() {
		chain := journal.At(k.opts.StateDir)
		defer chain.Close()
		_, err := chain.Verify()
		checked <- err
	}()
	select {
	case <-ctx.Done():
		return []doctor.Finding{doctor.Found(doctor.Note, "journal", "too large to check now; run `esrp journal verify`")}
	case err := <-checked:
		if err != nil {
			return []doctor.Finding{doctor.Found(doctor.Problem, "journal", "%s: %v", filepath.Join(k.opts.StateDir, "journal"), damagedJournal(err))}
		}
	}
	return []doctor.Finding{doctor.Found(doctor.OK, "journal", "the record of calls is complete")}
}

// checkKeychain reports whether the system's keychain accepts secrets.
func (k *checkup) checkKeychain(context.Context) []doctor.Finding {
	if k.opts.Keychain == nil {
		return []doctor.Finding{doctor.Found(doctor.Note, "keychain", "not used")}
	}
	switch _, err := k.opts.Keychain.Get("doctor"); {
	case err == nil, errors.Is(err, keychain.ErrNone):
		return []doctor.Finding{doctor.Found(doctor.OK, "keychain", "answers")}
	case errors.Is(err, keychain.ErrAbsent) && k.s.config.Auth.Store != "keychain":
		return []doctor.Finding{doctor.Found(doctor.Note, "keychain", "%v; logins are kept in %s", err, k.s.storage.creds.Path())}
	default:
		return []doctor.Finding{doctor.Found(doctor.Warning, "keychain", "%v", err)}
	}
}

const serversSection = "MCP servers"

// serverChecks returns a check for each MCP server. A server that is not running is started for its
// check, unless offline is set.
func (k *checkup) serverChecks(offline bool) []doctor.Check {
	cfg := k.s.config
	var checks []doctor.Check
	for _, name := range slices.Sorted(maps.Keys(cfg.MCPServers)) {
		subject, limit := "MCP server "+name, doctor.CheckTimeout
		if cfg.MCPServers[name].Command != "" {
			limit = doctor.ProgramStartTimeout
		}
		checks = append(checks, doctor.Check{Section: serversSection, Subject: subject, Limit: limit, Run: func(ctx context.Context) []doctor.Finding {
			return k.checkServer(ctx, name, subject, offline)
		}})
	}
	return checks
}

// checkServer checks one MCP server. If ctx ends first, it returns nil: the report says that there was
// no answer.
func (k *checkup) checkServer(ctx context.Context, name, subject string, offline bool) []doctor.Finding {
	server := k.s.config.MCPServers[name]
	if server.Disabled {
		return []doctor.Finding{doctor.Found(doctor.Note, subject, "disabled")}
	}
	if err := config.CheckTransport(server.Command, server.URL); err != nil {
		return []doctor.Finding{doctor.Found(doctor.Problem, subject, "%v", err)}
	}
	status, _ := k.MCP().Status(name)
	if status.State != mcp.Running && offline {
		return []doctor.Finding{doctor.Found(doctor.Note, subject, "not started")}
	}
	if status.State != mcp.Running {
		var err error
		if status, err = k.TryMCPServer(ctx, name); err != nil && ctx.Err() != nil {
			return nil
		} else if err != nil {
			return []doctor.Finding{doctor.Found(doctor.Problem, subject, "%s", k.Presentable(err.Error()))}
		}
	}
	if status.State != mcp.Running {
		return []doctor.Finding{doctor.Found(doctor.Problem, subject, "%s: %s", status.State, k.Presentable(k.FailureReason(status)))}
	}
	tools := 0
	if status.Offer != nil {
		tools = len(status.Offer.Tools)
		if unusable := status.Offer.LeftOut; len(unusable) > 0 {
			return []doctor.Finding{doctor.Found(doctor.Warning, subject, "runs and offers %s, but %d cannot be used: %s", doctor.Count(tools, "tool"), len(unusable), k.Presentable(strings.Join(unusable, "; ")))}
		}
	}
	return []doctor.Finding{doctor.Found(doctor.OK, subject, "runs and offers %s", doctor.Count(tools, "tool"))}
}

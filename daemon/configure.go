package daemon

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/seed-dec29ce4/eca/daemon/changes"
	"github.com/seed-dec29ce4/eca/internal/watch"
)

// Configure loads the configuration for a client's options and workspace folders. It reads a few
// files, and waits up to maxCommandWait for the commands in the configuration. It does not wait for the
// network: changed MCP servers start in the background. Running turns keep their snapshot.
func (d *Daemon) Configure(initOptions json.RawMessage, roots []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initOptions, d.folders = initOptions, roots
	d.resumeSearches(roots)
	var warm sync.WaitGroup
	warm.Go(d.WarmCatalog) // in parallel, because a starting client waits for both
	old := d.current()
	in := d.readLocked(old.inputs)
	warm.Wait()
	if old.extensions != nil {
		in, _ = d.extendLocked(in)
	}
	d.publishLocked(d.newSnapshot(in), true)
	d.changes.Publish(changes.Workspace)
}

// SetRoots configures the daemon for other workspace folders, with the client's current options.
func (d *Daemon) SetRoots(roots []string) {
	d.mu.Lock()
	options := d.initOptions
	d.mu.Unlock()
	d.Configure(options, roots)
}

// reload reads the configuration and the credentials again. It reports whether anything changed.
func (d *Daemon) reload() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	in, extended := d.extendLocked(d.readLocked(d.current().inputs))
	changed := d.publishLocked(d.newSnapshot(in), extended)
	if extended {
		d.changes.Publish(changes.Extensions)
	}
	return changed
}

// publishLocked makes a snapshot the current one. applyAll is set if anything may differ: another
// client, other folders, other extensions. Without applyAll, publishLocked reports whether values,
// findings, trust, credentials or certificates differ from before; with applyAll, it returns true.
func (d *Daemon) publishLocked(next *Snapshot, applyAll bool) (changed bool) {
	cfg := next.config
	otherNetwork := d.network.Use(next.identity)
	old := d.snapshot.Swap(next)
	// This comes after Swap, because the log removes the secrets of the current snapshot, and a cause
	// may contain one.
	for _, p := range cfg.Problems {
		if old.config == nil || !slices.Contains(old.config.Problems, p) {
			d.opts.Log.Warn("configuration problem", "at", p.Place(), "cause", p.Cause)
		}
	}
	d.ApplyServers(cfg)
	d.exporter.Use(next.telemetry)
	if cfg.Conformance().FixedOrder {
		d.RefreshCatalog(context.Background()) // only reads a file
	}
	if !applyAll && reflect.DeepEqual(old.claudeHooks, next.claudeHooks) && reflect.DeepEqual(old.config.Config, cfg.Config) {
		return otherNetwork || !reflect.DeepEqual(old.config.Units, cfg.Units) || !slices.Equal(old.config.Findings(), cfg.Findings()) ||
			!reflect.DeepEqual(old.logins, next.logins)
	}
	if old.config != nil && !slices.Equal(old.roots(), next.roots()) {
		d.MCP().RootsChanged()
	}
	d.maps.index.Forget(next.roots())
	return true
}

// Watch applies changes of configuration and credential files until ctx ends, including changes
// made since Configure. It calls changed after each one, and when the models of a changed provider
// are known; changed must not block. If the system cannot watch files, a warning in the log tells the
// user to restart eca after changes. Changes of extensions and plugins apply from the next turn on even
// then (refreshExtensions). Watch may be called several times; the callers share one loop.
func (d *Daemon) Watch(ctx context.Context, changed func()) {
	leave := d.watchers.join(changed, d.watch)
	<-ctx.Done()
	leave()
}

// watch does the work of Watch once for all callers.
func (d *Daemon) watch(ctx context.Context, changed func()) {
	w := watch.New(func(err error) {
		d.opts.Log.Warn("cannot watch the configuration files; restart eca after changes", "err", err)
	})
	defer w.Close()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { d.changes.Relay(ctx, w.Changed, changes.Files) })
	background.Go(func() { d.changes.Relay(ctx, d.dynamic.Finished(), changes.Commands) })
	d.refreshExtensions()
	var watched []string
	absenceTimer := false
	for first := true; ; first = false {
		if files := d.filesToWatch(); first || !slices.Equal(files, watched) {
			w.Set(files)
			watched = files
		}
		if !absenceTimer && d.absences.pending() {
			absenceTimer = true
			background.Go(func() {
				_ = d.opts.Sleep(ctx, absenceGrace) // fails if ctx ends
				d.changes.Publish(changes.Absence)
			})
		}
		topics, err := d.changes.Next(ctx)
		if err != nil {
			return
		}
		if slices.Contains(topics, changes.Absence) {
			absenceTimer = false
		}
		shown, credentials := d.applyChanges(topics)
		if shown {
			changed()
		}
		if credentials {
			background.Go(func() {
				d.ListModels(ctx)
				d.changes.Publish(changes.Models)
			})
		}
	}
}

// applyChanges applies published changes. It reports whether clients see a difference, and whether
// providers have to be asked for their models again.
func (d *Daemon) applyChanges(topics []changes.Topic) (shown, ask bool) {
	read := false
	for _, t := range topics {
		switch t {
		case changes.Workspace: // only the set of files to watch may differ
		case changes.Models, changes.Extensions, changes.Servers, changes.Notices:
			shown = true
		case changes.Credentials, changes.Trust, changes.Configuration:
			shown, ask = true, true
		case changes.Commands: // a prompt may have applied the result already
			d.reload()
			shown, ask = true, true
		case changes.Files, changes.Absence: // internal/watch reports a burst of events once, because saving takes several steps
			if !read {
				changed := d.reload()
				read, shown, ask = true, shown || changed, ask || changed
			}
		}
	}
	return shown, ask
}

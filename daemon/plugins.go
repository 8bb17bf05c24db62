package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/chat/command"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/plugins"
)

// pluginInputs returns the plugins section of a configuration.
func pluginInputs(cfg *config.Loaded) plugins.Inputs {
	var in plugins.Inputs
	if cfg.PureConfig {
		return in
	}
	in.Install = cfg.Plugins.Install
	for _, name := range slices.Sorted(maps.Keys(cfg.Plugins.Sources)) {
		src := cfg.Plugins.Sources[name]
		origin, _ := cfg.Origin("plugins", name, "source")
		location := src.Source
		if !plugins.IsGit(location) {
			location = config.UserPath(location, origin)
		}
		in.Sources = append(in.Sources, plugins.Source{Name: name, Location: location, Commit: src.Commit, Builtin: origin.IsDefault()})
	}
	return in
}

// pluginProblem returns a problem with its position in the configuration. Plugins report a mistake in
// the section plugins with the key as its Source.
func pluginProblem(cfg *config.Loaded, p config.Problem) config.Problem {
	if rest, ok := strings.CutPrefix(p.Source, "plugins."); ok {
		if o, known := cfg.Origin("plugins", rest); known {
			return config.Problem{Origin: o, Cause: p.Source + ": " + p.Cause}
		}
	}
	return p
}

// SyncPlugins fetches missing plugin repositories and applies their contents. It may take minutes.
// A failed fetch becomes a problem of the configuration.
func (d *Daemon) SyncPlugins(ctx context.Context) {
	d.awaitCommands(ctx) // a source may be the output of a command
	d.refreshExtensions()
	var last []plugins.Source
	for ctx.Err() == nil {
		// A fetched source may need others. Each is tried once.
		missing := d.current().plugins.Missing
		if len(missing) == 0 || slices.Equal(missing, last) {
			return
		}
		last = missing
		_ = d.fetchPlugins(ctx, missing) // errors are among the problems
		d.refreshExtensions()
	}
}

// fetchPlugins fetches sources concurrently and returns the joined errors.
func (s *services) fetchPlugins(ctx context.Context, sources []plugins.Source) error {
	errs := make([]error, len(sources))
	var all sync.WaitGroup
	for i, src := range sources {
		all.Go(func() { _, errs[i] = s.plugins.Fetch(ctx, src) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// pluginManager manages plugins for commands. It implements command.Plugins.
type pluginManager struct{ d *Daemon }

var _ command.Plugins = pluginManager{}

// Plugins returns the plugin operations for slash commands and the command line.
func (d *Daemon) Plugins() command.Plugins { return pluginManager{d} }

// Installed implements command.Plugins.
func (p pluginManager) Installed() *plugins.Set {
	p.d.refreshExtensions()
	return p.d.current().plugins
}

// Problems implements command.Plugins.
func (p pluginManager) Problems() []config.Problem { return p.d.Config().Problems }

// Sources implements command.Plugins.
func (p pluginManager) Sources() []plugins.State {
	return p.d.plugins.Sources(pluginInputs(p.d.Config()))
}

// Update implements command.Plugins: it fetches the newest commit of a source's repository and
// applies it.
func (p pluginManager) Update(ctx context.Context, name string) (before, after string, err error) {
	src, err := p.source(name)
	if err != nil {
		return "", "", err
	}
	if src.Commit != "" {
		return "", "", fmt.Errorf("the source %s is pinned to the commit %s: change plugins.%s.commit in %s", name, src.Commit, name, p.d.Config().Owner("plugins", name))
	}
	for _, s := range p.Sources() {
		if s.Name == name {
			before = s.At
		}
	}
	if after, err = p.d.plugins.Fetch(ctx, src); err != nil {
		return "", "", err
	}
	p.d.SyncPlugins(ctx)
	// The previous version may be in use by another eca's turn.
	keep := []string{before}
	for _, s := range p.Sources() {
		keep = append(keep, s.Commit)
	}
	if err := p.d.plugins.RemoveReplaced(src, keep); err != nil {
		p.d.opts.Log.Warn("cannot remove old plugins", "source", name, "err", err)
	}
	return before, after, nil
}

func (p pluginManager) source(name string) (plugins.Source, error) {
	in := pluginInputs(p.d.Config())
	names := make([]string, len(in.Sources))
	for i, src := range in.Sources {
		if src.Name == name {
			return src, nil
		}
		names[i] = src.Name
	}
	return plugins.Source{}, fmt.Errorf("there is no plugin source %q; sources: %s", name, strings.Join(names, ", "))
}

// Fetch implements command.Plugins: it fetches a source that is missing.
func (p pluginManager) Fetch(ctx context.Context, name string) error {
	src, err := p.source(name)
	if err != nil {
		return err
	}
	for _, s := range p.Sources() {
		if s.Name == name && s.Git && s.At == "" {
			_, err = p.d.plugins.Fetch(ctx, src)
		}
	}
	return err
}

// Install implements command.Plugins: it adds a plugin to the user's configuration, and
// the contents of the plugin are in effect when the function returns.
func (p pluginManager) Install(ctx context.Context, ref string) (plugins.Offer, error) {
	d := p.d
	d.awaitCommands(ctx)
	found, err := p.find(ctx, ref)
	if err != nil {
		return plugins.Offer{}, err
	}
	if len(found) > 1 {
		names := make([]string, len(found))
		for i, f := range found {
			names[i] = f.Name + "@" + f.Source
		}
		return plugins.Offer{}, fmt.Errorf("several sources have a plugin %s; choose one: %s", ref, strings.Join(names, ", "))
	}
	offer := found[0]
	id := offer.Name + "@" + offer.Source
	install := d.Config().Plugins.Install
	if slices.Contains(install, id) || slices.Contains(install, offer.Name) {
		return plugins.Offer{}, fmt.Errorf("%s is installed already", id)
	}
	if err := d.edits.Edit(d.Config().Owner("plugins", "install"), config.Set(append(slices.Clone(install), id), "plugins", "install")); err != nil {
		return plugins.Offer{}, err
	}
	if !slices.Contains(d.Config().Plugins.Install, id) {
		origin, _ := d.Config().Origin("plugins", "install")
		return plugins.Offer{}, fmt.Errorf("plugins.install is set in %s, which takes precedence; add %s there", origin, id)
	}
	d.SyncPlugins(ctx)
	return offer, ctx.Err()
}

// find returns the sources that have a plugin. It fetches sources that it has to search.
func (p pluginManager) find(ctx context.Context, ref string) ([]plugins.Offer, error) {
	for ctx.Err() == nil {
		found, err := p.d.plugins.Find(pluginInputs(p.d.Config()), ref)
		var unfetched *plugins.UnfetchedError
		if !errors.As(err, &unfetched) {
			return found, err
		}
		if err := p.d.fetchPlugins(ctx, unfetched.Sources); err != nil {
			return nil, fmt.Errorf("no source that is available has a plugin %s, and %w", ref, err)
		}
	}
	return nil, context.Cause(ctx)
}

// Uninstall implements command.Plugins: it removes a plugin from the configuration; the plugin is
// no longer in effect when the function returns. A name without a source matches plugins of all
// sources. It returns the removed entries.
func (p pluginManager) Uninstall(ref string) ([]string, error) {
	d := p.d
	install := d.Config().Plugins.Install
	var removed, rest []string
	for _, entry := range install {
		if name, _, _ := strings.Cut(entry, "@"); entry == ref || name == ref {
			removed = append(removed, entry)
		} else {
			rest = append(rest, entry)
		}
	}
	if len(removed) == 0 {
		return nil, p.notInstalled(ref)
	}
	if rest == nil {
		rest = []string{}
	}
	if err := d.edits.Edit(d.Config().Owner("plugins", "install"), config.Set(rest, "plugins", "install")); err != nil {
		return nil, err
	}
	if slices.Contains(d.Config().Plugins.Install, removed[0]) {
		origin, _ := d.Config().Origin("plugins", "install")
		return nil, fmt.Errorf("plugins.install is set in %s, which takes precedence; remove %s there", origin, removed[0])
	}
	return removed, nil
}

// notInstalled returns an error that says why a plugin cannot be uninstalled.
func (p pluginManager) notInstalled(ref string) error {
	for _, loaded := range p.Installed().Installed() {
		switch {
		case loaded.Name != ref && loaded.ID() != ref:
		case loaded.NeededBy != "":
			return fmt.Errorf("%s was not installed by you; %s needs it", loaded.ID(), loaded.NeededBy)
		default:
			return fmt.Errorf("%s is installed as %s", ref, loaded.Name)
		}
	}
	return fmt.Errorf("there is no plugin %q installed", ref)
}

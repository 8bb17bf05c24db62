package daemon

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/seed-dec29ce4/eca/auth"
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/egress"
	"github.com/seed-dec29ce4/eca/internal/watch"
	"github.com/seed-dec29ce4/eca/llm/catalog"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/permission"
	"github.com/seed-dec29ce4/eca/workspace"
)

// Configure loads the configuration for a client's options and workspace folders.
// It reads a few files and uses no network. Turns that run keep what they had.
func (d *Daemon) Configure(initOptions json.RawMessage, roots []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.initOptions, d.roots = initOptions, roots
	var warm sync.WaitGroup
	warm.Go(d.models.catalog.Warm) // a client that starts waits for both
	d.loadLocked(true)
	warm.Wait()
	if d.set.Load() != nil {
		d.extendLocked()
	}
	select {
	case d.reconfigured <- struct{}{}:
	default:
	}
}

// SetRoots configures for other workspace folders, with the client's options as they
// were.
func (d *Daemon) SetRoots(roots []string) {
	d.mu.Lock()
	options := d.initOptions
	d.mu.Unlock()
	d.Configure(options, roots)
}

// reload reads the configuration and the credentials again. It reports whether anything
// is different.
func (d *Daemon) reload() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	changed := d.loadLocked(false)
	d.extendLocked()
	return changed
}

// loadLocked reads the configuration and puts it into effect; always if rebuild is set,
// as for another client, else if a value differs. It reports whether values, problems
// or credentials are others than before.
func (d *Daemon) loadLocked(rebuild bool) (changed bool) {
	ws, old := workspace.New(d.roots...), d.config.Load()
	cfg := d.readLocked(ws, old)
	policy := d.newPolicy(cfg, ws)
	claude := d.claude
	userHooks := d.newHooks(cfg, ws.Roots())
	rebuild = rebuild || !reflect.DeepEqual(claude, d.claude)
	rules := variantRules(cfg)
	cfg.Problems = append(cfg.Problems, badSandboxLists(cfg)...)
	cfg.Problems = append(cfg.Problems, badRetryRules(cfg)...)
	cfg.Problems = append(cfg.Problems, badHosts(cfg)...)
	cfg.Problems = append(cfg.Problems, d.badCustomTools(cfg)...)
	cfg.Problems = append(cfg.Problems, d.badToolNames(cfg)...)
	otherNetwork := d.useCertificates(cfg)
	if cfg.Env == config.EnvTest {
		// Suites that compare traffic keep themselves apart by the cache folder alone.
		d.keepStateIn(filepath.Join(d.opts.CacheDir, "state"))
	}
	before := d.entered
	d.useCredentialsLocked(cfg)
	d.config.Store(cfg)
	for _, p := range cfg.Problems { // logs leave out the secrets of the configuration in effect
		if old == nil || !slices.Contains(old.Problems, p) {
			d.opts.Log.Warn("configuration problem", "at", p.Origin.String(), "cause", p.Cause)
		}
	}
	d.models.configure(cfg, rules)
	d.mcp.Apply(serverSettings(cfg.Config), cfg.MCPServers)
	d.retryLogins()
	if cfg.Env == config.EnvTest {
		d.models.refreshCatalog(context.Background()) // reads the file that suites put there, no more
	}
	if !rebuild && reflect.DeepEqual(old.Config, cfg.Config) {
		return otherNetwork || !reflect.DeepEqual(old.Units, cfg.Units) || !slices.Equal(old.Problems, cfg.Problems) || !reflect.DeepEqual(before, d.entered)
	}
	if before := d.workspace.Swap(ws); before != nil && !slices.Equal(before.Roots(), ws.Roots()) {
		d.mcp.RootsChanged()
	}
	d.maps.index.Forget(ws.Roots())
	d.policy.Store(policy)
	d.hooks.Store(userHooks)
	asked, set := *d.client.Load(), d.set.Load()
	registry := sync.OnceValue(func() *tools.Registry { return d.nativeTools(cfg.Config, set, asked) })
	d.registry.Store(&registry)
	return true
}

// readLocked reads the configuration, with what is wrong in it and in all that adds to it.
func (d *Daemon) readLocked(ws *workspace.Workspace, old *config.Loaded) *config.Loaded {
	var unreadable error
	d.trust, unreadable = d.record.Read()
	cfg := config.Load(config.Inputs{
		InitOptions: d.initOptions,
		Getenv:      d.opts.Getenv,
		ConfigFile:  d.opts.ConfigFile,
		ConfigHome:  config.Home(d.opts.Getenv),
		Roots:       ws.Roots(),
		Fragments:   d.set.Load().Fragments(),

		PluginLayers: d.plugged.Load().Configuration(),
		Previous:     old,
		Gone:         d.absent.gone,
		Commands:     d.dynamic,
		Patience:     patience,
		ToolText:     d.toolText,
		Trusts:       d.trustsLocked,
		Unasked:      d.opts.Unasked,
	})
	if unreadable != nil {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: d.record.Path()}, Cause: unreadable.Error()})
	}
	for _, p := range d.set.Load().Wrong() {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: p.Path, Line: p.Line}, Cause: p.Cause})
	}
	for _, p := range d.plugged.Load().Wrong() {
		cfg.Problems = append(cfg.Problems, pluginProblem(cfg, p))
	}
	return cfg
}

// newPolicy decides about calls as the configuration says; what is wrong with that is added
// to its problems.
func (d *Daemon) newPolicy(cfg *config.Loaded, ws *workspace.Workspace) *permission.Policy {
	own := workspace.New(d.outputs.Dir(), d.jobs.Dir())
	contains := func(real string) bool { return ws.ContainsResolved(real) || own.ContainsResolved(real) }
	policy, errs := permission.New(cfg.Config, permission.Options{
		Contains: contains, Memory: d.memory, Sandbox: d.promises(cfg.Config), Children: d.children,
		Getenv:    d.opts.Getenv,
		Bounds:    func(call tools.Call) *event.Sandbox { return d.shownBounds(cfg, call) },
		Protected: []string{config.Home(d.opts.Getenv), d.opts.StateDir},
	})
	slices.SortFunc(errs, func(a, b *permission.RuleError) int { return strings.Compare(a.Error(), b.Error()) })
	for _, err := range errs {
		cfg.Problems = append(cfg.Problems, cfg.Problem(append(rulePath(err.Rule), err.Path...), "%v", err))
	}
	return policy
}

// variantRules are the user's variants of models; what is wrong with them is added to the
// problems.
func variantRules(cfg *config.Loaded) *catalog.Variants {
	rules, bad := catalog.NewVariants(cfg.VariantsByModel)
	for _, pattern := range slices.Sorted(maps.Keys(bad)) {
		cfg.Problems = append(cfg.Problems, cfg.Problem([]string{"variantsByModel", pattern}, "variantsByModel: %q is not a valid pattern: %v", pattern, bad[pattern]))
	}
	return rules
}

// badSandboxLists finds what is not a host or a port in the lists of the sandbox. Such entries do
// nothing.
func badSandboxLists(cfg *config.Loaded) (out []config.Problem) {
	problem := func(cause error, path ...string) {
		origin, _ := cfg.Origin(path...)
		out = append(out, config.Problem{Origin: origin, Cause: fmt.Sprintf("%s: %v; it is ignored", strings.Join(path, "."), cause)})
	}
	for _, list := range []struct {
		path  []string
		hosts []string
	}{{[]string{"toolCall", "sandboxHosts"}, cfg.ToolCall.SandboxHosts}, {[]string{"toolCall", "sandboxNetwork", "allow"}, cfg.ToolCall.SandboxNetwork.Allow}} {
		for _, host := range list.hosts {
			if _, err := egress.NewHosts([]string{host}); err != nil {
				problem(err, list.path...)
			}
		}
	}
	for _, port := range cfg.ToolCall.SandboxPorts {
		switch {
		case port == egress.Port:
			problem(fmt.Errorf("%d is the port of eca's own proxy", port), "toolCall", "sandboxPorts")
		case !isSandboxPort(port):
			problem(fmt.Errorf("%d is not a port (1 to 65535)", port), "toolCall", "sandboxPorts")
		}
	}
	return out
}

// useCredentialsLocked keeps credentials where the configuration wants them, and takes over
// what others stored; what is wrong with them is added to the problems.
func (d *Daemon) useCredentialsLocked(cfg *config.Loaded) {
	creds, served := d.creds.Load(), d.servedCreds.Load()
	switch place := auth.Place(cfg.Auth.Store); place {
	case "", auth.Auto, auth.InKeychain, auth.InFile:
		creds.Keep(place)
		served.Keep(place)
	default:
		origin, _ := cfg.Origin("auth", "store")
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: origin, Cause: fmt.Sprintf("auth.store must be auto, keychain or file, not %.64q", place)})
	}
	var err error
	if d.entered, err = creds.All(); err != nil {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: creds.Path()}, Cause: err.Error()})
	}
	if _, err := served.All(); err != nil {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: served.Path()}, Cause: err.Error()})
	}
}

// Watch puts changes of the configuration's and the credentials' files into effect until
// ctx ends, from those since Configure on. It calls changed after each, and when the
// models of a changed provider are known; changed must not wait. Where the system can not
// watch files, that is logged, and they count as they were.
func (d *Daemon) Watch(ctx context.Context, changed func()) {
	w := watch.New(func(err error) {
		d.opts.Log.Warn("changes of the configuration need a restart", "err", err)
	})
	defer w.Close()
	var syncs sync.WaitGroup
	defer syncs.Wait()
	synced := make(chan struct{}, 1)
	take := func() {
		changed()
		syncs.Go(func() {
			d.models.sync(ctx)
			select {
			case synced <- struct{}{}:
			default:
			}
		})
	}
	waited, waiting := make(chan struct{}, 1), false // for a file to come back
	d.refreshExtensions()
	var watched []string
	for first := true; ; first = false {
		if files := d.watched(); first || !slices.Equal(files, watched) {
			w.Set(files)
			watched = files
		}
		if !waiting && d.absent.pending() {
			waiting = true
			syncs.Go(func() {
				_ = d.opts.Sleep(ctx, absenceGrace) // fails if ctx ends
				waited <- struct{}{}
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-d.reconfigured: // there may be other files
		case <-synced:
			changed()
		case <-d.models.partly:
			changed()
		case <-d.loginDone:
			take()
		case <-d.trusted:
			take()
		case <-d.dynamic.Finished(): // a prompt may have taken the result already
			d.reload()
			take()
		case <-d.extended:
			changed()
		case <-d.served:
			changed()
		case <-w.Changed: // files are read when they have settled only: saving takes several steps
			if d.reload() {
				take()
			}
		case <-waited:
			waiting = false
			if d.reload() {
				take()
			}
		}
	}
}

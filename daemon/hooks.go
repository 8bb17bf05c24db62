package daemon

import (
	"cmp"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// newHooks returns the hooks of a configuration, and adds what is wrong with them to its
// problems.
func (d *Daemon) newHooks(cfg *config.Loaded, roots []string) *hooks.Set {
	defs := hooks.FromConfig(cfg)
	var broken []hooks.Problem
	before := d.claude
	d.claude = nil
	for _, file := range d.claudeSettings(cfg, roots) {
		some, wrong := hooks.ReadClaude(before, file)
		broken = append(broken, wrong...)
		if d.trustsHooks(cfg, roots, file, some) {
			d.claude = append(d.claude, some...)
		}
	}
	set, problems := hooks.New(append(defs, d.claude...), hooks.Options{
		Executable: d.opts.Executable, Children: d.children,
		Sandbox: func(hooks.Definition) sandbox.Policy { return d.hookBounds(cfg.Config, roots) },
		Store:   d.store.Path,
		Session: importer.Folder,
		NewID:   d.opts.NewID, Log: d.opts.Log,
	})
	for _, p := range broken {
		cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: p.Source}, Cause: p.Cause})
	}
	for _, p := range problems {
		problem := cfg.Problem(append([]string{"hooks", p.Name}, p.Path...), "hooks.%s: %s", p.Name, p.Cause)
		if _, ok := cfg.Origin("hooks", p.Name); !ok {
			problem.Origin = config.Origin{Source: p.Source}
		}
		cfg.Problems = append(cfg.Problems, problem)
	}
	return set
}

// claudeSettings names the files with hooks of Claude Code, if they count.
func (d *Daemon) claudeSettings(cfg *config.Loaded, roots []string) []string {
	if !cfg.ClaudeFiles || cfg.PureConfig {
		return nil
	}
	return hooks.ClaudeSettings(d.claudeHome(), roots)
}

// claudeHome is the user's own folder of Claude Code; empty if there is none.
func (d *Daemon) claudeHome() string {
	if dir := d.opts.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	if home := cmp.Or(d.opts.Getenv("HOME"), d.opts.Getenv("USERPROFILE")); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

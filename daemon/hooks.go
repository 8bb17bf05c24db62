package daemon

import (
	"cmp"
	"encoding/json"
	"path/filepath"

	"github.com/seed-dec29ce4/eca/chat/importer"
	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/extensions/hooks"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// readClaudeHooks reads the hooks in files of Claude Code, and adds mistakes in them to the
// configuration's problems. in.claudeHooks has the definitions of the last load.
func (r *reader) readClaudeHooks(in inputs) []hooks.Definition {
	cfg, roots := in.config, in.workspace.Roots()
	var out []hooks.Definition
	for _, file := range r.claudeSettings(cfg, roots) {
		definitions, problems := hooks.ReadClaude(in.claudeHooks, file)
		for _, p := range problems {
			cfg.Problems = append(cfg.Problems, config.Problem{Origin: config.Origin{Source: p.Source}, Cause: p.Cause})
		}
		if trustsHooks(in, roots, file, definitions) {
			out = append(out, definitions...)
		}
	}
	return out
}

// trustsHooks reports whether the hooks of a file in another format may run. If the file is in a
// workspace, it also adds a unit for it to the configuration.
func trustsHooks(in inputs, roots []string, file string, defs []hooks.Definition) bool {
	for _, root := range roots {
		if !safeio.Within(root, file) || len(defs) == 0 {
			continue
		}
		var needs []config.Need
		var value []any
		for _, def := range defs {
			needs = append(needs, config.Need{What: "hooks." + def.Name})
			var hook any
			if raw, err := json.Marshal(def.Hook); err == nil && json.Unmarshal(raw, &hook) == nil {
				value = append(value, hook)
			}
		}
		u := config.ForeignUnit(root, file, needs, value)
		u.Trusted = in.trusts(u)
		cfg := in.config
		cfg.Units, cfg.Files = append(cfg.Units, u), append(cfg.Files, u.Files...)
		return u.Trusted
	}
	return true
}

// newHooks returns the hooks of a snapshot, and adds mistakes in them to the problems of its
// configuration.
func (r *reader) newHooks(s *Snapshot) *hooks.Set {
	cfg := s.config
	set, problems := hooks.New(append(hooks.FromConfig(cfg), s.claudeHooks...), hooks.Options{
		Executable: r.opts.Executable, Children: r.children,
		Sandbox: func(hooks.Definition) sandbox.Policy { return r.bounds.Hook(cfg.Config, s.roots()) },
		Store:   r.store.Path,
		Session: importer.Folder,
		NewID:   r.opts.NewID, Log: r.opts.Log,
	})
	for _, p := range problems {
		problem := cfg.Problem(append([]string{"hooks", p.Name}, p.Path...), "hooks.%s: %s", p.Name, p.Cause)
		if _, ok := cfg.Origin("hooks", p.Name); !ok {
			problem.Origin = config.Origin{Source: p.Source}
		}
		if p.Harmless { // eca exec does not start with a problem of the key hooks
			problem = problem.WithoutKey()
		}
		cfg.Problems = append(cfg.Problems, problem)
	}
	return set
}

// claudeSettings returns the files with hooks of Claude Code, or nil if the configuration ignores
// them.
func (s *services) claudeSettings(cfg *config.Loaded, roots []string) []string {
	if !cfg.ClaudeFiles || cfg.PureConfig {
		return nil
	}
	return hooks.ClaudeSettings(s.claudeHome(), roots)
}

// claudeHome returns the user's own folder of Claude Code; it may be empty.
func (s *services) claudeHome() string {
	if dir := s.opts.Getenv("CLAUDE_CONFIG_DIR"); dir != "" {
		return dir
	}
	if home := cmp.Or(s.opts.Getenv("HOME"), s.opts.Getenv("USERPROFILE")); home != "" {
		return filepath.Join(home, ".claude")
	}
	return ""
}

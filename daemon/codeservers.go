package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/doctor"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/tools/diagnostics"
	"github.com/seed-dec29ce4/eca/tools/editor"
	"github.com/seed-dec29ce4/eca/tools/lsp"
)

// codeServers returns the language servers of a snapshot.
func (b *toolbox) codeServers(s *Snapshot) *lsp.View {
	cfg, roots := s.config, s.roots()
	return b.lsp.With(lsp.Settings{
		Config: cfg.LSP, Roots: roots,
		Wait:      seconds(cfg.ToolCall.Diagnostics.ServerWaitSeconds),
		StartWait: seconds(cfg.ToolCall.Diagnostics.StartWaitSeconds),
		Bind: func(named bool) (sandbox.Policy, []string, error) {
			return b.bounds.LanguageServer(cfg.Config, roots, named, s.untrusted())
		},
	})
}

func seconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }

// withDiagnostics makes tools that change files report the errors and warnings that their changes
// cause, from the editor if it supports that, otherwise from language servers.
func (b *toolbox) withDiagnostics(t tools.Tool, s *Snapshot, servers *lsp.View) tools.Tool {
	o := s.config.ToolCall.Diagnostics
	switch {
	case !o.Enabled || !slices.Contains([]string{"write_file", "edit_file", "multi_edit", "move_file"}, t.Spec().Name):
		return t
	case s.client.editor.Diagnostics != nil:
		return b.reporter.Watch(t, editor.NewChecker(s.client.editor, seconds(o.EditorWaitSeconds)))
	}
	return b.reporter.Watch(t, servers)
}

var _ diagnostics.Source = (*lsp.View)(nil)

// navigation returns the tools that find definitions, references and symbols.
func (b *toolbox) navigation(s *Snapshot, servers *lsp.View) []tools.Tool {
	cfg, client := s.config, s.client.editor
	timeout := seconds(cfg.LSPTimeoutSeconds)
	installed := cfg.ToolCall.EditorNav.Enabled && servers.Any()
	if installed {
		client = withServers(client, servers)
	}
	list := editor.Tools(editor.Options{Client: client, Navigation: cfg.ToolCall.EditorNav.Enabled, Timeout: timeout})
	if installed {
		list = append(list, servers.SymbolsTool(timeout))
	}
	return list
}

// withServers returns a client that asks language servers where the editor cannot answer.
func withServers(c editor.Client, servers *lsp.View) editor.Client {
	definition, references := c.Definition, c.References
	useServers := func(ctx context.Context, path string, err error) bool {
		return err != nil && ctx.Err() == nil && !errors.Is(err, editor.ErrStarting) && servers.Serves(path)
	}
	c.Definition = func(ctx context.Context, at tools.Position) ([]tools.Position, error) {
		if definition == nil {
			return servers.Definition(ctx, at)
		}
		found, err := definition(ctx, at)
		if useServers(ctx, at.Path, err) {
			return servers.Definition(ctx, at)
		}
		return found, err
	}
	c.References = func(ctx context.Context, at tools.Position, declaration bool) ([]tools.Position, error) {
		if references == nil {
			return servers.References(ctx, at, declaration)
		}
		found, err := references(ctx, at, declaration)
		if useServers(ctx, at.Path, err) {
			return servers.References(ctx, at, declaration)
		}
		return found, err
	}
	return c
}

// badLanguageServers returns problems for the configured language servers that cannot be used.
func (r *reader) badLanguageServers(s *Snapshot) (out []config.Problem) {
	cfg := s.config
	problems := r.lsp.With(lsp.Settings{Config: cfg.LSP, Roots: s.roots()}).Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		origin, _ := cfg.Origin("lsp", name)
		out = append(out, config.Problem{Origin: origin, Cause: fmt.Sprintf("lsp.%s is left out: %s", name, problems[name])})
	}
	return out
}

// languageChecks returns a check for each language server that was found; it starts the server, unless
// offline is set. Servers for languages that the workspace has no files of are left out.
func (k *checkup) languageChecks(offline bool) (out []doctor.Check) {
	const section = "Language servers"
	none := func(text string) []doctor.Check {
		return []doctor.Check{{Section: section, Subject: "language servers", Run: func(context.Context) []doctor.Finding {
			return []doctor.Finding{doctor.Found(doctor.Note, "language servers", "%s", text)}
		}}}
	}
	if k.s.config.LSP.Off {
		return none("switched off (lsp)")
	}
	servers := k.codeServers(k.s)
	var walk sync.Once
	var present map[string]bool
	for _, c := range servers.Checks() {
		out = append(out, doctor.Check{Section: section, Subject: c.Name, Run: func(ctx context.Context) []doctor.Finding {
			walk.Do(func() { present = servers.Extensions(ctx) })
			if !c.Named && !slices.ContainsFunc(c.Extensions, func(ext string) bool { return present[ext] }) {
				return nil // no file here is for it
			}
			if offline {
				return []doctor.Finding{doctor.Found(doctor.Note, c.Name, "%s was not started, because of --offline", c.Program)}
			}
			if err := c.Start(ctx); err != nil {
				return []doctor.Finding{doctor.Found(doctor.Warning, c.Name, "%s does not start: %v", c.Program, err)}
			}
			return []doctor.Finding{doctor.Found(doctor.OK, c.Name, "%s starts", c.Program)}
		}})
	}
	if len(out) == 0 {
		return none("none found on PATH")
	}
	return out
}

package lsp

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/shorten"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed symbols.md
var symbolsDoc string

const (
	maxSymbols = 200
	maxName    = 200 // bytes of a name
	maxDepth   = 20
)

type symbolsArgs struct {
	Path  string `json:"path,omitempty" jsonschema:"The absolute path of a file."`
	Query string `json:"query,omitempty" jsonschema:"A name, or a part of one."`
}

// SymbolsTool returns the tool symbols. timeout limits each call; 0 means no limit.
func (v *View) SymbolsTool(timeout time.Duration) tools.Tool {
	return tools.Definition[symbolsArgs]{
		ReadOnly: true, Name: "symbols", Description: symbolsDoc, Preparing: "Finding symbols",
		Plan: func(_ context.Context, call tools.Call, a symbolsArgs) (tools.Plan, error) {
			switch {
			case a.Path == "" && a.Query == "":
				return tools.Plan{}, errors.New("INVALID_ARGS: path or query is needed")
			case a.Path == "":
				return tools.Plan{Summary: "Symbols: " + a.Query}, nil
			}
			path := workspace.Abs(call.Roots, a.Path)
			return tools.Plan{Summary: "Symbols: " + filepath.Base(path), Paths: []string{path}}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a symbolsArgs, _ tools.Sink) (tools.Result, error) {
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, timeout)
				defer cancel()
			}
			list, err := v.symbols(ctx, call, a)
			if err != nil {
				return tools.Result{}, err
			}
			if len(list) == 0 {
				return tools.Text("No symbols were found."), nil
			}
			if more := len(list) - maxSymbols; more > 0 {
				list = append(list[:maxSymbols:maxSymbols], fmt.Sprintf("... %d more are left out", more))
			}
			return tools.Text(strings.Join(list, "\n")), nil
		},
	}.Build()
}

func (v *View) symbols(ctx context.Context, call tools.Call, a symbolsArgs) ([]string, error) {
	if a.Path == "" {
		return v.projectSymbols(ctx, a.Query)
	}
	path := workspace.Abs(call.Roots, a.Path)
	s, uri, err := v.openFile(ctx, path)
	if err != nil {
		return nil, err
	}
	var found []wireSymbol
	if err := s.call(ctx, "textDocument/documentSymbol", documentParams{textDocument{uri}}, &found); err != nil {
		return nil, err
	}
	var out []string
	query := strings.ToLower(a.Query)
	var add func(list []wireSymbol, depth int)
	add = func(list []wireSymbol, depth int) {
		for _, one := range list {
			if len(out) > 10*maxSymbols || depth > maxDepth {
				return
			}
			if strings.Contains(strings.ToLower(one.Name), query) {
				at := tools.Position{Path: path, Line: one.SelectionRange.Start.Line + 1, Character: one.SelectionRange.Start.Character + 1}
				if one.Location != nil {
					at = s.position(*one.Location)
				}
				out = append(out, one.line(at, depth))
			}
			add(one.Children, depth+1)
		}
	}
	add(found, 0)
	return out, nil
}

// projectSymbols queries the servers of the workspace's projects: running ones, and those whose
// markers are in a workspace folder itself.
func (v *View) projectSymbols(ctx context.Context, query string) (out []string, err error) {
	var servers []*server
	for _, d := range v.defs {
		f, ok := v.installed(d)
		if !ok {
			continue
		}
		for _, project := range v.projects(f) {
			s, startErr := v.start(f, project)
			if startErr != nil {
				err = errors.Join(err, fmt.Errorf("%s: %w", f.program.name, startErr))
				continue
			}
			servers = append(servers, s)
		}
	}
	if len(servers) == 0 && err == nil {
		return nil, errors.New("no language server is running for this workspace: give the path of a file")
	}
	for _, s := range servers {
		found, askErr := s.workspaceSymbols(ctx, query)
		err = errors.Join(err, askErr)
		for _, one := range found {
			if one.Location == nil {
				continue
			}
			if at := s.position(*one.Location); s.workspace.Contains(at.Path) {
				out = append(out, one.line(at, 0))
			}
		}
	}
	if len(out) > 0 {
		err = nil
	}
	return out, err
}

// workspaceSymbols queries the symbols of a project.
func (s *server) workspaceSymbols(ctx context.Context, query string) (found []wireSymbol, err error) {
	if err := s.awaitReady(ctx); err != nil {
		return nil, err
	}
	if err := s.refresh(ctx); err != nil {
		return nil, err
	}
	err = s.call(ctx, "workspace/symbol", map[string]string{"query": query}, &found)
	return found[:min(len(found), 10*maxSymbols)], err
}

// projects returns the projects whose server is running or may be started without a file.
func (v *View) projects(f installedServer) (out []string) {
	v.mu.Lock()
	for key, s := range v.running {
		if key == f.key(s.root) {
			out = append(out, s.root)
		}
	}
	v.mu.Unlock()
	for _, root := range v.settings.Roots {
		root = workspace.Resolve(root)
		has := slices.ContainsFunc(f.markers, func(marker string) bool {
			_, err := os.Stat(filepath.Join(root, marker))
			return err == nil
		})
		if has && !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	slices.Sort(out)
	return out
}

// line formats a symbol for the model.
func (w wireSymbol) line(at tools.Position, depth int) string {
	text := fmt.Sprintf("%s: %s%s %s", at, strings.Repeat("  ", depth), kindName(w.Kind), shorten.Bytes(strings.Join(strings.Fields(w.Name), " "), maxName))
	if w.ContainerName != "" {
		text += " (" + shorten.Bytes(w.ContainerName, maxName) + ")"
	}
	return text
}

// kindName returns the name of an LSP SymbolKind.
func kindName(kind int) string {
	names := [...]string{
		"symbol", "file", "module", "namespace", "package", "class", "method", "property", "field", "constructor", "enum", "interface",
		"function", "variable", "constant", "string", "number", "boolean", "array", "object", "key", "null", "enum member", "struct",
		"event", "operator", "type parameter",
	}
	if kind < 0 || kind >= len(names) {
		kind = 0
	}
	return names[kind]
}

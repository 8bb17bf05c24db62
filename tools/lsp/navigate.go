package lsp

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

// maxLocations limits the locations of one answer.
const maxLocations = 1000

// Definition returns where the symbol at a position is defined.
func (v *View) Definition(ctx context.Context, at tools.Position) ([]tools.Position, error) {
	return v.locations(ctx, at, "textDocument/definition", nil)
}

// References returns where the symbol at a position is used.
func (v *View) References(ctx context.Context, at tools.Position, declaration bool) ([]tools.Position, error) {
	return v.locations(ctx, at, "textDocument/references", &referencesContext{declaration})
}

func (v *View) locations(ctx context.Context, at tools.Position, method string, about *referencesContext) ([]tools.Position, error) {
	s, uri, err := v.openFile(ctx, at.Path)
	if err != nil {
		return nil, err
	}
	var found locations
	params := positionParams{textDocument{uri}, wirePosition{at.Line - 1, at.Character - 1}, about}
	if err := s.call(ctx, method, params, &found); err != nil {
		return nil, err
	}
	var out []tools.Position
	for _, p := range found[:min(len(found), maxLocations)] {
		out = append(out, s.position(p))
	}
	slices.SortStableFunc(out, tools.Position.Compare)
	return slices.Compact(out), nil
}

// openFile returns the server of a file, after sending it the file's text on the disk.
func (v *View) openFile(ctx context.Context, path string) (s *server, uri string, err error) {
	if s, err = v.runningFor(path); err != nil {
		return nil, "", err
	}
	if err = s.awaitReady(ctx); err != nil {
		return nil, "", err
	}
	if err = s.refresh(ctx); err != nil {
		return nil, "", err
	}
	if err = s.lock(ctx); err != nil {
		return nil, "", err
	}
	defer s.unlock()
	real := workspace.Resolve(path)
	version, err := s.open(ctx, real)
	if err == nil && version == 0 {
		err = fmt.Errorf("%s is not a text file that a language server can read", path)
	}
	return s, s.uri(real), err
}

// call sends a request to the server. Errors name the server.
func (s *server) call(ctx context.Context, method string, params, result any) error {
	if err := s.conn.Call(ctx, method, params, result); err != nil {
		if ended := s.endError(); ended != nil {
			err = ended
		}
		return fmt.Errorf("%s: %w", s.installed.program.name, err)
	}
	return nil
}

func (s *server) position(p location) tools.Position {
	uri, start := p.URI, p.Range.Start
	if p.TargetURI != "" {
		uri, start = p.TargetURI, p.TargetSelectionRange.Start
	}
	return tools.Position{Path: s.workspacePath(workspace.FromURI(uri)), Line: start.Line + 1, Character: start.Character + 1}
}

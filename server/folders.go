package server

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/workspace"
)

// folders returns the paths of a client's workspace folders.
func folders(list []protocol.WorkspaceFolder) []string {
	var out []string
	for _, f := range list {
		if f.URI == "" {
			continue
		}
		if path := filepath.Clean(workspace.FromURI(f.URI)); !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out
}

// WorkspaceDidChangeWorkspaceFolders implements protocol.Server (eca-protocol.md 3). Turns that
// begin from now on work in the new folders, with the configuration of those folders.
func (s *Server) WorkspaceDidChangeWorkspaceFolders(_ context.Context, p protocol.FoldersChanged) error {
	before, removed := s.host.Roots(), folders(p.Event.Removed)
	after := slices.DeleteFunc(slices.Clone(before), func(root string) bool { return slices.Contains(removed, root) })
	for _, path := range folders(p.Event.Added) {
		if !slices.Contains(after, path) {
			after = append(after, path)
		}
	}
	if slices.Equal(before, after) {
		return nil
	}
	s.host.SetRoots(after)
	s.log.Debug("workspace folders changed", "roots", after)
	s.background(func() {
		s.settings.push(s.ctx)
		s.host.SyncModels(s.ctx)
		s.settings.push(s.ctx)
	})
	return nil
}

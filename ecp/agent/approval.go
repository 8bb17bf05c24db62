package agent

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/tools/fs"
)

// approves reports whether the approval policy allows a call. Edits are changes and moves of files in
// the workspace, except protected files, which can make programs run later or change eca's permissions.
func (s *settings) approves(call event.ToolJudged) bool {
	switch s.Approval {
	case ecp.ApproveAll:
		return true
	case ecp.ApproveEdits:
		if call.Rule == "protected" {
			return false
		}
		if paths, ok := fs.MovedPaths(call.Server, call.Name, call.Arguments, s.root.Roots()); ok {
			return s.root.Contains(paths[0]) && s.root.Contains(paths[1])
		}
		return call.Details != nil && call.Details.FileChange != nil && s.root.Contains(call.Details.FileChange.Path)
	}
	return false
}

package agent

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
)

// approves answers for a user who would be asked about a call. Edits are changes of files
// inside the workspace; one of a protected place, which makes programs run later or changes
// what eca may do, is more than an edit.
func (s *settings) approves(call event.ToolJudged) bool {
	switch s.Approval {
	case ecp.ApproveAll:
		return true
	case ecp.ApproveEdits:
		return call.Details != nil && call.Details.FileChange != nil && call.Rule != "protected" &&
			s.root.Contains(call.Details.FileChange.Path)
	}
	return false
}

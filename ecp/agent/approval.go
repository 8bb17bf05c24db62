package agent

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
)

// approves reports whether the approval policy allows a call. Edits are changes of files in the
// workspace, except protected files, which can make programs run later or change eca's permissions.
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

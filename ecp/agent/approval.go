package agent

import (
	"github.com/seed-dec29ce4/eca/chat/event"
	"github.com/seed-dec29ce4/eca/ecp"
)

// approves decides about a call in place of a user. Edits are changes of files inside the
// workspace. A change of a protected place, which can make programs run later or change eca's
// permissions, does not count as an edit.
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

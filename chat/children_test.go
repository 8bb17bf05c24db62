package chat

import "testing"

// A client may decide about a subagent's first call before the call that starts the subagent knows
// that the subagent's turn has begun. The decision reaches the subagent even if the client names the
// parent's chat.
func TestDecisionReachesStartingSubagent(t *testing.T) {
	parent := &turn{children: newChildren(nil), calls: &callRunner{}}
	session := &Session{mail: newMailbox()}
	c := &child{callID: "spawn", session: session}
	parent.children.addSession(c)
	parent.decide("call-of-the-subagent", Decision{Approve: true})
	if n := len(session.mail.take()); n != 1 {
		t.Errorf("the subagent got %d decisions, want 1", n)
	}
	parent.children.remove(c)
	parent.decide("call-of-the-subagent", Decision{Approve: true})
	if n := len(session.mail.take()); n != 0 {
		t.Errorf("a subagent that has ended got %d decisions", n)
	}
}

package chat

import "testing"

// A subagent's first call may be announced, and decided about, before the call that starts the
// subagent knows that its turn has begun: clients that name the parent's chat must be heard.
func TestDecisionReachesASubagentThatBegins(t *testing.T) {
	parent := &turn{children: newChildren(nil), calls: &callRunner{}}
	session := &Session{mail: newMailbox()}
	c := &child{callID: "spawn", session: session}
	parent.children.open(c)
	parent.decide("call-of-the-subagent", Decision{Approve: true})
	if n := len(session.mail.take()); n != 1 {
		t.Errorf("%d decisions came through", n)
	}
	parent.children.remove(c)
	parent.decide("call-of-the-subagent", Decision{Approve: true})
	if n := len(session.mail.take()); n != 0 {
		t.Errorf("%d decisions reach one that has ended", n)
	}
}

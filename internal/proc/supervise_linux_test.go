package proc

import (
	"testing"
)

// A supervisor that gets a signal immediately after its child has started does not end. Otherwise it
// would leave processes that moved to another session.
func TestSupervisorOutlivesStop(t *testing.T) {
	p := newPool(t)
	for range 20 {
		c, err := p.Start(Spec{Path: "sleep", Args: []string{"300"}})
		if err != nil {
			t.Fatal(err)
		}
		held, ok := c.(*supervisedChild)
		if !ok {
			t.Fatalf("%T", c)
		}
		c.Kill()
		if !Alive(held.supervisor.cmd.Process.Pid) {
			t.Fatal("the supervisor ended")
		}
	}
}

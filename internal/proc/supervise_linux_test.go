package proc

import (
	"testing"
)

// A supervisor is not ended by a request that comes as soon as its child runs: it would leave
// behind whatever moved to a session of its own.
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

package proc

import (
	"os"
	"testing"
)

// A supervisor is not ended by a request that comes as soon as its child runs: it would leave
// behind whatever moved to a session of its own.
func TestSupervisorOutlivesStop(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		p, err := Start(Spec{Path: "sleep", Args: []string{"300"}, Supervisor: self})
		if err != nil {
			t.Fatal(err)
		}
		p.Kill()
		if state := p.cmd.ProcessState; !state.Exited() {
			t.Fatalf("the supervisor: %v", state)
		}
	}
}

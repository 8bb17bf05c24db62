package shell

import (
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
	"github.com/seed-dec29ce4/eca/tools"
)

// The result of a command that was killed for memory names the limit and the remedy.
func TestOutOfMemory(t *testing.T) {
	for exit, want := range map[proc.Exit]string{
		{Code: -1, OutOfMemory: true, MemoryLimit: 6 << 30}: "it used more memory than a sandboxed command may (6144 MiB) and was killed. Run fewer jobs",
		{Code: 137, OutOfMemory: true}:                      "it was killed because the machine had no more memory. Run fewer jobs",
	} {
		if got := outOfMemoryMessage(exit); !strings.Contains(got, want) {
			t.Errorf("%+v: %q", exit, got)
		}
	}
	// Approving the call helps only if an approved call runs outside the sandbox.
	for level, want := range map[sandbox.Level]bool{sandbox.None: true, sandbox.Workspace: false} {
		o := Options{Sandbox: func(call tools.Call) sandbox.Policy {
			if call.Authorization.Approved {
				return sandbox.Policy{Level: level}
			}
			return sandbox.Policy{Level: sandbox.Workspace}
		}}
		if got := o.approvalLiftsSandbox(tools.Call{}); got != want {
			t.Errorf("%q: %t", level, got)
		}
	}
	if (Options{}).approvalLiftsSandbox(tools.Call{}) {
		t.Error("approvalLiftsSandbox is true without a sandbox")
	}
}

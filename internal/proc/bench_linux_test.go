package proc

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// What a command costs that does nothing: below a supervisor, and within bounds. The floor is
// bash alone, measured in turn with the others. Reported are medians.
func BenchmarkCommand(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	b.Setenv("TMPDIR", b.TempDir())
	run := func(spec Spec) func() error {
		spec.Path, spec.Args, spec.Supervisor = "/bin/bash", []string{"-c", "true"}, self
		return func() error { _, err := Run(context.Background(), spec); return err }
	}
	kinds := []struct {
		name string
		run  func() error
	}{
		{"bare", func() error { return exec.Command("/bin/bash", "-c", "true").Run() }},
		{"supervised", run(Spec{})},
		{"read-only", run(Spec{Sandbox: sandbox.Policy{Level: sandbox.ReadOnly}})},
		{"workspace", run(Spec{Sandbox: sandbox.Policy{Level: sandbox.Workspace}})},
	}
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, kind := range kinds {
			start := time.Now()
			if err := kind.run(); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	for i, kind := range kinds {
		slices.Sort(took[i])
		b.ReportMetric(float64(took[i][len(took[i])/2].Microseconds())/1000, kind.name+"-ms")
	}
	b.ReportMetric(0, "ns/op")
}

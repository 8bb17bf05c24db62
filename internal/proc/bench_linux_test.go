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

// BenchmarkCommand measures a command that does nothing, below a supervisor and in the sandbox. The
// floor is bash alone, measured alternately with the others. It reports medians.
func BenchmarkCommand(b *testing.B) {
	b.Setenv("TMPDIR", b.TempDir())
	ws := b.TempDir()
	command := Spec{Path: "/bin/bash", Args: []string{"-c", "true"}, Dir: ws}
	// Each kind has its own pool, because the commands of a daemon are mostly of one kind. spare is 0
	// for a command after a minute without commands.
	run := func(spare int, policy sandbox.Policy) func() error {
		p := NewPool(newPool(b).supervisor, spare)
		b.Cleanup(p.Close)
		return func() error {
			spec := command
			if spec.Sandbox = policy; policy.Level == sandbox.ReadOnly {
				spec.Sandbox.Read = sandbox.Reads([]string{ws}, os.Getenv)
			}
			_, err := p.Run(context.Background(), spec)
			return err
		}
	}
	reads, writes := sandbox.Policy{Level: sandbox.ReadOnly}, sandbox.Policy{Level: sandbox.Workspace, Write: []string{ws}}
	isolate := func(p sandbox.Policy) sandbox.Policy {
		p.Isolate, p.OwnProcesses = true, true
		return p
	}
	kinds := []struct {
		name string
		run  func() error
	}{
		{"bare", func() error { return exec.Command("/bin/bash", "-c", "true").Run() }},
		{"supervised", run(1, sandbox.Policy{})},
		{"read-only", run(1, reads)},
		{"workspace", run(1, writes)},
		{"read-only-cold", run(0, reads)},
	}
	if here := newPool(b).Isolation(); here.Mounts && here.Processes {
		kinds = append(kinds, []struct {
			name string
			run  func() error
		}{
			{"read-only-isolated", run(1, isolate(reads))},
			{"workspace-isolated", run(1, isolate(writes))},
			{"read-only-isolated-cold", run(0, isolate(reads))},
		}...)
	}
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, kind := range kinds {
			time.Sleep(100 * time.Millisecond) // between commands, the idle pool is refilled
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

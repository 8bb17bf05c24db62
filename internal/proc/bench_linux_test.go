package proc

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// What a command costs that does nothing: below a supervisor, and within bounds. The floor is
// bash alone, measured in turn with the others. Reported are medians.
func BenchmarkCommand(b *testing.B) {
	b.Setenv("TMPDIR", b.TempDir())
	stock := newPool(b)
	run := func(p *Pool, policy sandbox.Policy) func() error {
		return func() error {
			_, err := p.Run(context.Background(), Spec{Path: "/bin/bash", Args: []string{"-c", "true"}, Sandbox: policy})
			return err
		}
	}
	// cold is a pool that keeps nothing.
	cold := NewPool(stock.supervisor, 0)
	b.Cleanup(cold.Close)
	inNamespaces := func(p sandbox.Policy) func() error { // a stock of their own: it is ready for the last kind
		pool := NewPool(stock.supervisor, 1)
		b.Cleanup(pool.Close)
		p.Isolate, p.OwnProcesses, p.Loopback = true, true, p.Level == sandbox.Workspace
		return run(pool, p)
	}
	kinds := []struct {
		name string
		run  func() error
	}{
		{"bare", func() error { return exec.Command("/bin/bash", "-c", "true").Run() }},
		{"supervised", run(stock, sandbox.Policy{})},
		{"read-only", run(stock, sandbox.Policy{Level: sandbox.ReadOnly})},
		{"workspace", run(stock, sandbox.Policy{Level: sandbox.Workspace})},
		{"read-only-namespaces", inNamespaces(sandbox.Policy{Level: sandbox.ReadOnly})},
		{"workspace-namespaces", inNamespaces(sandbox.Policy{Level: sandbox.Workspace})},
		{"cold-read-only", run(cold, sandbox.Policy{Level: sandbox.ReadOnly})},
	}
	took := make([][]time.Duration, len(kinds))
	for b.Loop() {
		for i, kind := range kinds {
			time.Sleep(20 * time.Millisecond) // between commands, the stock is renewed
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

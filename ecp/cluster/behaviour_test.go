package cluster

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/needs"
)

// behaviour is a row of the table that both schedulers have to pass.
type behaviour struct {
	name     string
	cases    int
	line     string // of shell, for each message to the agent
	setup    string // further keys of the scenario
	settings Settings
	limit    int           // attempts at a time, on a cluster: of a model
	stop     time.Duration // until the run is stopped; 0 is never

	passed, failed, errors int    // cases; -1 is any number
	kind                   string // of all errors
	made                   [2]int // attempts that the agent began, at least and at most
}

func behaviours() []behaviour {
	const ones = `if [ "${line#*\"input\":\"1}" != "$line" ]; then `
	fails := ones + `echo '{"jsonrpc":"2.0","id":'$id',"result":{"status":"done","public_output":"no"}}'; continue; fi`
	return []behaviour{
		{name: "all pass", cases: 12, line: ":", passed: 12, made: [2]int{12, 12}},
		{name: "some fail", cases: 12, line: fails, passed: 9, failed: 3, made: [2]int{12, 12}},
		{name: "some end", cases: 12, line: ones + "exit 3; fi", passed: 9, errors: 3, kind: "exit", made: [2]int{12, 12}},
		{name: "all end at once", cases: 4, line: "exit 3", errors: 4, kind: "exit", made: [2]int{4, 4}},
		{name: "too slow", cases: 2, line: "sleep 1000", settings: Settings{Timeout: 500 * time.Millisecond}, errors: 2, kind: "timeout", made: [2]int{2, 2}},
		{name: "repeated", cases: 4, line: ":", settings: Settings{Repeat: 3}, passed: 4, made: [2]int{12, 12}},
		{name: "variants", cases: 3, line: ":", settings: Settings{Variants: []runtime.Variant{{Labels: map[string]string{"v": "1"}}, {Labels: map[string]string{"v": "2"}}}}, passed: 6, made: [2]int{6, 6}},
		{name: "a long answer", cases: 2, line: `out=$(head -c 700000 /dev/zero | tr '\0' a); echo '{"jsonrpc":"2.0","id":'$id',"result":{"status":"done","public_output":"ok'$out'"}}'; continue`, passed: 2, made: [2]int{2, 2}},
		{name: "filtered", cases: 3, line: ":", settings: Settings{Filter: "other"}},
		{name: "budget", cases: 60, line: "sleep 0.05", settings: Settings{Budget: runtime.Budget{CostUSD: 0.1}}, limit: 2, passed: -1, errors: -1, kind: "budget", made: [2]int{10, 40}},
		{name: "time", cases: 60, line: "sleep 0.3", settings: Settings{Budget: runtime.Budget{Time: 2 * time.Second}}, limit: 2, passed: -1, errors: -1, made: [2]int{0, 40}},
		{name: "stopped", cases: 60, line: "sleep 0.3", limit: 2, stop: 2 * time.Second, passed: -1, made: [2]int{0, 59}},
	}
}

// Both schedulers behave the same: each attempt is made once, verdicts and order are those of the
// plan, and after a limit or a stop the rest is not made.
func TestSchedulers(t *testing.T) {
	needs.Long(t)
	r := newRig(t, 1)
	c := r.dial(RoleController)
	r.work(r.spec("a"))
	r.work(r.spec("b"))
	for _, b := range behaviours() {
		t.Run(b.name, func(t *testing.T) {
			var orders [][]string
			for scheduler, execute := range map[string]func(context.Context, *runtime.Manifest) (*report.Report, error){
				"in this process": func(ctx context.Context, m *runtime.Manifest) (*report.Report, error) {
					o := baseOptions("")
					if err := b.settings.Apply(&o); err != nil {
						return nil, err
					}
					o.Jobs = max(b.limit, 2)
					p, err := runtime.NewPlan(m, o)
					if err != nil {
						return nil, err
					}
					return runtime.Run(ctx, p, o)
				},
				"on a cluster": func(ctx context.Context, m *runtime.Manifest) (*report.Report, error) {
					s := Submission{Manifest: m, Settings: b.settings, Now: time.Now, Program: "test"}
					if s.Settings.Timeout == 0 {
						s.Settings.Timeout = time.Minute
					}
					if b.limit > 0 {
						s.Settings.Config = map[string]any{"model": "m"}
						s.Limits = map[string]int{"m": b.limit}
					}
					d, err := c.Submit(t.Context(), s)
					if err != nil {
						return nil, err
					}
					defer func() { _ = c.Control(t.Context(), d.Run, StateCancelled) }()
					return follow(ctx, c, d, FollowOptions{Lead: true}, t.TempDir())
				},
			} {
				t.Run(scheduler, func(t *testing.T) { orders = append(orders, b.check(t, r, execute)) })
			}
			if whole := b.stop == 0 && b.limit == 0; whole && !slices.Equal(orders[0], orders[1]) {
				t.Errorf("the orders differ: %v", orders)
			}
		})
	}
}

func (b behaviour) check(t *testing.T, r *rig, execute func(context.Context, *runtime.Manifest) (*report.Report, error)) (order []string) {
	began := t.TempDir()
	m := r.manifest(b.cases, fmt.Sprintf("mktemp %s/XXXXXX >/dev/null; %s", began, b.line), b.setup)
	ctx := t.Context()
	if b.stop > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer time.AfterFunc(b.stop, cancel).Stop()
	}
	out, err := execute(ctx, m)
	if err != nil {
		t.Fatal(err)
	}
	made := count(t, began)
	if n := out.Counts; b.passed >= 0 && n.Passed != b.passed || n.Failed != b.failed || b.errors >= 0 && n.Error != b.errors {
		t.Errorf("%+v: %+v", n, out.Errors)
	}
	if made < b.made[0] || made > b.made[1] {
		t.Errorf("%d attempts were made, want %v", made, b.made)
	}
	planned := b.cases * max(1, len(b.settings.Variants))
	if b.settings.Filter != "" {
		planned = 0
	}
	if n := len(out.Scenarios) + out.NotRun; n != planned {
		t.Errorf("%d of %d cases are accounted for", n, planned)
	}
	for _, e := range out.Errors {
		if b.kind != "" && e.Kind != b.kind {
			t.Errorf("%+v", e)
		}
	}
	if b.stop > 0 != out.Interrupted {
		t.Errorf("interrupted: %v", out.Interrupted)
	}
	for _, sc := range out.Scenarios {
		name := fmt.Sprint(sc.Name, sc.Variant)
		if slices.Contains(order, name) {
			t.Errorf("%s has two results", name)
		}
		order = append(order, name)
	}
	return order
}

func count(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

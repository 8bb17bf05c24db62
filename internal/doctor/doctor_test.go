package doctor

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Checks run concurrently. The report lists them in their own order, and a check that exceeds its
// time limit as a problem.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		after := func(section, subject string, d time.Duration, s Status) Check {
			return Check{Section: section, Subject: subject, Run: func(ctx context.Context) []Finding {
				select {
				case <-time.After(d):
					return []Finding{{s, subject, "done"}}
				case <-ctx.Done():
					return nil
				}
			}}
		}
		start := time.Now()
		got := Run(context.Background(), 10*time.Second, []Check{
			after("A", "slow", 9*time.Second, OK), after("A", "fast", 0, Warning), after("B", "never", time.Hour, OK), after("B", "also slow", 8*time.Second, Note),
		})
		want := Report{Sections: []Section{
			{"A", []Finding{{OK, "slow", "done"}, {Warning, "fast", "done"}}},
			{"B", []Finding{{Problem, "never", "no answer within 10s"}, {Note, "also slow", "done"}}},
		}}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("Run took %s, want 10s", took)
		}
		patient := after("A", "patient", 11*time.Second, OK)
		patient.Limit = 12 * time.Second
		if got := Run(context.Background(), 10*time.Second, []Check{patient}); !got.Healthy {
			t.Errorf("a check with a longer limit of its own: %+v", got)
		}
	})
}

func TestShow(t *testing.T) {
	r := Run(context.Background(), time.Minute, []Check{{Section: "Models", Run: func(context.Context) []Finding {
		return []Finding{{OK, "a", "fine\n- ❌ b: forged \x1b[2J"}, {Note, "n", "secret"}, {Warning, "w", "x"}}
	}}}).Map(func(s string) string { return strings.ReplaceAll(s, "secret", "*") })
	if !r.Healthy {
		t.Error("the report has no problem, and Healthy is false")
	}
	if got, want := r.Markdown(), "\n### Models\n\n- ✅ **a**: fine - ❌ b: forged [2J\n- **n**: *\n- ⚠️ **w**: x\n"; got != want {
		t.Errorf("%q", got)
	}
	var b strings.Builder
	if err := r.Write(&b); err != nil || b.String() != "Models\n  ok       a: fine - ❌ b: forged [2J\n           n: *\n  warning  w: x\n" {
		t.Errorf("%v %q", err, b.String())
	}
}

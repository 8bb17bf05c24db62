package runtime

import (
	"context"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/report"
)

// answeringConn is a conn whose agent answers every step, and then calls then.
type answeringConn struct{ then func() }

func (a answeringConn) exchange(context.Context, string, []byte, []byte) (ecp.Response, error) {
	defer a.then()
	return ecp.Response{Result: []byte(`{"status":"done"}`)}, nil
}
func (answeringConn) close(bool)      {}
func (answeringConn) notes() []string { return nil }
func (answeringConn) stderr() string  { return "" }

// If there was no time for a step, the attempt did not pass. After the last step, nothing is
// missing.
func TestNoTimeLeft(t *testing.T) {
	for name, c := range map[string]struct {
		steps  int
		expire bool // the scenario's own limit, not the end of the run
		status string
		kind   string
	}{
		"stopped":            {2, false, report.Error, kindInterrupted},
		"out of time":        {2, true, report.Error, kindTimeout},
		"behind the last":    {1, false, report.Passed, ""},
		"expired at the end": {1, true, report.Passed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.expire {
				ctx, cancel = context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
				defer cancel()
				ctx = deadlineContext{ctx, make(chan struct{})}
				cancel = func() { close(ctx.(deadlineContext).over) }
			}
			a := &attempt{
				run: &run{opts: Options{Now: time.Now}, ids: &ids{}}, conn: answeringConn{cancel}, out: report.Attempt{Status: report.Passed},
				c: Case{Scenario: Scenario{Name: "s", Steps: make([]Step, c.steps)}},
			}
			a.runSteps(ctx)
			if a.out.Status != c.status || len(a.out.Steps) != 1 {
				t.Errorf("%+v", a.out)
			}
			if len(a.out.Errors) == 0 != (c.kind == "") || c.kind != "" && a.out.Errors[0].Kind != c.kind {
				t.Errorf("%+v", a.out.Errors)
			}
		})
	}
}

// deadlineContext is a context that reaches its deadline when over is closed.
type deadlineContext struct {
	context.Context
	over chan struct{}
}

func (e deadlineContext) Done() <-chan struct{} { return e.over }
func (e deadlineContext) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

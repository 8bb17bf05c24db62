package runtime

import (
	"context"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// earlier is what an earlier run came to. Its attempts stand for those of this one if the
// case and all that decides what it does are the same, and so is what the agent says of
// itself.
type earlier struct {
	run      *run
	attempts map[attemptKey]report.Attempt
	agents   map[string]*report.Agent // by variant, what agents say of themselves now; nil if they do not start
	changed  int                      // attempts that would do, had the agent not changed
}

// earlier returns what the journal has. What it cost counts against the budget, whether it
// can be used or not.
func (r *run) earlier() *earlier {
	for _, l := range r.opts.Earlier {
		r.spend(l.Result)
	}
	return &earlier{run: r, attempts: finished(r.opts.Earlier, r.opts.RetryErrors), agents: map[string]*report.Agent{}}
}

// introduce starts an agent and has it say who it is; nil if it cannot.
func (r *run) introduce(ctx context.Context, c Case) *report.Agent {
	c.Scenario.Steps, c.Scenario.Setup.Workspace, c.Scenario.Setup.Tests = nil, nil, ""
	c.server = c.target
	a := r.try(ctx, c)
	if len(a.Errors) > 0 {
		return nil
	}
	return a.Agent
}

// of returns the attempt that stands for one of this run.
func (e *earlier) of(ctx context.Context, c Case, n int) (a report.Attempt, ok bool) {
	for _, id := range append([]string{c.ID}, c.Aliases...) {
		if a, ok = e.attempts[attemptKey{id, c.VariantKey, c.digest, n}]; ok {
			break
		}
	}
	if !ok {
		return a, false
	}
	now, asked := e.agents[c.VariantKey]
	if !asked {
		now = e.run.introduce(context.WithoutCancel(ctx), c)
		e.agents[c.VariantKey] = now
	}
	if !sameAgent(a.Agent, now) {
		e.changed++
		return report.Attempt{}, false
	}
	return a, true
}

func sameAgent(a, b *report.Agent) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Version == b.Version && a.ProtocolVersion == b.ProtocolVersion && canonical(a.Capabilities) == canonical(b.Capabilities)
}

package runtime

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// reusable finds the attempts of an earlier run that stand for those of this one: the case
// and all that decides what it does are the same, and so is what the agent says of itself.
// What the earlier run cost counts against the budget, whether it can be used or not.
func (r *run) reusable(ctx context.Context, cases []Case) earlier {
	if len(r.opts.Earlier) == 0 {
		return earlier{}
	}
	defer func() { // last, since it may end the run
		for _, l := range r.opts.Earlier {
			r.spend(l.Result)
		}
	}()
	e := earlier{attempts: finished(r.opts.Earlier, r.opts.RetryErrors), agents: map[string]*report.Agent{}}
	for _, c := range cases {
		for n := range int(c.Repeat) {
			if _, ok := e.find(c, n+1); !ok {
				continue
			}
			if _, asked := e.agents[c.VariantKey]; !asked && ctx.Err() == nil {
				e.agents[c.VariantKey] = r.introduce(ctx, c)
			}
			break
		}
	}
	if changed := e.changed(cases); changed > 0 {
		r.warn(fmt.Sprintf("%d attempts of the earlier run are made again: the agent is not what it was, or does not start any more", changed))
	}
	return e
}

// introduce starts an agent and has it say who it is; nil if it cannot.
func (r *run) introduce(ctx context.Context, c Case) *report.Agent {
	c.Scenario.Steps, c.Scenario.Setup.Workspace = nil, nil
	c.server = c.target
	a := r.try(ctx, c)
	if len(a.Errors) > 0 {
		return nil
	}
	return a.Agent
}

// earlier is what earlier runs came to.
type earlier struct {
	attempts map[attemptKey]report.Attempt
	agents   map[string]*report.Agent // by variant, what agents say of themselves now; nil if they do not start
}

// find returns an attempt with everything the same but perhaps the agent.
func (e earlier) find(c Case, n int) (a report.Attempt, ok bool) {
	for _, id := range append([]string{c.ID}, c.Aliases...) {
		if a, ok = e.attempts[attemptKey{id, c.VariantKey, c.digest, n}]; ok {
			return a, true
		}
	}
	return a, false
}

// of returns the attempt that stands for one of this run.
func (e earlier) of(c Case, n int) (report.Attempt, bool) {
	a, ok := e.find(c, n)
	return a, ok && sameAgent(a.Agent, e.agents[c.VariantKey])
}

// changed counts the attempts that would do, had the agent not changed.
func (e earlier) changed(cases []Case) (n int) {
	for _, c := range cases {
		for i := range int(c.Repeat) {
			if _, ok := e.find(c, i+1); ok {
				if _, ok := e.of(c, i+1); !ok {
					n++
				}
			}
		}
	}
	return n
}

func sameAgent(a, b *report.Agent) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Version == b.Version && a.ProtocolVersion == b.ProtocolVersion && canonical(a.Capabilities) == canonical(b.Capabilities)
}

package runtime

import (
	"context"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// earlier holds the results of an earlier run. Its attempts are reused if the case, everything that
// decides what it does, and the agent's own description are the same.
type earlier struct {
	run      *run
	attempts map[attemptKey]report.Attempt
	agents   map[string]*report.Agent // the agents' current descriptions, by variant; nil if an agent does not start
	changed  int                      // attempts that could be reused if the agent had not changed
}

// earlier returns the attempts of the journal. Their cost is part of the budget, even if they
// cannot be reused.
func (r *run) earlier() *earlier {
	for _, l := range r.opts.Earlier {
		r.spend(l.Result)
	}
	return &earlier{run: r, attempts: finished(r.opts.Earlier, r.opts.RetryErrors), agents: map[string]*report.Agent{}}
}

// introduce starts an agent and returns its description of itself, or nil if that fails.
func (r *run) introduce(ctx context.Context, c Case) *report.Agent {
	c.Scenario.Steps, c.Scenario.Setup.Workspace, c.Scenario.Setup.Tests = nil, nil, ""
	c.server = c.target
	a := r.try(ctx, c)
	if len(a.Errors) > 0 {
		return nil
	}
	return a.Agent
}

// of returns the earlier attempt that replaces one of this run.
func (e *earlier) of(ctx context.Context, c Case, n int) (a report.Attempt, ok bool) {
	for _, id := range append([]string{c.ID}, c.Aliases...) {
		if a, ok = e.attempts[attemptKey{id, c.VariantKey, c.digest, n}]; ok {
			break
		}
	}
	if !ok {
		return a, false
	}
	if !sameAgent(a.Agent, e.agent(ctx, c)) {
		e.changed++
		return report.Attempt{}, false
	}
	return a, true
}

// agent returns the current self-description of a case's agent.
func (e *earlier) agent(ctx context.Context, c Case) *report.Agent {
	now, asked := e.agents[c.VariantKey]
	if !asked {
		now = e.run.introduce(context.WithoutCancel(ctx), c)
		e.agents[c.VariantKey] = now
	}
	return now
}

// Cache keeps attempts of runs by everything that decided what they did.
type Cache interface {
	Get(key string, into any) bool
	Put(key string, value any)
}

// cacheKey has the digest of the case, the number of the attempt, and the agent's description of
// itself.
func cacheKey(c Case, n int, agent *report.Agent) string {
	return canonical(struct {
		Kind, Digest string
		Attempt      int
		Agent        *report.Agent
	}{"attempt-1", c.digest, n, agent})
}

// cached returns the attempt that the cache has for one of this run. It took no time and cost
// nothing.
func (e *earlier) cached(ctx context.Context, c Case, n int) (a report.Attempt, ok bool) {
	if e.run.opts.Cache == nil {
		return a, false
	}
	agent := e.agent(ctx, c)
	if agent == nil || !e.run.opts.Cache.Get(cacheKey(c, n, agent), &a) {
		return report.Attempt{}, false
	}
	a.Cached, a.DurationMS, a.Workspace, a.DiffFile = true, 0, "", ""
	a.Notes = append(a.Notes, "from the cache: an earlier run has made this attempt")
	for i := range a.Steps {
		st := &a.Steps[i]
		st.DurationMS, st.Usage, st.CostUSD, st.Timing = 0, nil, nil, nil
	}
	return a, true
}

// keep adds an attempt to the cache, unless it has errors, which may be temporary.
func (r *run) keep(c Case, n int, a report.Attempt) {
	if r.opts.Cache != nil && a.Agent != nil && len(a.Errors) == 0 && !wasStopped(a) {
		r.opts.Cache.Put(cacheKey(c, n, a.Agent), a)
	}
}

func sameAgent(a, b *report.Agent) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Name == b.Name && a.Version == b.Version && a.ProtocolVersion == b.ProtocolVersion && canonical(a.Capabilities) == canonical(b.Capabilities)
}

package runtime

import (
	"context"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// earlier contains the attempts of an earlier run. They are reused if the digest of the case and the
// agent's self-description are still the same.
type earlier struct {
	run      *run
	attempts map[attemptKey]report.Attempt
	agents   map[string]*report.Agent // by variant: the agent's current self-description, nil if it does not start
	changed  int                      // attempts that were not reused only because the agent changed
}

// earlier returns the attempts of Options.Earlier, and adds their cost to that of the run, even if
// they cannot be reused.
func (r *run) earlier() *earlier {
	for _, l := range r.opts.Earlier {
		r.spend(l.Result)
	}
	return &earlier{run: r, attempts: finished(r.opts.Earlier, r.opts.RetryErrors), agents: map[string]*report.Agent{}}
}

// describeAgent starts an agent and returns its self-description, or nil if that fails.
func (r *run) describeAgent(ctx context.Context, c Case) *report.Agent {
	c.Scenario.Steps, c.Scenario.Setup.Workspace, c.Scenario.Setup.Tests = nil, nil, ""
	c.server = c.target
	a := r.try(ctx, c)
	if len(a.Errors) > 0 {
		return nil
	}
	return a.Agent
}

// find returns the attempt of the earlier run that replaces attempt n of a case.
func (e *earlier) find(ctx context.Context, c Case, n int) (a report.Attempt, ok bool) {
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
	now, ok := e.agents[c.VariantKey]
	if !ok {
		now = e.run.describeAgent(context.WithoutCancel(ctx), c)
		e.agents[c.VariantKey] = now
	}
	return now
}

// Cache stores attempts across runs. A key covers everything that determines the attempt.
type Cache interface {
	Get(key string, into any) bool
	Put(key string, value any)
}

// cacheKey returns the key of an attempt: the digest of the case, the number of the attempt, and the
// agent's self-description.
func cacheKey(c Case, n int, agent *report.Agent) string {
	return canonical(struct {
		Kind, Digest string
		Attempt      int
		Agent        *report.Agent
	}{"attempt-1", c.digest, n, agent})
}

// cached returns attempt n of a case from the cache, with zero time and cost.
func (e *earlier) cached(ctx context.Context, c Case, n int) (a report.Attempt, ok bool) {
	if e.run.opts.Cache == nil {
		return a, false
	}
	agent := e.agent(ctx, c)
	if agent == nil || !e.run.opts.Cache.Get(cacheKey(c, n, agent), &a) {
		return report.Attempt{}, false
	}
	a.Cached, a.DurationMS, a.Workspace, a.DiffFile = true, 0, "", ""
	a.Notes = append(a.Notes, "from the cache: an earlier run made this attempt")
	for i := range a.Steps {
		st := &a.Steps[i]
		st.DurationMS, st.Usage, st.CostUSD, st.Timing = 0, nil, nil, nil
	}
	return a, true
}

// cacheResult adds an attempt to the cache, unless it has errors, which may be temporary.
func (r *run) cacheResult(c Case, n int, a report.Attempt) {
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

package runtime

import (
	"context"
	"fmt"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// earlierRun decides which attempts of an earlier process are reused: those whose case still has the
// same digest, and whose agent still has the same self-description.
type earlierRun struct {
	run    *run
	agents map[string]*report.Agent // by variant: the agent's current self-description, nil if it does not start
	hashes map[string]int64         // of agents
	done   []uint64                 // bits for the indexes of selected cases whose result is complete; nil without a store
}

func newEarlierRun(r *run) *earlierRun {
	return &earlierRun{run: r, agents: map[string]*report.Agent{}, hashes: map[string]int64{}}
}

// match compares the store with the plan. It returns the store's error if the store has finished
// attempts that do not belong to the plan and that it may not remove.
func (e *earlierRun) match(ctx context.Context, p *Plan) error {
	o := &e.run.opts
	if o.Store == nil || !o.Store.Earlier() {
		return nil
	}
	e.done = make([]uint64, p.caseCount/64+1)
	for index, c := range p.casesWithDigests(o.Filter == nil) {
		keys := c.keys()
		stored, ok := o.Store.Has(keys)
		if !ok {
			continue
		}
		if _, known := e.agents[c.VariantKey]; !known {
			e.agent(ctx, p.newCase(c.Position, false))
		}
		selected := o.Filter == nil || o.Filter(c)
		complete, err := o.Store.Keep(report.Planned{Key: keys[0], StoredKey: stored, Index: index, Repeat: int(c.Repeat), Agent: e.hashes[c.VariantKey], Selected: selected})
		if err != nil {
			return err
		}
		if !complete || !selected {
			continue
		}
		e.done[index/64] |= 1 << (index % 64)
		if o.StoreOnly {
			e.run.finish(index, report.Scenario{Reused: int(c.Repeat), Agent: e.agents[c.VariantKey]}, true)
		}
	}
	err := o.Store.Matched(p.caseCount)
	for _, agent := range e.agents {
		if err != nil && agent == nil {
			return fmt.Errorf("%w (the agent does not start)", err)
		}
	}
	return err
}

// isDone reports whether the store has the complete result of the case at an index.
func (e *earlierRun) isDone(index int) bool {
	return e.done != nil && e.done[index/64]&(1<<(index%64)) != 0
}

// describeAgent starts an agent and returns its self-description, or nil if that fails.
func (r *run) describeAgent(ctx context.Context, c Case) *report.Agent {
	c.Scenario.Steps, c.Scenario.Setup.Workspace, c.Scenario.Setup.Tests = nil, nil, ""
	c.server = c.target
	a := r.attemptCase(ctx, c)
	if len(a.Errors) > 0 {
		return nil
	}
	return a.Agent
}

// agent returns the current self-description of a case's agent.
func (e *earlierRun) agent(ctx context.Context, c Case) *report.Agent {
	now, ok := e.agents[c.VariantKey]
	if !ok {
		now = e.run.describeAgent(context.WithoutCancel(ctx), c)
		e.agents[c.VariantKey], e.hashes[c.VariantKey] = now, agentHash(now)
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
	return canonicalJSON(struct {
		Kind, Digest string
		Attempt      int
		Agent        *report.Agent
	}{"attempt-1", c.digest, n, agent})
}

// cached returns attempt n of a case from the cache, with zero time and cost.
func (e *earlierRun) cached(ctx context.Context, c Case, n int) (a report.Attempt, ok bool) {
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

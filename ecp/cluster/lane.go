package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/jet"
)

// Lane is the scope of a limit on concurrent attempts: a model in one kind of environment.
type Lane struct {
	Model string `json:"model"` // or the URL of the agent
	Kind  string `json:"kind"`
	Limit int    `json:"limit"` // concurrent attempts, over all workers and runs
}

// defaultLimit is the limit of a lane if none is set.
const defaultLimit = 1000

// laneOf returns the lane of a case's attempts. An agent behind a URL has one conversation at a
// time.
func (d *Doc) laneOf(p *runtime.Plan, c runtime.Case) (name string, l Lane) {
	l = Lane{Model: p.Model(c), Kind: Kind(c.Scenario.Setup), Limit: defaultLimit}
	if runtime.IsURL(c.Target()) {
		l.Model, l.Limit = c.Target(), 1
	}
	if n := d.Limits[l.Model]; n > 0 && l.Limit != 1 {
		l.Limit = n
	}
	return laneToken(l.Model, l.Kind), l
}

// openLane creates the consumer of a lane. hasOwnLimit means that the run sets the lane's limit; the
// limit is that of the latest run that sets one.
func (c *Cluster) openLane(ctx context.Context, name string, l Lane, hasOwnLimit bool) error {
	if err := c.checkLane(ctx, name, l, hasOwnLimit); err != nil {
		return err
	}
	var known Lane
	if _, err := c.get(ctx, laneKey(name), &known); err == nil && !hasOwnLimit {
		l.Limit = known.Limit
	}
	return c.SetLimit(ctx, name, l)
}

// checkLane refuses a second lane for a model if either lane has a limit, because the lanes together
// could exceed it.
func (c *Cluster) checkLane(ctx context.Context, name string, l Lane, hasOwnLimit bool) error {
	lanes, err := c.Lanes(ctx)
	if err != nil {
		return err
	}
	for _, other := range lanes {
		if other.Name != name && other.Model == l.Model && (hasOwnLimit || other.Limit != defaultLimit) {
			return fmt.Errorf("the limit of %q cannot be enforced: the model is used in %s and in %s, which have separate lanes (%s, %s)", l.Model, l.Kind, other.Kind, name, other.Name)
		}
	}
	return nil
}

// SetLimit sets how many attempts of a lane may run at the same time. It takes effect immediately.
func (c *Cluster) SetLimit(ctx context.Context, name string, l Lane) error {
	if !validToken(name) {
		return fmt.Errorf("%q cannot be the name of a lane", name)
	}
	if l.Limit < 1 || l.Limit > 10_000 {
		return fmt.Errorf("the limit of lane %s must be 1 to 10000, not %d", name, l.Limit)
	}
	if err := c.conn.EnsureConsumer(ctx, workStream, jet.ConsumerSpec{Name: "lane-" + name, Subject: laneWork(name), Lease: c.lease, MaxInFlight: l.Limit}); err != nil {
		return err
	}
	return c.put(ctx, laneKey(name), l)
}

// NamedLane is a lane with its name.
type NamedLane struct {
	Name string
	Lane
}

// Lanes returns all lanes, sorted by name.
func (c *Cluster) Lanes(ctx context.Context) ([]NamedLane, error) {
	keys, err := c.keys(ctx, laneKey("*"))
	if err != nil {
		return nil, err
	}
	out := make([]NamedLane, len(keys))
	for i, key := range keys {
		out[i].Name = strings.TrimPrefix(key, laneKey(""))
		if _, err := c.get(ctx, key, &out[i].Lane); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Lane returns a lane by its name.
func (c *Cluster) Lane(ctx context.Context, name string) (l Lane, err error) {
	if _, err := c.runs(ctx); err != nil {
		return l, err
	}
	_, err = c.get(ctx, laneKey(name), &l)
	if errors.Is(err, jet.ErrNotFound) {
		return l, fmt.Errorf("there is no lane %s; `ecp cluster runs` lists the lanes", name)
	}
	return l, err
}

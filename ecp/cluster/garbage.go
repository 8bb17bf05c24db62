package cluster

import (
	"context"
	"fmt"
	"time"
)

// fixtureAge is how long fixtures, the files of a manifest, are kept without a run. Submit uploads them
// again when they have reached half of this age, so that they are not removed before the run exists.
const fixtureAge = 24 * time.Hour

// Garbage is what CollectGarbage removed.
type Garbage struct {
	Runs     []string
	Fixtures int
	Bytes    int64 // of fixtures
}

// CollectGarbage removes the runs that have ended and whose results have expired, and the fixtures that
// no run refers to once they are older than fixtureAge. It is safe while other processes submit runs.
func (c *Cluster) CollectGarbage(ctx context.Context, now time.Time) (g Garbage, err error) {
	runs, err := c.List(ctx)
	if err != nil {
		return g, err
	}
	for _, r := range runs {
		if !r.State.over() || now.Sub(r.Doc.Created) < resultAge {
			continue
		}
		if err := c.removeRun(ctx, r.Doc.Run); err != nil {
			return g, fmt.Errorf("remove the run %s: %w", r.Doc.Run, err)
		}
		g.Runs = append(g.Runs, r.Doc.Run)
	}
	fixtures, err := c.conn.Blobs(ctx, fixturesBucket)
	if err != nil {
		return g, err
	}
	all, err := fixtures.List(ctx)
	if err != nil {
		return g, err
	}
	if runs, err = c.List(ctx); err != nil { // after the list of files, because runs may have been added
		return g, err
	}
	used := map[string]bool{}
	for _, r := range runs {
		used[r.Doc.Bundle] = true // the digest of its fixtures
	}
	for _, f := range all {
		if used[f.Digest] {
			continue
		}
		removed, err := fixtures.DeleteOlder(ctx, f.Digest, now.Add(-fixtureAge))
		if err != nil {
			return g, fmt.Errorf("remove %s from %s: %w", f.Digest, fixturesBucket, err)
		}
		if removed {
			g.Fixtures++
			g.Bytes += f.Size
		}
	}
	return g, nil
}

// removeRun removes all data of a run, the document and then the state last. List finds runs by their
// documents, so a removal that was interrupted earlier is repeated the next time. A state without a
// document takes a few bytes and has no effect.
func (c *Cluster) removeRun(ctx context.Context, run string) error {
	kv, err := c.runs(ctx)
	if err != nil {
		return err
	}
	work, err := c.conn.Stream(ctx, workStream)
	if err != nil {
		return err
	}
	plan, err := c.conn.Stream(ctx, planStream)
	if err != nil {
		return err
	}
	for _, step := range []func() error{
		func() error { return work.Purge(ctx, runWork(run)) },
		func() error { return plan.Purge(ctx, planSubject(run)) },
		func() error { return c.conn.DeleteConsumer(ctx, planStream, "plan-"+run) },
		func() error { return c.conn.DeleteStream(ctx, resultStreams+run) },
		func() error { return kv.Delete(ctx, statKey(run)) },
		func() error { return kv.Delete(ctx, docKey(run)) },
		func() error { return kv.Delete(ctx, stateKey(run)) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

package cluster

import (
	"slices"
	"testing"
	"time"
)

// Files that no run refers to are removed after a day. A run that has ended is removed when its
// results have expired, and its files with it. A run that has not ended, and its files, stay.
func TestCollectGarbage(t *testing.T) {
	r := newRig(t, 1)
	c := r.dial(RoleController)
	ended, running := r.submit(c, r.manifest(1, ":", ""), Submission{}), r.submit(c, r.manifest(2, ":", ""), Submission{})
	r.must(c.setState(t.Context(), ended.Run, State{State: StateFinished}))
	fixtures, err := c.conn.Blobs(t.Context(), fixturesBucket)
	r.must(err)
	_, err = fixtures.PutBytes(t.Context(), []byte("uploaded, and its run was never made"))
	r.must(err)
	usable := func(d *Stored) bool {
		_, err := c.Fetch(t.Context(), d, t.TempDir())
		return err == nil
	}
	const day = 24 * time.Hour
	for _, step := range []struct {
		after    time.Duration
		fixtures int
		runs     []string
	}{
		{time.Hour, 0, nil},
		{day + time.Hour, 1, nil},
		{resultAge + time.Hour, 1, []string{ended.Run}},
		{resultAge + 2*time.Hour, 0, nil},
	} {
		g, err := c.CollectGarbage(t.Context(), time.Now().Add(step.after))
		if err != nil || g.Fixtures != step.fixtures || !slices.Equal(g.Runs, step.runs) {
			t.Errorf("after %s: %+v, %v", step.after, g, err)
		}
		if !usable(running) || usable(ended) != (step.after < resultAge) {
			t.Errorf("after %s, the files are usable: of the running run %v, want true; of the ended run %v, want %v", step.after, usable(running), usable(ended), step.after < resultAge)
		}
	}
	runs, err := c.List(t.Context())
	if err != nil || len(runs) != 1 || runs[0].Doc.Run != running.Run {
		t.Errorf("%+v, %v", runs, err)
	}
	if _, err := c.conn.Stream(t.Context(), resultStreams+ended.Run); err == nil {
		t.Error("the results are still there")
	}
}

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/jet"
)

// States of a run.
const (
	StateRunning   = "running"
	StatePaused    = "paused"    // no more attempts are published; published ones are still made
	StateStopping  = "stopping"  // a budget is used up; running attempts continue until they end
	StateCancelled = "cancelled" // running attempts are stopped
	StateFinished  = "finished"
)

// State is the state of a run.
type State struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// over reports whether no more attempts may start.
func (s State) over() bool {
	return s.State == StateStopping || s.State == StateCancelled || s.State == StateFinished
}

// Progress is the progress of a run.
type Progress struct {
	Planned int     `json:"planned"`
	Done    int     `json:"done"`
	Passed  int     `json:"passed"`
	Failed  int     `json:"failed"`
	Errors  int     `json:"errors"`
	CostUSD float64 `json:"cost_usd"`
}

// Summary is a run in a list.
type Summary struct {
	Doc      *Stored
	State    State
	Progress Progress
}

// stateTries limits how often a change of the state is retried because another process changed it
// first.
const stateTries = 20

// setState changes the state of a run, unless its state is final.
func (c *Cluster) setState(ctx context.Context, run string, to State) error {
	kv, err := c.runs(ctx)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(to)
	if err != nil {
		return err
	}
	for range stateTries {
		var now State
		revision, err := c.get(ctx, stateKey(run), &now)
		if err != nil && !errors.Is(err, jet.ErrNotFound) {
			return err
		}
		if err == nil && (now == to || now.State == StateFinished || now.State == StateCancelled) {
			return nil
		}
		if err = kv.Update(ctx, stateKey(run), raw, revision); !errors.Is(err, jet.ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("change the state of the run %s: other processes keep changing it", run)
}

// Control pauses, resumes or cancels a run.
func (c *Cluster) Control(ctx context.Context, run, state string) error {
	if _, err := c.Doc(ctx, run); err != nil {
		return err
	}
	now, err := c.State(ctx, run)
	if err != nil {
		return err
	}
	if now.State == StateFinished || now.State == StateCancelled {
		return fmt.Errorf("the run %s is already %s", run, now.State)
	}
	return c.setState(ctx, run, State{State: state})
}

// State returns the state of a run.
func (c *Cluster) State(ctx context.Context, run string) (s State, err error) {
	if _, err = c.get(ctx, stateKey(run), &s); err != nil {
		err = fmt.Errorf("read the state of the run %s: %w", run, err)
	}
	return s, err
}

// List returns all runs, oldest first.
func (c *Cluster) List(ctx context.Context) ([]Summary, error) {
	keys, err := c.keys(ctx, "*.doc")
	if err != nil {
		return nil, err
	}
	var out []Summary
	for _, key := range keys {
		run := strings.TrimSuffix(key, ".doc")
		var s Summary
		if s.Doc, err = c.Doc(ctx, run); err != nil {
			return out, err
		}
		if s.State, err = c.State(ctx, run); err != nil {
			return out, err
		}
		if _, err := c.get(ctx, statKey(run), &s.Progress); err != nil && !errors.Is(err, jet.ErrNotFound) {
			return out, err
		}
		out = append(out, s)
	}
	return out, nil
}

// watchStates calls changed with the states of runs whose keys match, the current ones first, until
// ctx ends. It returns when the current ones are known.
func (c *Cluster) watchStates(ctx context.Context, pattern string, changed func(run string, s State)) error {
	return c.watch(ctx, pattern, func(key string, value []byte) {
		run, ok := strings.CutSuffix(key, ".state")
		var s State
		if ok && json.Unmarshal(value, &s) == nil {
			changed(run, s)
		}
	})
}

// watch calls changed for keys of the bucket of runs, from one goroutine, until ctx ends. It
// returns when the current values are known.
func (c *Cluster) watch(ctx context.Context, pattern string, changed func(key string, value []byte)) error {
	err := c.conn.RetryOutages(ctx, "watch the bucket of runs", func() error {
		kv, err := c.runs(ctx)
		if err != nil {
			return err
		}
		return kv.Watch(ctx, pattern, changed)
	})
	if err != nil {
		return fmt.Errorf("watch the bucket of runs: %w", err)
	}
	return nil
}

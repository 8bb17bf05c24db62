package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// States of a run.
const (
	StateRunning   = "running"
	StatePaused    = "paused"    // no more attempts are handed out; those handed out are made
	StateStopping  = "stopping"  // a budget is used up: running attempts continue to their end
	StateCancelled = "cancelled" // running attempts are stopped
	StateFinished  = "finished"
)

// State says whether a run continues.
type State struct {
	State  string `json:"state"`
	Reason string `json:"reason,omitempty"`
}

// over reports whether no more attempts begin.
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

// stateTries bounds how often a change is tried again after others changed the state first.
const stateTries = 20

// setState changes the state of a run. A final state does not change any more.
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
		entry, err := kv.Get(ctx, stateKey(run))
		if errors.Is(err, jetstream.ErrKeyNotFound) {
			if _, err = kv.Create(ctx, stateKey(run), raw); err == nil {
				return nil
			}
			continue
		}
		if err != nil {
			return err
		}
		var now State
		if err := json.Unmarshal(entry.Value(), &now); err != nil {
			return err
		}
		if now == to || now.State == StateFinished || now.State == StateCancelled {
			return nil
		}
		if _, err = kv.Update(ctx, stateKey(run), raw, entry.Revision()); err == nil {
			return nil
		} else if !taken(err) {
			return err
		}
	}
	return fmt.Errorf("change the state of the run %s: others keep changing it", run)
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
		return fmt.Errorf("the run %s is %s already", run, now.State)
	}
	return c.setState(ctx, run, State{State: state})
}

// State returns the state of a run.
func (c *Cluster) State(ctx context.Context, run string) (s State, err error) {
	kv, err := c.runs(ctx)
	if err != nil {
		return s, err
	}
	entry, err := kv.Get(ctx, stateKey(run))
	if err != nil {
		return s, fmt.Errorf("read the state of the run %s: %w", run, err)
	}
	return s, json.Unmarshal(entry.Value(), &s)
}

// List returns all runs, oldest first.
func (c *Cluster) List(ctx context.Context) ([]Summary, error) {
	kv, err := c.runs(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := kv.Keys(ctx)
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(keys)
	var out []Summary
	for _, key := range keys {
		run, ok := strings.CutSuffix(key, ".doc")
		if !ok {
			continue
		}
		var s Summary
		if s.Doc, err = c.Doc(ctx, run); err != nil {
			return out, err
		}
		if s.State, err = c.State(ctx, run); err != nil {
			return out, err
		}
		if entry, err := kv.Get(ctx, statKey(run)); err == nil {
			if err := json.Unmarshal(entry.Value(), &s.Progress); err != nil {
				return out, err
			}
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
	var w jetstream.KeyWatcher
	err := c.throughOutages(ctx, "watch the bucket of runs", func() error {
		kv, err := c.runs(ctx)
		if err != nil {
			return err
		}
		w, err = kv.Watch(ctx, pattern)
		return err
	})
	if err != nil {
		return fmt.Errorf("watch the bucket of runs: %w", err)
	}
	for entry := range w.Updates() {
		if entry == nil {
			break // all current values were read
		}
		if entry.Operation() == jetstream.KeyValuePut {
			changed(entry.Key(), entry.Value())
		}
	}
	go func() {
		defer func() { _ = w.Stop() }()
		for {
			select {
			case <-ctx.Done():
				return
			case entry, ok := <-w.Updates():
				if !ok {
					return
				}
				if entry != nil && entry.Operation() == jetstream.KeyValuePut {
					changed(entry.Key(), entry.Value())
				}
			}
		}
	}()
	return nil
}

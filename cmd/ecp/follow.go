package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/cluster"
	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const watchHelp = `Shows the progress of a cluster's run until its end, and writes its reports. With a controller's
key, it also assigns the run's work to workers. If several do so, one is active; if that one is lost,
another takes over. You can stop it and start it again at any time, on any machine.

Exit codes are those of ecp run; 130 if it was interrupted: the next ecp watch continues the run.`

// watchFlags are the flags of ecp watch.
type watchFlags struct {
	clusterFlags
	run    runFlags
	noLead bool
}

func watchCommand(s streams) *cobra.Command {
	f := watchFlags{run: runFlags{jobs: 1, repeat: 1, votes: 1}}
	cmd := &cobra.Command{
		Use: "watch RUN", Short: "Assign the work of a cluster's run, show its progress, and write its reports", Long: watchHelp, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.run.check(cmd); err != nil {
				return usage.New(err)
			}
			return f.follow(cmd.Context(), args[0], s)
		},
	}
	f.register(cmd)
	f.run.reportFlags(cmd.Flags())
	cmd.Flags().BoolVar(&f.noLead, "no-lead", false, "assign no work; a viewer's key is enough")
	return cmd
}

func (f *watchFlags) follow(ctx context.Context, run string, s streams) error {
	if err := f.run.checkOutputs(ctx); err != nil {
		return err
	}
	role := cluster.RoleController
	if f.noLead {
		role = cluster.RoleViewer
	}
	c, err := f.dial(ctx, role, s)
	if err != nil {
		return err
	}
	defer c.Close()
	if f.run.artifacts != "" {
		if err := os.MkdirAll(f.run.artifacts, 0o755); err != nil {
			return fmt.Errorf("--artifacts: %w", err)
		}
	}
	p := newProgress(s.err, f.run.verbose && !f.run.noVerbose, "a worker", "")
	r, err := followRun(ctx, c, run, cluster.FollowOptions{Lead: !f.noLead, Artifacts: f.run.artifacts}, p.event)
	p.end()
	if r == nil {
		return err
	}
	if err := errors.Join(f.run.finish(r, s), err); err != nil {
		return err
	}
	return f.run.verdict(ctx, r)
}

// followRun returns a report of the results of a run.
func followRun(ctx context.Context, c *cluster.Cluster, run string, o cluster.FollowOptions, show func(runtime.Event)) (*report.Report, error) {
	d, err := c.Doc(ctx, run)
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ecp-watch-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	m, err := c.Fetch(ctx, d, dir)
	if err != nil {
		return nil, err
	}
	options := runtime.Options{Version: version, Path: os.Getenv("PATH"), Getenv: os.Getenv, Now: time.Now, NewID: uuid.NewString, Watch: show}
	if err := d.Settings.Apply(&options); err != nil {
		return nil, err
	}
	if limit := options.Budget.Time; limit > 0 { // the time counts from the creation of the run
		options.Budget.Time = max(time.Until(d.Created.Add(limit)), time.Millisecond)
	}
	plan, err := runtime.NewPlan(m, options)
	if err != nil {
		return nil, err
	}
	follower := c.Follow(d, plan, o)
	options.Scheduler = follower
	r, err := runtime.Run(ctx, plan, options)
	if err = errors.Join(err, follower.Err()); err != nil {
		return nil, err
	}
	r.RunID, r.Manifest, r.Target, r.StartedAt = d.Run, d.Manifest, d.Target, d.Created.Truncate(time.Millisecond)
	return r, nil
}

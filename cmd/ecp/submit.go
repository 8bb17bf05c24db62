package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/cluster"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const submitHelp = `Creates a run of a manifest in a cluster, and prints its id. The manifest is uploaded together
with the files in its folder that it refers to. ecp worker executes the attempts, and ecp watch RUN
assigns them to workers.

Workers start the programs that the manifest names, but only if they trust the key of --nkey.

Exit codes: 0; 1 the manifest is invalid or the cluster failed; 2 wrong usage.`

// submitFlags are the flags of ecp submit.
type submitFlags struct {
	clusterFlags
	run      runFlags
	limits   []string
	include  []string
	replicas int
}

func submitCommand(s streams) *cobra.Command {
	f := submitFlags{run: runFlags{jobs: 1, maxNewFail: -1, minPassRate: -1}}
	cmd := &cobra.Command{
		Use: "submit MANIFEST", Short: "Create a run in a cluster", Long: submitHelp,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.run.check(cmd); err != nil {
				return usage.New(err)
			}
			return f.submit(cmd.Context(), s)
		},
	}
	f.register(cmd)
	flags := cmd.Flags()
	manifestFlag(cmd, &f.run.manifest)
	f.run.settingsFlags(flags)
	flags.StringArrayVar(&f.limits, "limit", nil, "MODEL=N: at most N attempts with this model (key model of config) at the same time, on all workers and for all runs (repeatable)")
	flags.StringArrayVar(&f.include, "include", nil, "another file or folder, in the manifest's folder, that agents need (repeatable)")
	flags.IntVar(&f.replicas, "replicas", 0, "how many NATS servers store each item (default: 3 if there are three, else 1)")
	return cmd
}

func (f *submitFlags) submit(ctx context.Context, s streams) error {
	o, err := f.run.options(ctx, s)
	if err != nil {
		return err
	}
	limits, err := parseLimits(f.limits)
	if err != nil {
		return err
	}
	m, warnings, err := runtime.Load(ctx, f.run.manifest)
	for i := range warnings {
		fmt.Fprintln(s.err, warnings[i].Error())
	}
	if err != nil {
		return err
	}
	if len(f.run.targets) > 1 {
		return usage.Errorf("in a cluster there can be one --target; workers share the work")
	}
	if len(f.run.targets) == 1 {
		m.Target = f.run.targets[0]
	}
	if !m.Checks() {
		return fmt.Errorf("%s: nothing in this manifest is checked", f.run.manifest)
	}
	plan, err := runtime.NewPlan(m, o) // reports errors here, instead of on each worker
	if err != nil {
		return err
	}
	if plan.Total == 0 {
		return f.run.nothingSelected(m)
	}
	c, err := f.dial(ctx, cluster.RoleController, s)
	if err != nil {
		return err
	}
	defer c.Close()
	d, err := c.Submit(ctx, cluster.Submission{
		Manifest: m, Include: f.include, Limits: limits, Replicas: f.replicas, Program: version, Now: time.Now,
		Settings: cluster.Settings{
			Timeout: o.Timeout, StartTimeout: o.StartTimeout, Repeat: o.Repeat, Filter: f.run.filter, Config: o.Config, Variants: o.Variants, Budget: o.Budget,
			JudgeModel: cmp.Or(f.run.judge, os.Getenv("ECP_LLM_JUDGE_MODEL")), JudgeVotes: f.run.votes,
		},
	})
	if err != nil {
		return err
	}
	fmt.Fprintln(s.out, d.Run)
	return nil
}

func parseLimits(list []string) (map[string]int, error) {
	out := map[string]int{}
	for _, text := range list {
		model, number, ok := strings.Cut(text, "=")
		n, err := strconv.Atoi(number)
		if !ok || model == "" || err != nil || n < 1 {
			return nil, usage.Errorf("--limit must be MODEL=N, not %q", text)
		}
		out[model] = n
	}
	return out, nil
}

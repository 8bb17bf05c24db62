package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/cluster"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const workerHelp = `Executes attempts of a cluster's runs until Ctrl-C. It then starts no more attempts, and stops
running ones after --grace seconds.

The worker starts the programs that manifests name, but only for runs that a key of --trust has signed
(ecp cluster keys prints the controller's key), and only in the environments of --env: local (in the
sandbox), docker, podman, or host (no isolation: agents can do what this user can). Model keys come
from this worker's own environment variables.

Exit codes: 0; 1 the cluster cannot be reached; 2 wrong usage.`

// workerFlags are the flags of ecp worker.
type workerFlags struct {
	clusterFlags
	jobs         int
	grace        float64
	kinds, trust []string
	lanes        []string
	name         string
}

func workerCommand(s streams) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use: "worker", Short: "Execute attempts of a cluster's runs", Long: workerHelp, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.work(cmd.Context(), s)
		},
	}
	f.register(cmd)
	host, _ := os.Hostname()
	flags := cmd.Flags()
	flags.IntVarP(&f.jobs, "jobs", "j", 1, "attempts at the same time")
	flags.StringSliceVar(&f.kinds, "env", []string{runtime.KindLocal}, "environments for attempts: local, docker, podman, host")
	flags.StringArrayVar(&f.trust, "trust", nil, "public key that signs runs to execute; any: all runs, also unsigned ones (repeatable)")
	flags.StringSliceVar(&f.lanes, "lanes", nil, "only attempts of these lanes (default: all lanes of its environments)")
	flags.Float64Var(&f.grace, "grace", 60, "seconds that running attempts may continue after Ctrl-C")
	flags.StringVar(&f.name, "name", host, "name of this worker in results")
	return cmd
}

func (f *workerFlags) check() error {
	for _, kind := range f.kinds {
		if err := usage.Choice("--env", kind, runtime.KindLocal, runtime.KindDocker, runtime.KindPodman, cluster.KindHost); err != nil {
			return err
		}
	}
	switch {
	case len(f.trust) == 0:
		return usage.Errorf("--trust is missing: the public key of the user who submits runs (ecp cluster keys prints it), or any")
	case f.jobs < 1:
		return usage.Errorf("--jobs must be 1 or more")
	case f.grace < 0:
		return usage.Errorf("--grace must not be negative")
	}
	return nil
}

func (f *workerFlags) work(ctx context.Context, s streams) error {
	c, err := f.dial(ctx, cluster.RoleWorker, s)
	if err != nil {
		return err
	}
	defer c.Close()
	dir, err := os.MkdirTemp("", "ecp-worker-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	network := netclient.New(os.Getenv)
	defer network.Close()
	fmt.Fprintf(s.out, "ecp: worker %s, %d attempts at a time\n", printable(f.name), f.jobs)
	return c.Work(ctx, cluster.WorkerOptions{
		Name: f.name + " " + rand.Text()[:8], Jobs: f.jobs, Kinds: f.kinds, Trust: f.trust, Lanes: f.lanes, Dir: dir, Grace: time.Duration(f.grace * float64(time.Second)),
		Prepare: func(settings cluster.Settings) (runtime.Options, func(), error) {
			run := runFlags{judge: settings.JudgeModel, votes: max(settings.JudgeVotes, 1)}
			say := func(text string) { fmt.Fprintln(s.err, "ecp:", printable(text)) }
			judge := run.newJudge(say)
			o := runtime.Options{
				Version: version, Tools: run.graders(judge), Judge: run.judgeIdentity(), Warn: say, Path: os.Getenv("PATH"), Getenv: os.Getenv, Now: time.Now, NewID: uuid.NewString,
				Client: network.Client(netclient.Options{HTTP1: true, Connect: settings.Timeout}),
			}
			var err error // several runs can be prepared at the same time
			o.Supervisor, err = os.Executable()
			return o, func() { judge.Close() }, err
		},
	})
}

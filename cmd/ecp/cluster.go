package main

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/cluster"
	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// clusterFlags are the flags for connecting to a cluster.
type clusterFlags struct {
	nats, nkey, ca string
}

func (f *clusterFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.nats, "nats", "", "NATS servers of the cluster: tls://HOST:4222; separate several with commas")
	flags.StringVar(&f.nkey, "nkey", "", "file with the nkey of this role (ecp cluster keys creates it)")
	flags.StringVar(&f.ca, "tls-ca", "", "file with the CA certificates that verify the servers")
}

// dial connects as a role.
func (f *clusterFlags) dial(ctx context.Context, role string, s streams) (*cluster.Cluster, error) {
	if f.nats == "" {
		return nil, usage.Errorf("--nats is missing: the URL of the cluster's NATS servers")
	}
	seed, err := readSeed(ctx, f.nkey)
	if err != nil {
		return nil, err
	}
	log := slog.New(slog.NewTextHandler(s.err, &slog.HandlerOptions{Level: slog.LevelInfo}))
	return cluster.Dial(ctx, cluster.Options{URL: f.nats, Seed: seed, CA: f.ca, Role: role, Log: log})
}

// readSeed reads the file of --nkey, if there is one.
func readSeed(ctx context.Context, path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	seed, err := jet.ReadSeed(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("--nkey: %w", err)
	}
	return seed, nil
}

const clusterHelp = `Sets up a cluster that evaluates on many machines, and controls its runs.

  ecp cluster keys DIR     creates a key for each role, and the NATS configuration with them
  ecp submit MANIFEST      creates a run
  ecp worker               executes attempts of runs
  ecp watch RUN            assigns work to workers, shows the progress, and writes the reports`

func clusterCommand(s streams) *cobra.Command {
	cmd := &cobra.Command{Use: "cluster", Short: "Set up a cluster and control its runs", Long: clusterHelp}
	var f clusterFlags
	keys := &cobra.Command{
		Use: "keys DIR", Short: "Create a key for each role, and the NATS configuration with them", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error { return makeKeys(args[0], s) },
	}
	runs := &cobra.Command{
		Use: "runs", Short: "List runs", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.list(cmd.Context(), s) },
	}
	f.register(runs)
	cmd.AddCommand(keys, runs)
	for _, c := range []struct{ name, short, state string }{
		{"cancel", "End a run: stop its running attempts and start no others", cluster.StateCancelled},
		{"pause", "Pause a run: attempts already assigned finish, and no others start", cluster.StatePaused},
		{"resume", "Continue a paused run", cluster.StateRunning},
	} {
		control := &cobra.Command{
			Use: c.name + " RUN", Short: c.short, Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				k, err := f.dial(cmd.Context(), cluster.RoleController, s)
				if err != nil {
					return err
				}
				defer k.Close()
				return k.Control(cmd.Context(), args[0], c.state)
			},
		}
		f.register(control)
		cmd.AddCommand(control)
	}
	limit := &cobra.Command{
		Use: "limit LANE N", Short: "Set how many attempts of a lane may run at the same time", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return f.limit(cmd.Context(), args[0], args[1], s) },
	}
	f.register(limit)
	cmd.AddCommand(limit)
	return cmd
}

// makeKeys writes the keys of all roles.
func makeKeys(dir string, s streams) error {
	config, trust, err := cluster.WriteKeys(dir)
	if err != nil {
		return err
	}
	fmt.Fprintf(s.out, "%s: include it in the configuration of the nats-servers\nworkers trust: --trust %s\n", config, trust)
	return nil
}

func (f *clusterFlags) list(ctx context.Context, s streams) error {
	c, err := f.dial(ctx, cluster.RoleViewer, s)
	if err != nil {
		return err
	}
	defer c.Close()
	runs, err := c.List(ctx)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RUN\tCREATED\tSTATE\tDONE\tPASSED\tFAILED\tERRORS\tCOST\tNAME")
	for _, r := range runs {
		p := r.Progress
		fmt.Fprintf(w, "%s\t%s\t%s\t%d/%d\t%d\t%d\t%d\t$%.2f\t%s\n", r.Doc.Run, r.Doc.Created.Local().Format(time.DateTime), r.State.State, p.Done, p.Planned, p.Passed, p.Failed, p.Errors, p.CostUSD, printable(r.Doc.Name))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	lanes, err := c.Lanes(ctx)
	for _, l := range lanes {
		fmt.Fprintf(s.out, "lane %s: at most %d attempts at the same time\n", l.Name, l.Limit)
	}
	return err
}

func (f *clusterFlags) limit(ctx context.Context, lane, limit string, s streams) error {
	n, err := strconv.Atoi(limit)
	if err != nil {
		return usage.Errorf("%q is not a number of attempts", limit)
	}
	c, err := f.dial(ctx, cluster.RoleController, s)
	if err != nil {
		return err
	}
	defer c.Close()
	l, err := c.Lane(ctx, lane)
	if err != nil {
		return err
	}
	l.Limit = n
	return c.SetLimit(ctx, lane, l)
}

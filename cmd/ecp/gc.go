package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/cluster"
)

func gcCommand(s streams) *cobra.Command {
	var f clusterFlags
	cmd := &cobra.Command{
		Use: "gc", Short: "Remove expired runs of a cluster, and files that no run refers to", Args: cobra.NoArgs,
		Long: `Removes from a cluster the runs that are over and whose results have expired (after 30 days), and
the manifests and files that no run has referred to for a day. It is safe while others submit runs.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.dial(cmd.Context(), cluster.RoleController, s)
			if err != nil {
				return err
			}
			defer c.Close()
			g, err := c.CollectGarbage(cmd.Context(), time.Now())
			fmt.Fprintf(s.out, "Removed %d runs and %d uploads (%.1f MiB)\n", len(g.Runs), g.Fixtures, float64(g.Bytes)/(1<<20))
			return err
		},
	}
	f.register(cmd)
	return cmd
}

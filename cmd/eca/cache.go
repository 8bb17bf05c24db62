package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/internal/usage"
)

// cacheCommand is `eca cache`.
func cacheCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	cmd := &cobra.Command{Use: "cache", Short: "Remove eca's caches", Args: cobra.NoArgs}
	var sandbox bool
	clear := &cobra.Command{
		Use:   "clear --sandbox",
		Short: "Remove the caches of sandboxed commands",
		Long:  "Removes what sandboxed commands in all workspaces added to the caches of build tools.\nYour own caches stay as they are. The flag --sandbox is required.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !sandbox {
				return usage.Errorf("say what to clear: --sandbox")
			}
			d, err := daemonForCwd(*sf, stderr)
			if err != nil {
				return err
			}
			defer d.Close()
			dir, err := d.ClearSandboxCaches()
			if err != nil {
				return fmt.Errorf("cannot clear %s: %w", dir, err)
			}
			_, err = fmt.Fprintf(stdout, "Cleared %s\n", dir)
			return err
		},
	}
	clear.Flags().BoolVar(&sandbox, "sandbox", false, "remove the caches of sandboxed commands (required)")
	cmd.AddCommand(clear)
	return cmd
}

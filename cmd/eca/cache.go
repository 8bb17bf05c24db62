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
		Long:  "Removes what sandboxed commands added to caches of build tools, of all workspaces.\nYour own caches stay as they are.",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if !sandbox {
				return usage.Errorf("say what to clear: --sandbox")
			}
			d, err := hereDaemon(*sf, stderr)
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
	clear.Flags().BoolVar(&sandbox, "sandbox", false, "the caches of sandboxed commands")
	cmd.AddCommand(clear)
	return cmd
}

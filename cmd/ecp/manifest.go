package main

import (
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/internal/usage"
)

// manifestFlag lets a command accept its manifest as --manifest FILE or as an argument. into is set to
// the path before the command runs.
func manifestFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVarP(into, "manifest", "m", "", "the manifest; the path alone works too")
	cmd.Args = func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) > 1:
			return usage.Errorf("there can be one manifest, not %q and %q", args[0], args[1])
		case len(args) == 1 && *into != "" && *into != args[0]:
			return usage.Errorf("there can be one manifest, not --manifest %q and %q", *into, args[0])
		case len(args) == 1:
			*into = args[0]
		}
		if *into == "" {
			return usage.Errorf("the manifest is missing: --manifest FILE, or its path alone")
		}
		return nil
	}
}

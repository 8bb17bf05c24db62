package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

func validateCommand(s streams) *cobra.Command {
	var manifest string
	cmd := &cobra.Command{
		Use:   "validate MANIFEST",
		Short: "Check a manifest without running it",
		Long:  "Checks a manifest, and the files and datasets that it names, without running it. Problems in its text name file, line, column and key.\n\nExit codes: 0 it can be used; 1 it cannot; 2 wrong usage.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, warnings, err := runtime.Load(cmd.Context(), manifest)
			for i := range warnings {
				fmt.Fprintln(s.err, warnings[i].Error())
			}
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
			if err == nil {
				if _, err = runtime.NewPlan(m, runtime.Options{Path: os.Getenv("PATH")}); err != nil {
					err = fmt.Errorf("%s: %w", manifest, err)
				}
			}
			if err != nil {
				fmt.Fprintln(s.err, usage.Message(err))
				return exitCode(exitError)
			}
			scenarios, steps, graders := m.Summary()
			fmt.Fprintf(s.out, "Manifest valid: %s\nName: %s\nScenarios: %d\nSteps: %d\nGraders: %d\n", m.Path, m.Name, scenarios, steps, graders)
			return nil
		},
	}
	manifestFlag(cmd, &manifest)
	return cmd
}

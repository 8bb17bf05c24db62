package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

func trendCommand(s streams) *cobra.Command {
	var window int
	var exitOnRegression, verbose, asJSON bool
	var compat string
	cmd := &cobra.Command{
		Use:   "trend PATTERN",
		Short: "Show how pass rates change across JSON reports",
		Long: `Shows how the pass rate of checks has changed over the JSON reports that match PATTERN
(** is any folder), for each manifest, in the order of their runs.

Exit codes: 0; 1 no report matches; 2 a manifest degrades, with --exit-on-regression, or wrong usage.`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if window < 1 {
				return usage.Errorf("--window must be 1 or more")
			}
			if compat != "" && compat != "reference" {
				return usage.Errorf("--compat must be reference, not %q", compat)
			}
			paths, err := doublestar.FilepathGlob(args[0])
			if err != nil {
				return usage.Errorf("%q is not a valid pattern: %w", args[0], err)
			}
			trends, skipped := report.Trends(readReports(paths), report.TrendOptions{Window: window, Reference: compat == "reference"})
			for _, why := range skipped {
				fmt.Fprintln(s.err, "skipped:", why)
			}
			if len(trends) == 0 {
				return fmt.Errorf("no report matches %s", args[0])
			}
			worse := false
			for i, t := range trends {
				worse = worse || t.Direction == report.Degrading
				if asJSON {
					continue
				}
				if i > 0 {
					fmt.Fprintln(s.out)
				}
				if err := t.Write(s.out, window); err != nil {
					return err
				}
			}
			if asJSON {
				if err := report.TrendsJSON(s.out, trends); err != nil {
					return err
				}
			}
			if worse && exitOnRegression {
				return exitCode(exitFailed)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.IntVarP(&window, "window", "w", 20, "how many of the latest runs to consider")
	flags.BoolVar(&exitOnRegression, "exit-on-regression", false, "exit with 2 if a manifest degrades")
	flags.BoolVarP(&verbose, "verbose", "v", false, "has no effect")
	flags.BoolVar(&asJSON, "json", false, "write JSON")
	flags.StringVar(&compat, "compat", "", "reference: all reports are one series in the order of their paths")
	return cmd
}

// maxReport limits the size of a report file, in bytes.
const maxReport = 512 << 20

func readReports(paths []string) (out []report.Input) {
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || !info.Mode().IsRegular() || info.Size() > maxReport {
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				continue
			}
		}
		data, err := os.ReadFile(path)
		if err != nil {
			data = []byte(err.Error()) // skipped, with this reason
		}
		out = append(out, report.Input{Path: filepath.Clean(path), Data: data})
	}
	return out
}

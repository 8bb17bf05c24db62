package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/swebench"
	"github.com/seed-dec29ce4/eca/internal/pattern"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

func exportCommand(s streams) *cobra.Command {
	var out, model string
	cmd := &cobra.Command{
		Use:   "export FORMAT REPORT",
		Short: "Write the patches of a run as predictions of SWE-bench",
		Long: `Writes the agents' patches from a report (ecp run --json-out) as a line of JSON for each instance:
instance_id, model_name_or_path, model_patch. FORMAT is swebench. The original harness of
SWE-bench and ecp import swebench --predictions read them. If there were several attempts, the
patch is from the one that the report shows.

Exit codes: 0; 1 the report lacks a whole patch; 2 wrong usage.`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "swebench" {
				return usage.Errorf("the format must be swebench, not %q", args[0])
			}
			if out != "" && !safeio.IsStream(out) && sameFile(out, args[1]) {
				return usage.Errorf("--out is the report itself, %s; name another file", out)
			}
			if err := (output{"--out", out}).checkReplaced(); err != nil {
				return fmt.Errorf("--out: %w", err)
			}
			r, err := readReport(cmd.Context(), args[1])
			if err != nil {
				return err
			}
			lines, patches, err := predictions(r, model)
			if err != nil {
				return err
			}
			if patches == 0 {
				fmt.Fprintln(s.err, "ecp: no scenario of this report has a patch, so all predictions are empty")
			}
			if out != "" {
				return safeio.WriteOutput(out, func(w io.Writer) error {
					_, err := io.WriteString(w, lines)
					return err
				})
			}
			_, err = io.WriteString(s.out, lines)
			return err
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "write to this file instead of standard output")
	cmd.Flags().StringVar(&model, "model", "", "model_name_or_path of all lines (default: the variant, else the target)")
	return cmd
}

// cutDiff matches the note at the end of a diff that was cut. No line of a diff begins like it.
var cutDiff = pattern.Lazy(`(?m)^\.\.\. \d+ more bytes; `)

// predictions returns the patches of a report in the format for predictions of SWE-bench, and how many
// of them are not empty.
func predictions(r *report.Report, model string) (lines string, patches int, err error) {
	var out strings.Builder
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		p := swebench.Prediction{ID: s.Group, Model: model, Patch: s.Diff}
		if p.Model == "" {
			if p.Model = s.VariantName(); p.Model == "" {
				p.Model = r.Target
			}
		}
		if s.DiffFile != "" {
			data, err := safeio.Read(s.DiffFile, maxReport)
			if err != nil {
				return "", 0, fmt.Errorf("the patch of %s: %w", s.Name, err)
			}
			p.Patch = string(data)
		} else if cutDiff().MatchString(s.Diff) {
			return "", 0, fmt.Errorf("the report has only the beginning of the patch of %s; use ecp run --artifacts DIR to keep the whole patch", s.Name)
		}
		if p.Patch != "" {
			patches++
		}
		if err := enc.Encode(p); err != nil {
			return "", 0, err
		}
	}
	return out.String(), patches, nil
}

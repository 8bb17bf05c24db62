package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/e2a/gateway"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const e2aHelp = `Reads E2A envelopes from stdin, one JSON object per line, and writes frames to stdout, one per
line (docs/e2a.md). Tool calls that need approval wait for chat.approve or chat.reject. At the end
of stdin, eca refuses the calls that still wait, finishes its answers and exits.

A caller cannot trust a workspace: a workspace has only the trust that you gave it with eca trust.`

func e2aCommand(sf *serverFlags, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "e2a",
		Short: "Answer E2A envelopes on stdin",
		Long:  e2aHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(sf.logLevel, stderr)
			if err != nil {
				return err
			}
			d, err := newDaemon(*sf, log)
			if err != nil {
				return err
			}
			defer d.Close()
			cwd, err := workingDir()
			if err != nil {
				return fmt.Errorf("the workspace is unknown: %w", err)
			}
			turns := turn.New(turn.Options{Host: d, Workspace: cwd})
			defer turns.Close()
			return gateway.New(gateway.Options{Turns: turns, Log: log.Logger}).Serve(cmd.Context(), stdin, usage.Raw(stdout))
		},
	}
}

package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

const doctorHelp = `Checks what is configured for this directory, and whether it answers: configuration
files, the default model, each provider with the source of its key, proxies and
certificates, the chat store, the shell. It shows no secrets. Providers are asked for
their models, at once and within seconds; nothing is bought and no key leaves but to its
own provider. --offline asks nobody.

The exit code is 1 if something that is configured does not work. What is not configured
is no problem.`

func doctorCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var asJSON, offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what is configured, and whether it answers",
		Long:  doctorHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := hereDaemon(forReaders(*sf, cmd), stderr)
			if err != nil {
				return err
			}
			defer d.Close()
			waiting := noticeLater(stderr, "Waiting for providers and MCP servers to answer")
			report := d.Doctor(cmd.Context(), offline)
			waiting.Stop()
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			if asJSON {
				enc := json.NewEncoder(stdout)
				enc.SetEscapeHTML(false)
				enc.SetIndent("", "  ")
				err = enc.Encode(report)
			} else if err = report.Write(stdout); err == nil && !report.Healthy {
				fmt.Fprintln(stderr, "eca: something that is configured does not work; see PROBLEM above")
			}
			if err == nil && !report.Healthy {
				err = exitError{1}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	cmd.Flags().BoolVar(&offline, "offline", false, "ask nobody over the network")
	return cmd
}

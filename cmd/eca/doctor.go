package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/internal/doctor"
)

const doctorHelp = `Checks the configuration of this directory: configuration files, trust, the default model, each
provider with the source of its key, MCP servers, language servers, proxies and certificates, the
chat store, the shell, the sandbox. It shows no secrets.

It asks all configured providers for their lists of models, fetches the public catalogue of models
(models.dev), and starts the MCP servers and the language servers for the files of this directory.
All checks run at the same time and end after at most 15 seconds. Requests to providers cost
nothing, and each key goes only to its own provider. With --offline, it sends no requests and starts
no MCP servers and no language servers.

The exit code is 1 if something that you configured does not work. Missing configuration is not a
problem.`

func doctorCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	var asJSON, offline bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the configuration, and whether providers and servers answer",
		Long:  doctorHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			d, err := daemonForCwd(withHumanLogLevel(*sf, cmd), stderr)
			if err != nil {
				return err
			}
			defer d.Close()
			attachRemote(d, *sf, slog.Default())
			waiting := noticeIfSlow(stderr, fmt.Sprintf("Waiting for providers and MCP servers to answer, up to %s (%s for programs)", doctor.CheckTimeout, doctor.ProgramStartTimeout))
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
	cmd.Flags().BoolVar(&offline, "offline", false, "send no requests, and start no MCP servers and no language servers")
	return cmd
}

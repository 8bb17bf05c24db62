package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/safeio"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

func conformanceCommand(s streams) *cobra.Command {
	var target, input, timeout, jsonOut string
	var headers []string
	var asJSON, extended bool
	cmd := &cobra.Command{
		Use:   "conformance --target AGENT",
		Short: "Check that an agent follows the protocol",
		Long: `Checks that an agent keeps the protocol: initialize, step and reset, as the reference
does. With --extended it also checks what else a runtime may rely on, which does not change the
exit code.

Exit codes: 0 it does; 1 it does not; 2 wrong usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if target == "" {
				return usage.Errorf("--target is missing: a command line or a URL")
			}
			limit, err := callTimeout(timeout)
			if err != nil {
				return err
			}
			sent, err := parseHeaders(headers)
			if err != nil {
				return err
			}
			if err := (output{"--json-out", jsonOut}).checkReplaced(); err != nil {
				return fmt.Errorf("--json-out: %w", err)
			}
			network := netclient.New(os.Getenv)
			defer network.Close()
			supervisor, _ := os.Executable() // without it, agents run unsupervised
			c := runtime.CheckConformance(cmd.Context(), target, runtime.ConformanceOptions{
				Input: input, Timeout: limit, Extended: extended, Headers: sent, Supervisor: supervisor,
				Client: network.Client(netclient.Options{HTTP1: true, Connect: limit}),
			})
			encode := func(w io.Writer) error {
				enc := json.NewEncoder(w)
				enc.SetIndent("", "  ")
				return enc.Encode(c)
			}
			if jsonOut != "" {
				if err := safeio.WriteOutput(jsonOut, encode); err != nil {
					return err
				}
			}
			if asJSON {
				if err := encode(s.out); err != nil {
					return err
				}
			} else {
				showConformance(s.out, c)
			}
			if !c.Conformant {
				return exitCode(exitError)
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&target, "target", "t", "", "the agent: a command line or a URL (required)")
	flags.StringVar(&input, "input", "hello", "prompt for the agent")
	flags.StringVar(&timeout, "timeout", "", "seconds that one call may take (default: $ECP_RPC_TIMEOUT, else 30)")
	flags.BoolVar(&asJSON, "json", false, "write the result as JSON to stdout")
	flags.StringVar(&jsonOut, "json-out", "", "write the result as JSON to a file")
	flags.StringArrayVar(&headers, "header", nil, "NAME: VALUE for requests to an agent behind HTTP (repeatable)")
	flags.BoolVar(&extended, "extended", false, "check more than the reference does")
	return cmd
}

func showConformance(w io.Writer, c runtime.Conformance) {
	line := func(c runtime.ConformanceCheck) {
		word := "FAIL"
		if c.Passed {
			word = "PASS"
		}
		fmt.Fprintf(w, "%s | %s | %s\n", word, c.Name, printable(c.Message))
	}
	for _, check := range c.Checks {
		line(check)
	}
	fmt.Fprintf(w, "Conformance: %d/%d checks passed\n", c.Passed, c.Total)
	for _, check := range c.Extended {
		line(check)
	}
}

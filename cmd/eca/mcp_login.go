package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/mcp"
)

const mcpLoginHelp = `Logs in to a remote MCP server that asks for it (OAuth). The browser opens; if it cannot, the
command prints the address. It waits up to 15 minutes; Ctrl-C ends it.`

func mcpLoginCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "login NAME", SuggestFor: []string{"connect", "auth"}, Short: "Log in to a remote server", Long: mcpLoginHelp, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withServers(*sf, cmd, stderr, func(d *daemon.Daemon) error {
				if err := explainUnknownServer(d, args[0], nil); err != nil {
					return err
				}
				if s := d.Config().MCPServers[args[0]]; s.URL == "" {
					return fmt.Errorf("the MCP server %s is a program, and only servers with a url have a login; `eca mcp test %s` starts it", printable(args[0]), visible.Argument(args[0]))
				}
				err := loginToServer(cmd.Context(), d, args[0], stdout, stderr)
				if err != nil && cmd.Context().Err() != nil {
					fmt.Fprintf(stderr, "eca mcp login: interrupted before the login was done\n")
					return exitError{exitInterrupted}
				}
				return err
			})
		},
	}
}

// loginToServer logs in to a server and prints the result.
func loginToServer(ctx context.Context, d *daemon.Daemon, name string, stdout, stderr io.Writer) error {
	status, loggedIn, err := d.LoginMCPServer(ctx, name, func(kind, text string) {
		if kind != "error" { // errors are part of the result
			fmt.Fprintln(stderr, printable(text))
		}
	})
	switch {
	case err != nil:
		return fmt.Errorf("cannot log in to the MCP server %s: %w", printable(name), err)
	case loggedIn && status.State == mcp.Running:
		_, err = fmt.Fprintf(stdout, "Logged in to %s. `eca mcp test %s` shows its tools.\n", printable(name), visible.Argument(name))
		return err
	case loggedIn:
		fmt.Fprintf(stdout, "Logged in to %s, but it does not work with that login.\n", printable(name))
	case status.State == mcp.Running:
		_, err = fmt.Fprintf(stdout, "%s runs and does not ask for a login.\n", printable(name))
		return err
	}
	status.Reason = d.FailureReason(status)
	return showServer(status, d.Presentable, stdout)
}

func mcpLogoutCommand(sf *serverFlags, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "logout NAME", Short: "Forget the login to a remote server", Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return withConfig(*sf, stderr, requireReadableConfig(func(d *daemon.Daemon) error {
				if err := explainUnknownServer(d, args[0], nil); err != nil {
					return err
				}
				existed := d.MCPLogin(args[0])
				if err := d.LogoutMCPServer(args[0]); err != nil {
					return err
				}
				text := "Logged out of %s.\n"
				if !existed {
					text = "There was no login to %s.\n"
				}
				_, err := fmt.Fprintf(stdout, text, printable(args[0]))
				return err
			}))
		},
	}
}

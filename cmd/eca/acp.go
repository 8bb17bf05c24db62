package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/e2a/acp"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const acpHelp = `Speaks the Agent Client Protocol on stdin and stdout, for editors that start agents this way: Zed,
JetBrains IDEs, and plugins for Neovim. docs/acp.md has their settings. The editor asks about tool
calls that need approval. The editor cannot trust a workspace: a workspace has only the trust that
you gave it with eca trust.`

func acpCommand(sf *serverFlags, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "acp",
		Short: "Serve an editor that speaks the Agent Client Protocol",
		Long:  acpHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(sf.logLevel, stderr)
			if err != nil {
				return err
			}
			cwd, err := workingDir()
			if err != nil {
				return fmt.Errorf("the working directory is unknown: %w", err)
			}
			flags := *sf
			if _, err := os.UserHomeDir(); err != nil && os.Getenv("XDG_STATE_HOME") == "" {
				// Some editors start their agents with only a PATH.
				if flags.stateDir, err = os.MkdirTemp("", "eca-"); err != nil {
					return err
				}
				defer func() { _ = os.RemoveAll(flags.stateDir) }()
				log.Warn("HOME is not set: chats will be lost when the editor exits; set HOME or XDG_STATE_HOME in the editor's settings")
			}
			return acp.Serve(cmd.Context(), stdin, usage.Raw(stdout), acp.Options{
				Cwd: cwd, Version: version, Log: log.Logger,
				Open: func(p acp.Setup) (*turn.Service, func(), error) {
					d, err := newDaemon(flags, log)
					if err != nil {
						return nil, nil, err
					}
					turns := turn.New(turn.Options{
						Host: d, Workspace: p.Folders[0], Folders: p.Folders[1:], InitOptions: p.InitOptions, Editor: p.Editor,
					})
					return turns, func() { turns.Close(); d.Close() }, nil
				},
			})
		},
	}
}

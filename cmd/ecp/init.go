package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

//go:embed template/agent.py
var templateAgent string

//go:embed template/manifest.yaml
var templateManifest string

func initCommand(s streams) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write an example: an agent in Python and a manifest for it",
		Long:  "Writes agent.py and manifest.yaml into DIR (ecp_eval). The agent needs Python 3 and nothing else.\n\nExit codes: 0; 1 a file is there already (see --force), or can not be written.",
		Args:  usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "ecp_eval"
			if len(args) > 0 {
				dir = args[0]
			}
			files := map[string]string{"agent.py": templateAgent, "manifest.yaml": templateManifest}
			for name := range files {
				if _, err := os.Lstat(filepath.Join(dir, name)); err == nil && !force {
					return fmt.Errorf("%s exists; --force replaces it", filepath.Join(dir, name))
				}
			}
			err := os.MkdirAll(dir, 0o755)
			for name, text := range files {
				if err == nil {
					err = os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)
				}
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(s.out, "Wrote %s and %s.\nNext: ecp run --manifest %[2]s\n", filepath.Join(dir, "agent.py"), filepath.Join(dir, "manifest.yaml"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace files that are there")
	return cmd
}

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/examples"
)

func initCommand(s streams) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write an example: an agent in Python and a manifest for it",
		Long:  "Writes agent.py and manifest.yaml into DIR (ecp_eval). The agent needs Python 3 and nothing else.\n\nExit codes: 0; 1 a file exists already (see --force), or cannot be written.",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "ecp_eval"
			if len(args) > 0 {
				dir = args[0]
			}
			if err := writeExample(dir, force); err != nil {
				return err
			}
			manifest := filepath.Join(dir, "manifest.yaml")
			fmt.Fprintf(s.out, "Wrote %s and %s.\nNext: ecp run --manifest %[2]s\n", filepath.Join(dir, "agent.py"), manifest)
			return nil
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "replace existing files")
	return cmd
}

// writeExample writes all files of the example. Unless force is set, it writes none if one exists.
func writeExample(dir string, force bool) error {
	example, err := examples.PlainAgent()
	if err != nil {
		return err
	}
	files, err := fs.Glob(example, "*")
	if err != nil {
		return err
	}
	for _, name := range files {
		path := filepath.Join(dir, name)
		if _, err := os.Lstat(path); err == nil && !force {
			return fmt.Errorf("%s exists; --force replaces it", path)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range files {
		data, err := fs.ReadFile(example, name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/harbor"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const importHelp = `Writes a manifest for tasks in another format. FORMAT is harbor: SOURCE is a task's folder
(with task.toml), or one with folders of tasks. They stay where they are; the manifest refers
to them.

The agent runs in the task's container, so TARGET is a command line there. The files
and folders of --read are below /ecp in it.

Exit codes: 0; 1 a task cannot be imported: nothing is written; 2 wrong usage.`

// importFlags are the flags of ecp import.
type importFlags struct {
	dir, target, engine string
	read, env           []string
	force               bool
}

func importCommand(s streams) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FORMAT SOURCE",
		Short: "Write a manifest for tasks in another format",
		Long:  importHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case args[0] != "harbor":
				return usage.Errorf("the format must be harbor, not %q", args[0])
			case f.dir == "" || f.target == "":
				return usage.Errorf("--out and --target are needed: where the manifest goes, and how the agent is started in a container")
			case f.engine != runtime.KindDocker && f.engine != runtime.KindPodman:
				return usage.Errorf("--engine must be docker or podman, not %q", f.engine)
			}
			return f.harbor(args[1], s.out, s.err)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.dir, "out", "o", "", "folder for manifest.yaml")
	flags.StringVar(&f.target, "target", "", "command line of the agent, in the container")
	flags.StringVar(&f.engine, "engine", runtime.KindDocker, "docker or podman")
	flags.StringArrayVar(&f.read, "read", nil, "file or folder that the agent sees below /ecp (repeatable)")
	flags.StringArrayVar(&f.env, "env", nil, "name of a variable of yours that the agent gets (repeatable)")
	flags.BoolVar(&f.force, "force", false, "replace an existing manifest")
	return cmd
}

func (f *importFlags) harbor(source string, out, errs io.Writer) error {
	path := filepath.Join(f.dir, "manifest.yaml")
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) && !f.force {
		return errors.Join(err, fmt.Errorf("%s exists; --force replaces it", path))
	}
	tasks, err := harbor.Tasks(source)
	if err != nil {
		return err
	}
	whole, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	o := harbor.Options{Name: filepath.Base(whole), Target: f.target, Engine: f.engine, Env: f.env}
	for _, name := range f.read {
		abs, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		o.Read = append(o.Read, abs)
	}
	text, err := harbor.Manifest(tasks, f.dir, o)
	if err != nil {
		return err
	}
	if _, problems := runtime.Parse(text, path); len(problems) > 0 {
		return runtime.Problems(problems)
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o644); err != nil {
		return err
	}
	for _, t := range tasks {
		for _, note := range t.Notes {
			fmt.Fprintf(errs, "note: %s: %s\n", printable(t.Dir), printable(note))
		}
	}
	fmt.Fprintf(out, "Wrote %s with %d tasks.\nNext: ecp run --manifest %[1]s\n", path, len(tasks))
	return nil
}

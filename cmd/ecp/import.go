package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/harbor"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/ecp/swebench"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const importHelp = `Writes a manifest for tasks in another format. FORMAT is

  harbor    SOURCE is a task's folder (with task.toml), or a folder of such folders. The manifest
            refers to the tasks where they are. Tasks of Terminal-Bench (with task.yaml) are copied
            into the manifest's folder
  swebench  SOURCE is a file with instances of SWE-bench (a JSON array or JSON lines), or a task
            repository (with sweb.yaml). Their tests are written into the manifest's folder

The agent runs in the task's container, so --target is a command line there. The files and folders
of --read are below /ecp in the container.

Exit codes: 0; 1 a task cannot be imported: nothing is written; 2 wrong usage.`

// importFlags are the flags of ecp import.
type importFlags struct {
	dir, target, engine string
	read, env           []string
	force               bool

	predictions string // this and the following flags are only for swebench
	defaults    swebench.Defaults
	network     bool
	hints       bool
}

// sweBenchFlags returns the names of the flags that are only for SWE-bench.
func sweBenchFlags() []string {
	return []string{"predictions", "image-template", "test-command", "log-parser", "network", "hints"}
}

func importCommand(s streams) *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "import FORMAT SOURCE",
		Short: "Write a manifest for tasks in another format",
		Long:  importHelp,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case args[0] != "harbor" && args[0] != "swebench":
				return usage.Errorf("the format must be harbor or swebench, not %q", args[0])
			case f.dir == "" || f.target == "" && f.predictions == "":
				return usage.Errorf("--out and --target are needed: where the manifest goes, and how the agent is started in a container")
			case f.target != "" && f.predictions != "":
				return usage.Errorf("--predictions are graded without an agent; leave --target out")
			case f.engine != runtime.KindDocker && f.engine != runtime.KindPodman:
				return usage.Errorf("--engine must be docker or podman, not %q", f.engine)
			}
			if args[0] == "swebench" {
				return f.swebench(cmd.Context(), args[1], s.out)
			}
			for _, name := range sweBenchFlags() {
				if cmd.Flags().Changed(name) {
					return usage.Errorf("--%s is for swebench", name)
				}
			}
			return f.harbor(args[1], s.out, s.err)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.dir, "out", "o", "", "folder for manifest.yaml (required)")
	flags.StringVar(&f.target, "target", "", "command line of the agent, in the container")
	flags.StringVar(&f.engine, "engine", runtime.KindDocker, "docker or podman")
	flags.StringArrayVar(&f.read, "read", nil, "file or folder that the agent can read below /ecp (repeatable)")
	flags.StringArrayVar(&f.env, "env", nil, "name of an environment variable to pass to the agent (repeatable)")
	flags.BoolVar(&f.force, "force", false, "replace an existing manifest")
	flags.StringVar(&f.predictions, "predictions", "", "swebench: grade the patches of this file (rows with instance_id and model_patch) instead of running an agent; gold: grade the reference solutions")
	flags.StringVar(&f.defaults.Image, "image-template", "", "swebench: image of instances without one; {id} is the instance's id")
	flags.StringVar(&f.defaults.TestCommand, "test-command", "", "swebench: test command of instances without an eval_script; {files} are the test files")
	flags.StringVar(&f.defaults.Parser, "log-parser", "", "swebench: log_parser of instances without one")
	flags.BoolVar(&f.network, "network", false, "swebench: the agent and the tests have network access")
	flags.BoolVar(&f.hints, "hints", false, "swebench: the agent gets hints_text too")
	return cmd
}

// checkUnused returns an error if the manifest exists and must not be replaced.
func (f *importFlags) checkUnused() error {
	path := f.path()
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) && !f.force {
		return errors.Join(err, fmt.Errorf("%s exists; --force replaces it", path))
	}
	return nil
}

func (f *importFlags) path() string { return filepath.Join(f.dir, "manifest.yaml") }

// reads returns the absolute paths of --read.
func (f *importFlags) reads() (out []string, err error) {
	for _, name := range f.read {
		abs, err := filepath.Abs(name)
		if err != nil {
			return nil, err
		}
		out = append(out, abs)
	}
	return out, nil
}

// write checks the manifest, calls writeFiles for the files that it refers to, and then writes the
// manifest.
func (f *importFlags) write(text []byte, writeFiles func() error) error {
	if _, problems := runtime.Parse(text, f.path()); len(problems) > 0 {
		return runtime.Problems(problems)
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	if err := writeFiles(); err != nil {
		return err
	}
	return os.WriteFile(f.path(), text, 0o644)
}

func (f *importFlags) swebench(ctx context.Context, source string, out io.Writer) error {
	if err := f.checkUnused(); err != nil {
		return err
	}
	list, err := swebench.Read(ctx, source, f.defaults)
	if err != nil {
		return err
	}
	absSource, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	name := filepath.Base(absSource)
	o := swebench.Options{Name: strings.TrimSuffix(name, filepath.Ext(name)), Target: f.target, Engine: f.engine, Env: f.env, Network: f.network, Hints: f.hints}
	if o.Read, err = f.reads(); err != nil {
		return err
	}
	const script = "predictions.sh"
	if f.predictions != "" {
		if list, err = swebench.Predict(ctx, list, f.predictions); err != nil {
			return err
		}
		o.Target, o.Read = "sh /ecp/"+script, append(o.Read, script)
	}
	text, err := swebench.Manifest(list, o)
	if err != nil {
		return err
	}
	if err := f.write(text, func() error {
		if f.predictions != "" {
			if err := os.WriteFile(filepath.Join(f.dir, script), []byte(swebench.Idle), 0o644); err != nil {
				return err
			}
		}
		return swebench.WriteTests(list, f.dir)
	}); err != nil {
		return err
	}
	fmt.Fprintf(out, "Wrote %s with %d instances.\nNext: ecp run --manifest %[1]s\n", f.path(), len(list))
	return nil
}

func (f *importFlags) harbor(source string, out, errs io.Writer) error {
	if err := f.checkUnused(); err != nil {
		return err
	}
	tasks, err := harbor.Tasks(source)
	if err != nil {
		return err
	}
	absSource, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	o := harbor.Options{Name: filepath.Base(absSource), Target: f.target, Engine: f.engine, Env: f.env}
	if o.Read, err = f.reads(); err != nil {
		return err
	}
	text, err := harbor.Manifest(tasks, f.dir, o)
	if err != nil {
		return err
	}
	if err := f.write(text, func() error { return harbor.Copy(tasks, f.dir, f.force) }); err != nil {
		return err
	}
	for _, t := range tasks {
		for _, note := range t.Notes {
			fmt.Fprintf(errs, "note: %s: %s\n", printable(t.Dir), printable(note))
		}
	}
	fmt.Fprintf(out, "Wrote %s with %d tasks.\nNext: ecp run --manifest %[1]s\n", f.path(), len(tasks))
	return nil
}

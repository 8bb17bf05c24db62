package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

func doctorCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show the programs, variables and environments that evaluations can use here",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			executable, err := os.Executable()
			if err != nil {
				executable = "unknown: " + err.Error()
			}
			dir, err := os.Getwd()
			if err != nil {
				dir = "unknown; it may have been deleted or moved, so change to another one: " + err.Error()
			}
			fmt.Fprintf(s.out, "ecp:               %s (%s, %s/%s)\n", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
			fmt.Fprintf(s.out, "Executable:        %s\nWorking directory: %s\n", executable, dir)
			for _, p := range []string{"python3", "python", "git", "eca"} {
				fmt.Fprintf(s.out, "%-19s%s\n", p+":", lookPath(p))
			}
			for _, v := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ECP_LLM_JUDGE_MODEL", "ECP_LLM_JUDGE_TEMPERATURE", "ECP_RPC_TIMEOUT"} {
				state := "not set"
				if os.Getenv(v) != "" {
					state = "set"
				}
				fmt.Fprintf(s.out, "%-27s%s\n", v+":", state)
			}
			pool := proc.NewPool(executable, 0)
			defer pool.Close()
			local := "not possible: " + pool.Bounds().Without
			if b := pool.Bounds(); b.Holds {
				local = b.With
			}
			fmt.Fprintln(s.out, "Environment local: "+local)
			for _, engine := range []string{runtime.KindDocker, runtime.KindPodman} {
				fmt.Fprintf(s.out, "%-19s%s\n", engine+":", engineState(cmd.Context(), pool, engine))
			}
			for _, gap := range pool.Gaps() {
				fmt.Fprintln(s.out, "Limit:             "+gap)
			}
			return nil
		},
	}
}

// engineTime limits how long docker or podman may take to answer.
const engineTime = 10 * time.Second

// engineState returns the server version of docker or podman, or why containers cannot be run.
func engineState(ctx context.Context, pool *proc.Pool, engine string) string {
	if lookPath(engine) == notFound {
		return notFound
	}
	ctx, cancel := context.WithTimeout(ctx, engineTime)
	defer cancel()
	var out bytes.Buffer
	exit, err := pool.Run(ctx, proc.Spec{Path: engine, Args: []string{"version", "--format", "{{.Server.Version}}"}, Stdout: &out, Stderr: &out})
	answer := strings.TrimSpace(out.String())
	switch {
	case err != nil:
		return "not usable: " + err.Error()
	case exit.Killed:
		return fmt.Sprintf("not usable: no answer within %s", engineTime)
	case exit.Code != 0:
		return "not usable: " + strings.Join(strings.Fields(answer), " ")
	}
	return "version " + answer
}

const notFound = "not found"

// lookPath returns the path of a program, or notFound.
func lookPath(program string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, ext := range []string{"", ".exe"} {
			path := filepath.Join(dir, program+ext)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return notFound
}

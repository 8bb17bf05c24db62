package main

import (
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

func doctorCommand(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Show what evaluations find on this machine",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			executable, err := os.Executable()
			if err != nil {
				executable = "unknown: " + err.Error()
			}
			dir, err := os.Getwd()
			if err != nil {
				dir = "unknown: " + err.Error()
			}
			fmt.Fprintf(s.out, "ecp:               %s (%s, %s/%s)\n", version, goruntime.Version(), goruntime.GOOS, goruntime.GOARCH)
			fmt.Fprintf(s.out, "Executable:        %s\nWorking directory: %s\n", executable, dir)
			for _, p := range []string{"python3", "python", "git", "eca"} {
				fmt.Fprintf(s.out, "%-19s%s\n", p+":", found(p))
			}
			for _, v := range []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "ECP_LLM_JUDGE_MODEL", "ECP_LLM_JUDGE_TEMPERATURE", "ECP_RPC_TIMEOUT"} {
				state := "not set"
				if os.Getenv(v) != "" {
					state = "set"
				}
				fmt.Fprintf(s.out, "%-27s%s\n", v+":", state)
			}
			for _, gap := range proc.NewPool(executable, 0).Gaps() {
				fmt.Fprintln(s.out, "Limit:             "+gap)
			}
			return nil
		},
	}
}

// found says where a program is.
func found(program string) string {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		for _, ext := range []string{"", ".exe"} {
			path := filepath.Join(dir, program+ext)
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				return path
			}
		}
	}
	return "not found"
}

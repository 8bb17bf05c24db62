// Command ecp evaluates agents that speak the Evaluation Context Protocol.
//
// It owns flags, exit codes and the destinations of reports; ecp/runtime runs and grades scenarios.
// It guarantees that the exit code reflects the worst result, and that no process that it started
// outlives it, within the guarantees of internal/proc.
//
// Exit codes: 0 all passed; 2 checks failed, or wrong usage; 1 an error in a scenario, a judge, the
// manifest or a file; 130 interrupted. An error takes precedence over failed checks.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

// version is set by the linker for releases.
var version = "0.1.0"

// Exit codes.
const (
	exitError       = 1
	exitFailed      = 2
	exitInterrupted = 130
)

func main() {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// Ignore SIGPIPE: a closed stdout is an error to handle, and must not end ecp before its agents.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], streams{usage.NewOutput(os.Stdout), os.Stderr}))
}

// streams are the streams of a command.
type streams struct {
	out, err io.Writer
}

// exitCode is the error of a command that has already shown its errors.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run runs a command and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	root := &cobra.Command{
		Use:           "ecp",
		Short:         "Evaluates agents that speak the Evaluation Context Protocol",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(runCommand(s), validateCommand(s), initCommand(s), viewCommand(s), importCommand(s), exportCommand(s), conformanceCommand(s), trendCommand(s), doctorCommand(s),
		submitCommand(s), workerCommand(s), watchCommand(s), clusterCommand(s), gcCommand(s))
	usage.Strict(root)
	root.SetArgs(args)
	_, err := usage.Execute(ctx, root)
	var code exitCode
	if writeErr := usage.WriteError(s.out); writeErr != nil {
		fmt.Fprintln(s.err, "ecp: cannot write the output:", usage.Message(writeErr))
		return exitError
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintln(s.err, "ecp: interrupted")
		return exitInterrupted
	case usage.IsUnread(err):
		return usage.Unread
	case usage.Report(s.err, err):
		return usage.ExitCode
	}
	fmt.Fprintln(s.err, "CRITICAL ERROR:", usage.Message(err))
	return exitError
}

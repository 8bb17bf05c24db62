// Command ecp evaluates agents that speak the Evaluation Context Protocol.
//
// It owns flags, exit codes and where reports go; how scenarios run and are graded is
// ecp/runtime's business. It guarantees that the exit code says the worst that happened,
// and that nothing it started outlives it where the system can hold that.
//
// Exit codes: 0 all passed; 2 checks failed, or wrong usage; 1 something went wrong: a
// scenario, a judge, the manifest, a file; 130 interrupted. An error wins over failed checks.
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
	// A reader that goes away is an error to handle, not a reason to leave agents behind.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(ctx, os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// streams are what a command reads and writes.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// exitCode ends a command; what there was to say has been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run is the program, without the process around it.
func run(ctx context.Context, args []string, s streams) int {
	root := &cobra.Command{
		Use:           "ecp",
		Short:         "Evaluates agents that speak the Evaluation Context Protocol",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetVersionTemplate("ecp {{.Version}}\n")
	root.SetOut(s.out)
	root.SetErr(s.err)
	root.AddCommand(runCommand(s), validateCommand(s), initCommand(s), conformanceCommand(s), trendCommand(s), doctorCommand(s))
	usage.Strict(root)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	case usage.Report(s.err, err):
		return usage.ExitCode
	}
	fmt.Fprintln(s.err, "CRITICAL ERROR:", usage.Message(err))
	return exitError
}

// Command entry-point compares how many tool calls a model needs to find code in eca's own sources,
// with the repository map and without it.
//
// It evaluates manifest.yaml, and prints for each question the number of calls and correct answers,
// with and without the map. The model is a mechanical searcher (searcher.go), which is served over
// HTTP and uses only what its requests contain. With --model, it is a model of the user's
// configuration.
//
//	go run ./examples/entry-point [--model provider/name] [--repeat N] [-j N]
//	go run ./examples/entry-point agent [--own]      the agent of the manifest
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

func main() {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code, err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "entry-point:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

// run returns the program's exit code: that of the agent, or of the evaluation.
func run(ctx context.Context, args []string) (int, error) {
	if len(args) > 0 && args[0] == "agent" {
		flags := flag.NewFlagSet("entry-point agent", flag.ContinueOnError)
		own := flags.Bool("own", false, "use the user's configuration and its models")
		if err := flags.Parse(args[1:]); err != nil {
			return 64, err
		}
		return runAgent(ctx, *own)
	}
	flags := flag.NewFlagSet("entry-point", flag.ContinueOnError)
	model := flags.String("model", "", "a model of your configuration, `provider/name` (default: the mechanical searcher)")
	repeat := flags.Int("repeat", 1, "how often each question is asked")
	jobs := flags.Int("j", 2, "number of concurrent questions")
	if err := flags.Parse(args); err != nil {
		return 64, err
	}
	return compare(ctx, *model, *repeat, *jobs, os.Stdout)
}

// Command history evaluates maps with the history of repositories: given the message of a commit,
// how many of the files that it changed does the map of the state before the commit show?
//
//	go run ./repomap/history [flags] REPO...
//
// Maps are compared with maps without a focus and without the log (plain PageRank), with a list of
// paths, and with an indented tree, each cut at the same budgets and limited to files that a map
// contains. Nothing of a commit except its message influences its map, and the figures are the same
// in each run. The command works in a temporary clone and does not change the repositories.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// options are the command line options.
type options struct {
	budgets    []int // tokens
	maxCommits int   // per repository
	interval   int   // use every nth commit
	maxFiles   int   // skip commits that changed more files of the map
	skip       int   // skip the newest commits, so that parameters can be tuned on other commits than those evaluated
	verbose    bool  // print the result of each commit
	git        string
	other      string // a program that makes other maps; may be empty
}

func main() {
	if code, ok := proc.Supervise(os.Args); ok {
		os.Exit(code)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "history:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out, errs io.Writer) error {
	o := options{}
	flags := flag.NewFlagSet("history", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() {
		fmt.Fprint(errs, `Evaluates maps with the history of git repositories: given the message of a commit,
how many of the files that the commit changed does the map of the state before the commit show?

Usage:
  go run ./repomap/history [flags] REPO...

Flags:
`)
		flags.PrintDefaults()
	}
	budgets := flags.String("budgets", "1000,4000,8000", "budgets of the maps in tokens")
	flags.IntVar(&o.maxCommits, "commits", 60, "maximum number of commits per repository")
	flags.IntVar(&o.interval, "apart", 8, "use every `n`th commit that is not a merge")
	flags.IntVar(&o.maxFiles, "files", 10, "skip commits that changed more files of the map than this")
	flags.IntVar(&o.skip, "skip", 0, "number of newest commits to skip")
	flags.BoolVar(&o.verbose, "v", false, "print the missed files of each commit")
	flags.StringVar(&o.other, "other", "", "a `program` that makes other maps: it gets the budgets as arguments and the message as input,\nand prints a map for each budget, separated by form feeds")
	flags.StringVar(&o.git, "git", "git", "the git `program`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	for _, b := range strings.Split(*budgets, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(b))
		if err != nil || n <= 0 {
			return fmt.Errorf("-budgets: %q is not a number of tokens", b)
		}
		o.budgets = append(o.budgets, n)
	}
	if o.maxCommits <= 0 || o.interval <= 0 || o.maxFiles <= 0 || o.skip < 0 {
		return errors.New("-commits, -apart and -files must be at least 1, -skip at least 0")
	}
	if flags.NArg() == 0 {
		flags.Usage()
		return errors.New("no repository given")
	}
	for _, repo := range flags.Args() {
		r, err := evaluate(ctx, repo, o)
		if err != nil {
			return fmt.Errorf("%s: %w", repo, err)
		}
		if err := r.write(out, o); err != nil {
			return err
		}
	}
	return nil
}

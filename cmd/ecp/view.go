package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp/cluster"
	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/ecp/viewer"
	"github.com/seed-dec29ce4/eca/internal/browser"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const viewHelp = `Shows runs in the browser, page by page, and compares them. RUN is a run file (ecp run
--run-file) or a JSON report; without one, all run files of the current folder are shown.

With --nats, RUN is the id of a run of a cluster; its results up to now are shown.

Until Ctrl-C, the runs are shown at an address of this machine that contains a secret.

Exit codes: 0; 1 a run cannot be read, or the address is taken; 2 wrong usage.`

// viewFlags are the flags of ecp view.
type viewFlags struct {
	clusterFlags
	http   string
	noOpen bool
}

func viewCommand(s streams) *cobra.Command {
	var f viewFlags
	cmd := &cobra.Command{
		Use:   "view [RUN...]",
		Short: "Show runs in the browser",
		Long:  viewHelp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.view(cmd.Context(), args, s)
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&f.http, "http", "127.0.0.1:0", "address of this machine to listen at; port 0 chooses a free port")
	cmd.Flags().BoolVar(&f.noOpen, "no-open", false, "print the address, but open no browser")
	return cmd
}

func (f *viewFlags) view(ctx context.Context, paths []string, s streams) error {
	address, err := httpguard.ListenAddress(f.http, "", "") // only addresses of this machine
	if err != nil {
		return usage.Errorf("--http: %w", err)
	}
	if len(paths) == 0 && f.nats != "" {
		return usage.Errorf("--nats needs the id of a run: ecp cluster runs lists them")
	}
	if len(paths) == 0 {
		if paths, err = filepath.Glob("*" + runfile.Extension); err != nil || len(paths) == 0 {
			return errors.Join(err, fmt.Errorf("there is no run file (*%s) in this folder: name one, or a JSON report; ecp run --run-file FILE writes one", runfile.Extension))
		}
		slices.Sort(paths)
	}
	scratch, err := os.MkdirTemp("", "ecp-view-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	if f.nats != "" {
		if paths, err = f.download(ctx, paths, scratch, s); err != nil {
			return err
		}
	}
	runs, err := openRuns(ctx, paths, scratch)
	defer func() {
		for _, r := range runs {
			_ = r.Close()
		}
	}()
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	address = listener.Addr().String()
	token := rand.Text()
	handler, err := viewer.New(runs, httpguard.Options{Address: address, Token: token})
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	page := viewer.Address(address, token)
	fmt.Fprintln(s.out, page)
	if !f.noOpen {
		if err := browser.Open(ctx, page, os.Getenv); err != nil {
			fmt.Fprintln(s.err, "note: no browser was opened:", printable(err.Error()))
		}
	}
	const leaveTime = 2 * time.Second // for open requests
	return httpguard.ServeUntil(ctx, listener, handler, leaveTime, func() {})
}

// download makes run files from a cluster's runs.
func (f *viewFlags) download(ctx context.Context, runs []string, scratch string, s streams) (paths []string, err error) {
	c, err := f.dial(ctx, cluster.RoleViewer, s)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for _, run := range runs {
		r, err := followRun(ctx, c, run, cluster.FollowOptions{Snapshot: true}, nil)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(scratch, run+runfile.Extension)
		if err := runfile.Write(path, r); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// openRuns opens run files. It first converts reports to run files in a temporary folder.
func openRuns(ctx context.Context, paths []string, scratch string) (runs []*runfile.File, err error) {
	for i, path := range paths {
		run, err := runfile.Open(path)
		if errors.Is(err, runfile.ErrNotRun) {
			run, err = openReport(ctx, path, filepath.Join(scratch, fmt.Sprint(i)))
		}
		if err != nil {
			return runs, err
		}
		runs = append(runs, run)
	}
	return runs, nil
}

func openReport(ctx context.Context, path, made string) (*runfile.File, error) {
	r, err := readReport(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("%w; ecp view takes run files and JSON reports", err)
	}
	if r.Summary == nil { // from an older version, or another program
		r.Sum()
	}
	if err := runfile.Write(made, r); err != nil {
		return nil, err
	}
	return runfile.Open(made)
}

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/daemon/judge"
	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/esrp/service"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/keychain"
	"github.com/seed-dec29ce4/eca/internal/netclient"
	"github.com/seed-dec29ce4/eca/internal/redact"
	"github.com/seed-dec29ce4/eca/internal/usage"
	"github.com/seed-dec29ce4/eca/llm/catalog"
)

// tokenVariable is the environment variable with the token of callers. There is no flag, because other
// users can read the arguments of a process.
const tokenVariable = "ESRP_TOKEN"

type serveFlags struct {
	listen, natsListen string
	nats               natsFlags
	noWorker           bool
	jobs               int
	rate               float64
	hosts, origins     []string
}

func serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run requests that come over HTTP",
		Long: `Runs requests that come over HTTP, in this directory: see docs/esrp.md. Callers need the
bearer token in ` + tokenVariable + `. A caller with the token can use the models of this user, the
tools that the configuration allows, and, with ecp run, any program.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.jobs < 1 || f.rate <= 0 {
				return usage.Errorf("--jobs and --rate must be more than 0")
			}
			if f.nats.url == "" && (f.nats.nkey != "" || f.nats.ca != "") {
				return usage.Errorf("--nkey and --tls-ca need --nats")
			}
			return step("Failed to serve", f.serve(cmd.Context(), cmd.ErrOrStderr()))
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "listen at `HOST:PORT`; the default host is this machine's loopback address")
	f.nats.register(c, "use the NATS cluster at this `URL` instead of an embedded server")
	flags.StringVar(&f.natsListen, "nats-listen", "", "let workers connect to the embedded NATS at `HOST:PORT`, with the same token")
	flags.BoolVar(&f.noWorker, "no-worker", false, "run no jobs here; workers run all of them")
	flags.IntVar(&f.jobs, "jobs", 4, "number of jobs to run here at the same time")
	flags.Float64Var(&f.rate, "rate", 200, "maximum number of requests per second")
	flags.StringSliceVar(&f.hosts, "allow-host", nil, "name under which the service is reached, besides this machine's")
	flags.StringSliceVar(&f.origins, "allow-origin", nil, "origin of web pages that may call")
	c.MarkFlagsMutuallyExclusive("nats", "nats-listen")
	return c
}

func logger(w io.Writer) *slog.Logger {
	return slog.New(slog.NewTextHandler(redact.Writer(w, redact.New().String), nil))
}

// operations returns the daemon and the engine for the supported operations.
func operations(log *slog.Logger) (*daemon.Daemon, *service.Engine, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot use the working directory; it may have been deleted or moved, so change to another one: %w", err)
	}
	o := daemon.Options{Log: log, Version: version, Command: os.Args, CatalogURL: catalog.URL, Keychain: keychain.System(os.Getenv)}
	if o.Executable, err = os.Executable(); err != nil {
		return nil, nil, err
	}
	o.Supervisor = o.Executable
	d := daemon.New(o)
	d.Configure(nil, []string{cwd})
	return d, service.NewEngine(d, evaluate(o, cwd)), nil
}

// startCleanup regularly removes expired data until the returned function is called.
func startCleanup(ctx context.Context, d *daemon.Daemon) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { d.KeepClean(ctx) })
	return func() {
		cancel()
		work.Wait()
	}
}

// evaluate returns a function that runs manifests as if they were in dir, with models as judges as in
// ecp run.
func evaluate(eca daemon.Options, dir string) service.Evaluate {
	return func(ctx context.Context, manifest []byte, progress func(service.Progress)) ([]byte, error) {
		m, problems := runtime.Parse(manifest, "manifest.yaml")
		wrong := slices.DeleteFunc(problems, func(p runtime.Problem) bool { return p.Warning })
		if len(wrong) > 0 {
			return nil, &service.Failure{Code: esrp.InvalidInputSemantic, Message: runtime.Problems(wrong).Error()}
		}
		m.Path = filepath.Join(dir, "manifest.yaml") // relative paths are resolved from here
		network := netclient.New(os.Getenv)
		defer network.Close()
		judgeModel := judge.New(judge.Options{
			Getenv: os.Getenv, Version: version, CatalogURL: eca.CatalogURL, Keychain: eca.Keychain, Supervisor: eca.Supervisor, Log: eca.Log,
		})
		defer judgeModel.Close()
		o := runtime.Options{
			Version: version, Supervisor: eca.Supervisor, Path: os.Getenv("PATH"), Now: time.Now, NewID: uuid.NewString,
			Client: network.Client(netclient.Options{HTTP1: true, Connect: runtime.DefaultTimeout}),
			Tools:  grade.Tools{Judge: judgeModel, Votes: 1},
		}
		plan, err := runtime.NewPlan(m, o)
		if err != nil {
			return nil, &service.Failure{Code: esrp.InvalidInputSemantic, Message: err.Error()}
		}
		report := func(done int) {
			progress(service.Progress{Message: "evaluating", Current: int64(done), Total: int64(plan.Total)})
		}
		report(0)
		o.Watch = func(e runtime.Event) {
			if e.Scenario != nil {
				report(e.Done)
			}
		}
		r, err := runtime.Run(ctx, plan, o)
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		err = r.JSON(&out)
		return out.Bytes(), err
	}
}

func (f serveFlags) serve(ctx context.Context, stderr io.Writer) error {
	token := os.Getenv(tokenVariable)
	if token == "" {
		return errors.New(tokenVariable + " is not set: callers need a token")
	}
	address, err := httpguard.ListenAddress(f.listen, token, tokenVariable)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	log := logger(stderr)
	d, ops, err := operations(log)
	if err != nil {
		return err
	}
	defer d.Close()
	defer startCleanup(ctx, d)()
	state := settings.StateDir(os.Getenv)
	s, err := service.Open(ctx, service.Options{
		Dir: filepath.Join(state, "esrp"), Token: token, Operations: ops,
		NATS: f.nats.access(service.RoleServer), NATSListen: f.natsListen, Log: log,
	})
	if err != nil {
		return err
	}
	defer s.Close()
	if !f.noWorker {
		w, err := s.Worker(ctx, service.WorkerOptions{Operations: ops, Jobs: f.jobs, Log: log})
		if err != nil {
			return err
		}
		defer w.Close()
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	address = listener.Addr().String() // with the real port instead of 0
	if nats := s.NATSAddress(); nats != "" {
		fmt.Fprintf(stderr, "esrp serve: workers at nats://%s\n", nats)
	}
	fmt.Fprintf(stderr, "esrp serve: serving http://%s\n", address)
	handler := s.Handler(service.HTTPOptions{Options: httpguard.Options{Address: address, Hosts: f.hosts, Origins: f.origins}, Rate: f.rate})
	const shutdownTime = 5 * time.Second
	return httpguard.ServeUntil(ctx, listener, handler, shutdownTime, s.Drain) // Drain answers callers that wait for a job
}

func workerCommand() *cobra.Command {
	var nats natsFlags
	var jobs int
	c := &cobra.Command{
		Use:   "worker",
		Short: "Run jobs of services that share a NATS",
		Long: `Runs jobs of services that share a NATS, in this directory. The token in ` + tokenVariable + ` is sent
to that NATS, unless the URL has credentials or there is an nkey.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if jobs < 1 {
				return usage.Errorf("--jobs must be more than 0")
			}
			ctx, log := cmd.Context(), logger(cmd.ErrOrStderr())
			d, ops, err := operations(log)
			if err != nil {
				return step("Failed to work", err)
			}
			defer d.Close()
			defer startCleanup(ctx, d)()
			access := nats.access(service.RoleWorker)
			access.Token = os.Getenv(tokenVariable)
			conn, err := service.Dial(ctx, access, log)
			if err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return step("Failed to work", err)
			}
			w := service.NewWorker(conn, service.WorkerOptions{Operations: ops, Jobs: jobs, Log: log})
			defer w.Close()
			fmt.Fprintln(cmd.ErrOrStderr(), "esrp worker: taking jobs from", conn.URL())
			<-ctx.Done()
			return nil
		},
	}
	nats.register(c, "NATS that the services use, as a `URL`")
	c.Flags().IntVar(&jobs, "jobs", 4, "number of jobs to run at the same time")
	_ = c.MarkFlagRequired("nats")
	return c
}

// Package service runs ESRP requests for callers over HTTP, and for workers on NATS. The contract
// is esrp.md 6 to 9.
//
// A Service is the server: it owns the HTTP endpoints (http.go, endpoints.go, stream.go), the
// record of jobs in SQLite (schema.go, job.go, accept.go), and the coordinator to which workers
// report (coordinator.go). A Worker takes jobs from a queue in NATS JetStream (queue.go, worker.go),
// which is embedded or a cluster, and runs them with its Operations. Each request is a job, even if
// its caller waits.
//
// Guarantees: an accepted job survives the death of the server and of its worker (kill -9), and is
// tried again. It has one result, the first that the server received, and its events are sent once
// and in order to every listener. The same key runs once, however many callers use it at the same
// time; the answer is kept for Options.Keep. Nothing is answered without the bearer token.
//
// It does not promise that an operation runs only once: a worker that dies may have done part of
// the work, and the next one repeats it. NATS stores only which jobs wait: the server fills the
// queue again from its record when it starts.
package service

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/seed-dec29ce4/eca/esrp/artifact"
	"github.com/seed-dec29ce4/eca/internal/filelock"
)

// Options of a service.
type Options struct {
	Dir        string // folder of the state; created if it is missing
	Token      string // required from callers and, with NATSListen, from workers
	Operations Operations
	Artifacts  *artifact.Store

	NATS       string // URL of a cluster; empty: an embedded server
	NATSListen string // host:port where the embedded server accepts workers; empty means only this process

	Lease    time.Duration // how long a worker may be silent before another worker gets its job; default 30 s
	Keep     time.Duration // how long answers are kept; default a day
	MaxJobs  int           // how many open jobs there may be; default 10,000
	Attempts int           // attempts of a job whose workers die; default 5

	Now   func() time.Time
	NewID func() string // UUIDs
	Log   *slog.Logger
}

// Limits of requests.
const (
	maxTimeout = 24 * time.Hour
	maxKey     = 512
	retryAfter = time.Second
)

// Service is the server. Close must be called.
type Service struct {
	o       Options
	now     func() time.Time
	log     *slog.Logger
	id      string // the same after a restart
	db      *sql.DB
	unlock  func()         // nil before the folder is locked
	nats    *server.Server // nil with a cluster
	nc      *nats.Conn
	queue   *queue
	hub     hub
	blobs   blobs
	inputs  inputs
	unsent  chan struct{} // there may be jobs to send to the queue
	cancel  context.CancelFunc
	work    sync.WaitGroup
	closing context.Context // ends with Close
	leaving context.Context // ends with Leave, at the latest with Close
	leave   context.CancelFunc
}

// Open starts a service. Accepted jobs that have not ended continue.
func Open(ctx context.Context, o Options) (s *Service, err error) {
	if o.Token == "" {
		return nil, errors.New("a service needs a token")
	}
	o.Lease = orElse(o.Lease, 30*time.Second)
	o.Keep = orElse(o.Keep, 24*time.Hour)
	o.MaxJobs = orElse(o.MaxJobs, 10_000)
	o.Attempts = orElse(o.Attempts, 5)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s = &Service{o: o, now: o.Now, log: o.Log, inputs: inputs{o.Artifacts, o.Log}, unsent: make(chan struct{}, 1)}
	s.closing, s.cancel = context.WithCancel(context.Background())
	s.leaving, s.leave = context.WithCancel(s.closing)
	opened := s
	defer func() {
		if err != nil {
			opened.Close()
		}
	}()
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	var alone bool
	if s.unlock, alone, err = filelock.Try(filepath.Join(o.Dir, "serve.lock")); err != nil {
		return nil, err
	}
	if !alone {
		return nil, fmt.Errorf("another service uses %s", o.Dir)
	}
	if s.db, err = openDB(o.Dir); err != nil {
		return nil, err
	}
	if s.id, err = s.identity(ctx); err != nil {
		return nil, err
	}
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if err := s.recover(ctx); err != nil {
		return nil, err
	}
	if _, err := s.nc.Subscribe(coordinatorSubject(s.id), s.handleReport); err != nil {
		return nil, err
	}
	s.work.Go(s.send)
	s.work.Go(s.watch)
	s.work.Go(s.clean)
	s.wake()
	return s, nil
}

func orElse[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// connect starts the embedded NATS, or connects to the cluster.
func (s *Service) connect(ctx context.Context) (err error) {
	if s.o.NATS != "" {
		s.nc, err = Dial(ctx, s.o.NATS, "", s.log)
	} else {
		s.nats, s.nc, err = embed(s.o)
	}
	if err != nil {
		return err
	}
	s.queue, err = makeQueue(ctx, s.nc, s.o.Lease, s.log)
	return err
}

// Worker returns a worker in this process with its own connection.
func (s *Service) Worker(ctx context.Context, o WorkerOptions) (*Worker, error) {
	nc, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	return NewWorker(nc, o), nil
}

func (s *Service) dial(ctx context.Context) (*nats.Conn, error) {
	if s.nats == nil {
		return Dial(ctx, s.o.NATS, "", s.log)
	}
	return nats.Connect("", nats.InProcessServer(s.nats), nats.Token(s.o.Token), nats.Timeout(patience))
}

// NATSAddress is the address of the embedded NATS for workers; empty if they cannot connect.
func (s *Service) NATSAddress() string {
	if s.nats == nil || s.o.NATSListen == "" {
		return ""
	}
	return s.nats.Addr().String()
}

// Drain notifies callers that wait for a job that the service ends, and ends streams of events. The
// jobs go on until Close.
func (s *Service) Drain() { s.leave() }

// Close ends the service. Running and waiting jobs continue when it is opened again. Close the
// workers of this process first.
func (s *Service) Close() {
	s.cancel()
	if s.nc != nil {
		s.nc.Close()
	}
	s.work.Wait()
	if s.nats != nil {
		s.nats.Shutdown()
		s.nats.WaitForShutdown()
	}
	if s.db != nil {
		if err := s.db.Close(); err != nil {
			s.log.Warn("the record of jobs could not be closed", "err", err)
		}
	}
	if s.unlock != nil {
		s.unlock()
	}
}

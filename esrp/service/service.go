// Package service accepts ESRP requests over HTTP, and runs them on workers that are connected by
// NATS. docs/contracts/esrp.md, sections 6 to 9, describes the service.
//
// All jobs are in one JetStream stream (jobs.go). The events of a job are under a separate subject,
// and the last event contains its state (event.go). A writer appends an event only if the last event
// is the one that it has read, so that of two concurrent writers one is refused. Long data is in an
// Object Store. A Service answers HTTP (http.go, endpoints.go, stream.go, accept.go) and is stateless:
// any service on the same NATS can answer for any job. A Worker fetches jobs from the stream and runs
// them with its Operations (worker.go). NATS is embedded, or a cluster. Each request is a job, also
// if its caller waits for the answer.
//
// Guarantees: an accepted job survives the death of servers and workers (kill -9), and is tried
// again. It ends once, and its listeners get its events once and in order. Concurrent requests with
// the same idempotency key run once, and the answer is kept for Options.Keep. Nothing is answered
// without the bearer token.
//
// It does not guarantee that an operation runs only once: a worker that dies may have done part of
// the work, which the next one repeats. A job that no worker fetches for jobAge is deleted.
package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/jet"
	"github.com/seed-dec29ce4/eca/internal/jet/embed"
)

// Options of a service.
type Options struct {
	Dir        string // folder of the embedded NATS
	Token      string // required from callers and, with NATSListen, from workers
	Operations Operations

	NATS       Access // to a cluster; without a URL: an embedded server
	NATSListen string // host:port where the embedded server accepts workers; empty means only this process

	Lease   time.Duration // how long a worker may be silent before another worker gets its job; default 30 s
	Keep    time.Duration // how long answers are kept; default one day, at most two
	MaxJobs int           // maximum number of jobs that have not ended; default 10,000

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
	*jobs
	o         Options
	nats      *embed.Server // nil with a cluster
	workers   *jet.Consumer
	openCount openJobsCount
	hub       hub
	cancel    context.CancelFunc
	work      sync.WaitGroup
	closing   context.Context // ends with Close
	draining  context.Context // ends with Drain, at the latest with Close
	drain     context.CancelFunc
}

// Open starts a service. Accepted jobs that have not ended continue.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Token == "" {
		return nil, errors.New("a service needs a token")
	}
	o.Lease = orDefault(o.Lease, 30*time.Second)
	o.Keep = min(orDefault(o.Keep, 24*time.Hour), jobAge-maxTimeout)
	o.MaxJobs = orDefault(o.MaxJobs, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	o.Log = cmp.Or(o.Log, slog.Default())
	s := &Service{o: o}
	s.closing, s.cancel = context.WithCancel(context.Background())
	s.draining, s.drain = context.WithCancel(s.closing)
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func orDefault[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// start connects to NATS, and creates the stream, the bucket and the consumer if they do not exist.
func (s *Service) start(ctx context.Context) (err error) {
	if s.o.NATS.URL == "" {
		s.warnOfOldJobs()
		s.nats, err = embed.Start(embed.Options{Name: "esrp", Dir: filepath.Join(s.o.Dir, "jetstream"), Token: s.o.Token, Listen: s.o.NATSListen})
		if errors.Is(err, embed.ErrInUse) {
			return fmt.Errorf("another service is using %s", s.o.Dir)
		}
		if err != nil {
			return err
		}
	}
	conn, err := s.dial(ctx)
	if err != nil {
		return err
	}
	s.jobs = &jobs{conn: conn} // so that Close closes it
	if _, err := conn.Setup(ctx, layout(), 0); err != nil {
		return err
	}
	if s.jobs, err = openJobs(ctx, conn, s.o.Now, s.o.Log); err != nil {
		return err
	}
	spec := jet.ConsumerSpec{Name: consumerName, Subject: queuedSubjects, Lease: s.o.Lease}
	if s.nats != nil && s.nats.Address() == "" { // all workers of an earlier process have ended with it
		err = conn.RestartConsumer(ctx, streamName, spec)
	} else {
		err = conn.EnsureConsumer(ctx, streamName, spec)
	}
	if err != nil {
		return err
	}
	if s.workers, err = conn.Consumer(ctx, streamName, consumerName); err != nil {
		return err
	}
	seq, err := s.stream.LastSeq(ctx)
	if err != nil {
		return err
	}
	s.work.Go(func() { s.watch(seq) })
	return nil
}

// warnOfOldJobs logs a warning if there is a database with jobs of an earlier version.
func (s *Service) warnOfOldJobs() {
	old := filepath.Join(s.o.Dir, "service.db")
	if _, err := os.Stat(old); err == nil {
		s.o.Log.Warn("jobs of an earlier version are not carried over; remove its files, or run that version to finish the jobs", "files", old+"*, "+filepath.Join(s.o.Dir, "nats"))
	}
}

// watch wakes the callers that wait for a job at each event of the job, until the service ends.
func (s *Service) watch(after uint64) {
	_ = s.conn.Follow(s.closing, streamName, jet.FollowOptions{After: after, HeadersOnly: true}, func(m jet.Message) error {
		if id, _, err := idOfSubject(m.Subject); err == nil {
			s.hub.notify(id)
		}
		return nil
	})
}

// openJobsCount caches the number of jobs that have not ended. The cached number is used for at most
// a second, and only while it is below the limit.
type openJobsCount struct {
	mu   sync.Mutex // guards the fields below
	n    int
	read time.Time
}

func (c *openJobsCount) increment() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
}

func (c *openJobsCount) set(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n, c.read = n, time.Now()
}

func (c *openJobsCount) below(limit int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n < limit && time.Since(c.read) < time.Second
}

// checkOpenJobs returns an error if MaxJobs jobs have not ended.
func (s *Service) checkOpenJobs(ctx context.Context) error {
	if s.openCount.below(s.o.MaxJobs) {
		return nil
	}
	n, err := s.workers.CountOpen(ctx)
	if err != nil {
		return err
	}
	s.openCount.set(n)
	if n >= s.o.MaxJobs {
		return &Failure{Code: esrp.BackendUnavailable, Message: fmt.Sprintf("%d jobs are already waiting or running", n)}
	}
	return nil
}

// Worker returns a worker in this process with its own connection.
func (s *Service) Worker(ctx context.Context, o WorkerOptions) (*Worker, error) {
	conn, err := s.dial(ctx)
	if err != nil {
		return nil, err
	}
	return NewWorker(conn, o), nil
}

func (s *Service) dial(ctx context.Context) (*jet.Conn, error) {
	if s.nats == nil {
		return Dial(ctx, s.o.NATS, s.o.Log)
	}
	return jet.Dial(ctx, jet.Options{Name: "esrp", Token: s.o.Token, Server: s.nats, Log: s.o.Log})
}

// NATSAddress returns the address of the embedded NATS for workers, or "" if they cannot connect.
func (s *Service) NATSAddress() string {
	if s.nats == nil {
		return ""
	}
	return s.nats.Address()
}

// Drain answers callers that wait for a job with the error that the service is shutting down, and ends
// streams of events. Jobs continue until Close.
func (s *Service) Drain() { s.drain() }

// Close ends the service. Jobs that have not ended continue when it is opened again. The workers of
// this process must be closed first.
func (s *Service) Close() {
	s.cancel()
	if s.jobs != nil {
		s.conn.Close()
	}
	s.work.Wait()
	if s.nats != nil {
		s.nats.Close()
	}
}

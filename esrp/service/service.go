// Package service runs ESRP requests for callers over HTTP, and for workers on NATS. The contract
// is esrp.md 6 to 9.
//
// All jobs are in one JetStream stream (jobs.go). A job's events follow each other under a subject
// of its own, and the last one is its state (event.go): an event is only added after the event that
// its writer knows, so that of two writers one is refused. Long data are in an Object Store. A
// Service answers HTTP (http.go, endpoints.go, stream.go, accept.go) and has no state: any service
// of the same NATS answers for any job. A Worker takes jobs from the stream and runs them with its
// Operations (worker.go). NATS is embedded, or a cluster. Each request is a job, even if its caller
// waits.
//
// Guarantees: an accepted job survives the death of servers and workers (kill -9), and is tried
// again. It has one end, and its listeners get its events once and in order. The same key runs once,
// however many callers use it at the same time; the answer is kept for Options.Keep. Nothing is
// answered without the bearer token.
//
// It does not promise that an operation runs only once: a worker that dies may have done part of
// the work, and the next one repeats it. A job that no worker takes for jobAge is forgotten.
package service

import (
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

	NATS       string // URL of a cluster; empty: an embedded server
	NATSListen string // host:port where the embedded server accepts workers; empty means only this process

	Lease   time.Duration // how long a worker may be silent before another worker gets its job; default 30 s
	Keep    time.Duration // how long answers are kept; default a day, at most two
	MaxJobs int           // how many open jobs there may be; default 10,000

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
	o       Options
	nats    *embed.Server // nil with a cluster
	workers *jet.Consumer
	open    openJobsCount
	hub     hub
	cancel  context.CancelFunc
	work    sync.WaitGroup
	closing context.Context // ends with Close
	leaving context.Context // ends with Drain, at the latest with Close
	leave   context.CancelFunc
}

// Open starts a service. Accepted jobs that have not ended continue.
func Open(ctx context.Context, o Options) (*Service, error) {
	if o.Token == "" {
		return nil, errors.New("a service needs a token")
	}
	o.Lease = orElse(o.Lease, 30*time.Second)
	o.Keep = min(orElse(o.Keep, 24*time.Hour), jobAge-maxTimeout)
	o.MaxJobs = orElse(o.MaxJobs, 10_000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	s := &Service{o: o}
	s.closing, s.cancel = context.WithCancel(context.Background())
	s.leaving, s.leave = context.WithCancel(s.closing)
	if err := s.start(ctx); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func orElse[T int | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// start connects to NATS and makes what is missing there.
func (s *Service) start(ctx context.Context) (err error) {
	if s.o.NATS == "" {
		s.warnOfOldJobs()
		s.nats, err = embed.Start(embed.Options{Name: "esrp", Dir: filepath.Join(s.o.Dir, "jetstream"), Token: s.o.Token, Listen: s.o.NATSListen})
		if errors.Is(err, embed.ErrInUse) {
			return fmt.Errorf("another service uses %s", s.o.Dir)
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
	spec := jet.ConsumerSpec{Name: consumerName, Subject: waiting, Lease: s.o.Lease}
	if s.nats != nil && s.nats.Address() == "" { // the workers of an earlier process are dead
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

// warnOfOldJobs says where the jobs of earlier versions are, which had a database.
func (s *Service) warnOfOldJobs() {
	old := filepath.Join(s.o.Dir, "service.db")
	if _, err := os.Stat(old); err == nil {
		s.o.Log.Warn("jobs of an earlier version are not carried over; remove its files, or run that version to finish the jobs", "files", old+"*, "+filepath.Join(s.o.Dir, "nats"))
	}
}

// watch wakes callers that wait for a job at each of its events, until the service ends.
func (s *Service) watch(after uint64) {
	_ = s.conn.Follow(s.closing, streamName, jet.FollowOptions{After: after, HeadersOnly: true}, func(m jet.Message) error {
		if id, _, err := idOfSubject(m.Subject); err == nil {
			s.hub.notify(id)
		}
		return nil
	})
}

// openJobsCount is how many jobs have not ended. It is read at most once a second, unless the limit
// is reached.
type openJobsCount struct {
	mu   sync.Mutex // guards the fields below
	n    int
	read time.Time
}

func (c *openJobsCount) added(yes bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if yes {
		c.n++
	}
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

// checkOpen refuses a job while there are too many.
func (s *Service) checkOpen(ctx context.Context) error {
	if s.open.below(s.o.MaxJobs) {
		return nil
	}
	n, err := s.workers.Open(ctx)
	if err != nil {
		return err
	}
	s.open.set(n)
	if n >= s.o.MaxJobs {
		return &Failure{Code: esrp.BackendUnavailable, Message: fmt.Sprintf("%d jobs wait or run already", n)}
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
		return Dial(ctx, s.o.NATS, "", s.o.Log)
	}
	return jet.Dial(ctx, jet.Options{Name: "esrp", Token: s.o.Token, Server: s.nats, Log: s.o.Log})
}

// Dial connects to NATS, and waits for the first connection until ctx ends. It sends a token,
// unless the token is empty or the URL contains credentials. NATS that refuses the credentials is
// an error.
func Dial(ctx context.Context, url, token string, log *slog.Logger) (*jet.Conn, error) {
	return jet.Dial(ctx, jet.Options{URL: url, Name: "esrp", Token: token, Wait: true, Log: log})
}

// NATSAddress is the address of the embedded NATS for workers; empty if they cannot connect.
func (s *Service) NATSAddress() string {
	if s.nats == nil {
		return ""
	}
	return s.nats.Address()
}

// Drain notifies callers that wait for a job that the service ends, and ends streams of events. The
// jobs go on until Close.
func (s *Service) Drain() { s.leave() }

// Close ends the service. Running and waiting jobs continue when it is opened again. Close the
// workers of this process first.
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

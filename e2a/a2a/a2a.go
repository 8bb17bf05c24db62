// Package a2a is the A2A face: other agents send messages to eca over HTTP, and get tasks.
//
// It owns A2A's wire, 1.0 and the names and shapes of 0.3 (wire.go, legacy.go), tasks and
// what becomes of them (task.go, store.go, records.go), who is notified of that (push.go,
// deliver.go), the methods over JSON-RPC (rpc.go, methods.go) and HTTP+JSON (rest.go), the agent card (card.go), and
// who may call over HTTP at all (access.go). Messages become E2A envelopes, and a task is
// made of the frames that e2a/gateway answers with.
//
// It guarantees: a message is answered with a task; a task goes on when its caller leaves,
// until it ends, is cancelled, or the server closes; a subscriber is told all that happens
// after the task it was shown, in order, however slowly it reads; a call that asks makes the
// task TASK_STATE_INPUT_REQUIRED, and runs only if the next message of the task says so; a
// task ends once.
//
// Tasks are kept on the disk, within limits, for the next server of the same folder
// (records.go); it shows those that the last one left running as failed. Pieces of an answer
// that was not finished are not among that: they are in the chat (contextId).
//
// It was written without A2A's Go SDK: see docs/a2a.md.
package a2a

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/e2a"
	"github.com/seed-dec29ce4/eca/e2a/gateway"
	"github.com/seed-dec29ce4/eca/llm"
)

// Endpoint is where JSON-RPC is served, and below it HTTP+JSON; CardPath is where the agent card is.
const (
	Endpoint = "/a2a"
	CardPath = "/.well-known/agent-card.json"
)

// Runner answers envelopes with frames; see gateway.Gateway.
type Runner interface {
	Run(ctx context.Context, e e2a.Envelope, send gateway.Send, accepted func()) error
}

// Options configure a Server.
type Options struct {
	Runner  Runner
	Version string // of eca, for the card
	URL     string // under which Endpoint is reached from outside; empty: as each request says
	Secured bool   // calls need a bearer token: the card says so
	Now     func() time.Time
	NewID   func() string
	Log     *slog.Logger

	// Records is where tasks are kept for the next server (RecordsIn); empty: nowhere.
	Records string
	// Knows says whether there is a chat; nil: there is. Tasks go with their chats, but not
	// by an error, which leaves it open.
	Knows func(contextID string) (bool, error)

	// Notifier sends push notifications; nil: there are none.
	Notifier Notifier
	// Sleep waits between tries to send one; default: for real.
	Sleep func(context.Context, time.Duration) error
	// Farewell is how long notifications may take when the server closes; default: half a
	// second.
	Farewell time.Duration
}

// Server serves A2A. Close must be called.
type Server struct {
	runner  Runner
	version string
	url     string
	secured bool
	now     func() time.Time
	newID   func() string
	log     *slog.Logger
	started time.Time

	notifier Notifier
	sleep    func(context.Context, time.Duration) error
	posts    chan struct{}   // has one for each notification on its way
	posting  context.Context // ends a moment after Close began
	farewell time.Duration

	ctx         context.Context // ends with Close
	cancel      context.CancelFunc
	stopPosting context.CancelFunc
	work        sync.WaitGroup
	tasks       store
	records     *records
}

// New returns a server.
func New(o Options) *Server {
	s := &Server{
		runner: o.Runner, version: o.Version, url: o.URL, secured: o.Secured, now: o.Now, newID: o.NewID, log: cmp.Or(o.Log, slog.Default()),
		notifier: o.Notifier, sleep: o.Sleep, posts: make(chan struct{}, maxPosting), farewell: cmp.Or(o.Farewell, farewell),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if s.newID == nil {
		s.newID = uuid.NewString
	}
	if s.sleep == nil {
		s.sleep = llm.Sleep
	}
	s.started = s.now()
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.posting, s.stopPosting = context.WithCancel(context.Background())
	if o.Records != "" {
		var err error
		if s.records, err = openRecords(o.Records, s.log); err != nil {
			s.log.Warn("tasks are not kept for after the end", "err", err)
		}
		s.restore(o.Knows)
	}
	return s
}

// Close cancels the tasks that run, and has streams end. Messages that come later are
// refused. Notifications of these ends have a moment.
func (s *Server) Close() {
	s.tasks.close()
	s.cancel()
	defer time.AfterFunc(s.farewell, s.stopPosting).Stop()
	s.work.Wait()
	s.stopPosting()
	s.records.close()
}

// Handler serves Endpoint and CardPath. It asks for no token: see Access.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(CardPath, s.serveCard)
	mux.HandleFunc(Endpoint, s.serveRPC)
	mux.HandleFunc(Endpoint+"/{$}", s.serveRPC) // some clients take the URL for a folder
	mux.HandleFunc(Endpoint+"/", s.serveREST)
	return mux
}

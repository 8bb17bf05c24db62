// Package a2a serves A2A: other agents send messages to eca over HTTP and get tasks.
//
// It owns A2A's wire format (1.0, and the names and forms of 0.3: wire.go, legacy.go), tasks and
// their storage (task.go, store.go, records.go), push notifications (push.go, deliver.go), the
// methods over JSON-RPC (rpc.go, methods.go) and HTTP+JSON (rest.go), the agent card (card.go), and
// access control over HTTP (access.go). A message becomes a turn of e2a/turn, and its task consists
// of the items of that turn.
//
// Guarantees: a message is answered with a task. A task continues after its caller disconnects,
// until it ends, is canceled, or the server closes. A subscriber receives the current task and
// every later event, in order, however slowly it reads. A call that needs approval sets the task to
// TASK_STATE_INPUT_REQUIRED, and runs only if the next message of the task approves it. A task ends
// once.
//
// Tasks are stored on disk, within limits, for the next server of the same folder (records.go).
// That server marks tasks as failed that were running when the previous one stopped. Pieces of an
// unfinished answer are stored only in the chat (contextId), not with the task.
//
// It does not use A2A's Go SDK: see docs/a2a.md.
package a2a

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/llm"
)

// Endpoint is the path of JSON-RPC, and the prefix of the paths of HTTP+JSON. CardPath is the path
// of the agent card.
const (
	Endpoint = "/a2a"
	CardPath = "/.well-known/agent-card.json"
)

// Options configure a Server.
type Options struct {
	Turns   *turn.Service
	Version string // of eca, for the card
	URL     string // of Endpoint, as callers reach it; empty means the host of each request
	Secured bool   // calls need a bearer token, which the card announces
	Now     func() time.Time
	NewID   func() string
	Log     *slog.Logger

	// Records is the folder that stores tasks for the next server (RecordsIn). If it is empty, tasks
	// are not stored.
	Records string
	// ChatExists reports whether a chat exists; nil means that all do. Tasks of deleted chats are not
	// restored. If it returns an error, the task is kept.
	ChatExists func(contextID string) (bool, error)

	// Notifier sends push notifications; nil disables them.
	Notifier Notifier
	// Sleep waits before another attempt to send a notification; default: a real wait.
	Sleep func(context.Context, time.Duration) error
	// CloseGrace is how long Close waits for pending notifications; default: half a second.
	CloseGrace time.Duration
}

// Server serves A2A. Close must be called.
type Server struct {
	opts      Options
	started   time.Time
	postSlots chan struct{}   // has one element for each notification being sent
	postCtx   context.Context // the context of notifications: ends CloseGrace after Close began

	ctx         context.Context // ends with Close
	cancel      context.CancelFunc
	stopPosting context.CancelFunc
	work        sync.WaitGroup
	tasks       store
	records     *records
}

// New returns a server.
func New(o Options) *Server {
	o.Log, o.CloseGrace = cmp.Or(o.Log, slog.Default()), cmp.Or(o.CloseGrace, defaultCloseGrace)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	if o.Sleep == nil {
		o.Sleep = llm.Sleep
	}
	s := &Server{opts: o, started: o.Now(), postSlots: make(chan struct{}, maxConcurrentPosts)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.postCtx, s.stopPosting = context.WithCancel(context.Background())
	if o.Records != "" {
		var err error
		if s.records, err = openRecords(o.Records, s.opts.Log); err != nil {
			s.opts.Log.Warn("tasks will be lost when this server stops", "err", err)
		}
		s.restore(o.ChatExists)
	}
	return s
}

// Close cancels the running tasks, ends streams and refuses later messages. It waits at most
// CloseGrace for pending notifications.
func (s *Server) Close() {
	s.tasks.close()
	s.cancel()
	defer time.AfterFunc(s.opts.CloseGrace, s.stopPosting).Stop()
	s.work.Wait()
	s.stopPosting()
	s.records.close()
}

// Handler serves Endpoint and CardPath. It requires no token: see Guard.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc(CardPath, s.serveCard)
	mux.HandleFunc(Endpoint, s.serveRPC)
	mux.HandleFunc(Endpoint+"/{$}", s.serveRPC) // some clients append a slash to the URL
	mux.HandleFunc(Endpoint+"/", s.serveREST)
	return mux
}

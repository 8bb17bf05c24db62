// Package mcp runs MCP servers: it starts them or connects to them, keeps them up, and
// makes their tools callable (eca-features 19). It is the only importer of mcp-go.
//
// It owns the connections and the child processes. A Manager has one supervisor for each
// configured server (server.go): one goroutine that owns the server's state and moves it
// along legal transitions only (state.go). A connection (connection.go) is one life of a
// server. It is a session (session.go, incoming.go, handshake.go), the conversation as the
// protocol has it, over one of three transports: a child's stdin and stdout (stdio.go),
// Streamable HTTP (streamable.go), or the older HTTP with SSE (older.go). Of mcp-go it uses
// the types and rules; its client would cost each start of eca milliseconds.
//
// Guarantees: nothing here waits for a server but the call that needs it, and that call
// has a time limit and ends with its context. What a server sends is bounded: a message, its
// stderr in the log, the number of its tools. A server that is gone fails the calls that it
// had with the reason, and is started again, less and less often. A change of a server's
// tools is a new set of tools; who has the old set keeps it. After Close nothing is left.
//
// It does not decide whether a tool may be called, does not read configuration files, and
// does not expand what is written there: a Launch comes resolved.
package mcp

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/llm"
)

// Launch says how a server is reached, with everything resolved. Either Command or URL is
// set.
type Launch struct {
	Command string
	Args    []string
	Env     []string // NAME=value, added to our own environment
	Dir     string   // where the command runs

	URL     string
	Headers map[string]string // of requests to the URL's host
	Login   Login             // gives requests to the URL's host their tokens; nil: nothing does

	// Clean removes the server's secrets from texts that are shown or logged; nil removes
	// nothing.
	Clean func(string) string
}

// Login is the user's login to one server (mcp/login).
type Login interface {
	// Token returns the access token to send; empty: none. Its error is fit for the user.
	Token(ctx context.Context) (string, error)
	// Refused hears that a request was answered with status 401 or 403, with the headers
	// WWW-Authenticate of that, and which token was sent. It returns another token to try
	// again with. Empty, without an error, means that no token helps. An error with the
	// method Needed means that the user has to log in.
	Refused(ctx context.Context, status int, headers []string, sent string) (token string, err error)
}

// Settings are what all servers have in common. They count from the next start on.
type Settings struct {
	Start     time.Duration // limit of a start, lists included; 0 is none
	KeepAlive time.Duration // between pings of remote servers; 0 is never
}

// Deps is what the room needs from the program around it.
type Deps struct {
	// Resolve makes a server ready to be started. Its error is the reason why it is not,
	// and the start is not repeated because of it.
	Resolve func(ctx context.Context, name string, c config.MCPServer) (Launch, error)
	// Roots returns the workspace folders; nil: servers are not told.
	Roots func() []string
	// Asker returns the way to the user; nil, or if it returns nil: nobody can be asked.
	Asker func() Asker
	// OpenURL has the user's browser open an address that the user agreed to; nil: there is
	// no browser.
	OpenURL func(ctx context.Context, url string) error
	// Sample has a model answer a request that the user allowed, at the cost of a chat; nil:
	// servers can not use models. The model of the request is set by it.
	Sample func(ctx context.Context, chatID, model string, r llm.Request) (Sampled, error)
	// Agreed compares what the tools of a server say about themselves with what the user
	// agreed to, and returns those that differ, by name, with what they said before; what was
	// never seen counts as agreed to. Nil: all is. It may read and write files.
	Agreed func(server string, list []Described) map[string]Before
	// Spoken returns the version of the protocol that a server spoke the last time; empty: it
	// is not known. Spoke records it. Nil: what was learned lasts as long as the manager.
	// They may read and write files.
	Spoken func(server string, c config.MCPServer) string
	Spoke  func(server string, c config.MCPServer, version string)
	// Agree records that the user agreed to a tool.
	Agree func(server string, t Described)
	// HTTP returns the client for remote servers.
	HTTP func() *http.Client
	// Changed is called after each change of a status. It must not wait.
	Changed func()
	// Handlers answer what servers ask of eca, by method. Servers are told that eca can do
	// what there is a handler for. Pings are answered without one.
	Handlers map[string]Handler

	Children *proc.Pool // starts servers; nil: without supervisors
	Version  string     // of eca, told to servers
	Log      *slog.Logger
	Now      func() time.Time
	// After returns a channel that hears after a while, and a function that gives up; nil: a
	// timer. The waits before restarts use it.
	After func(time.Duration) (<-chan time.Time, func())
}

// Status is how a server is, as one immutable value.
type Status struct {
	Name   string
	State  State
	Reason string // why it failed, or what it needs; without secrets
	// Offer is what the server offers; nil unless it runs or is on its way back.
	Offer *Offer

	conn *connection // while it runs
}

// Offer is what a server said it has.
type Offer struct {
	Server       string // its own name and version
	Protocol     string // the version that was agreed on
	Instructions string
	Tools        []*Tool

	// What follows is asked for when the server runs already.
	Prompts   []Prompt
	Resources []Resource
}

// limits of what servers may send and do.
const (
	maxMessage      = 32 << 20 // bytes of one message
	maxTools        = 1000     // of one server
	maxPages        = 200      // of one list
	maxInstructions = 64 << 10 // bytes
	maxDescription  = 16 << 10 // bytes of one tool's
	maxSchema       = 256 << 10
)

func timer(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}

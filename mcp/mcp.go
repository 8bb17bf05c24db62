// Package mcp runs MCP servers: it starts them or connects to them, keeps them running, and makes
// their tools callable (eca-features.md 19). It is the only importer of mcp-go.
//
// It owns the connections and the child processes. A Manager has one supervisor for each configured
// server (server.go): one goroutine that owns the server's state and makes only legal
// transitions (state.go). A connection (connection.go) is one run of a server. It consists of
// a session (session.go, incoming.go, handshake.go), which implements the protocol, over one of
// three transports: a child's stdin and stdout (stdio.go), Streamable HTTP (streamable.go), or the
// older HTTP with SSE (older.go). The package uses the types and rules of mcp-go, but not its
// client, which would add milliseconds to each start of eca.
//
// Guarantees: only a call that needs a server waits for it. Each call has a time limit and ends with
// its context. All data from a server is limited, such as the size of a message, the stderr in
// the log, and the number of tools. When a server ends, its running calls fail with the reason, and it
// is restarted with growing delays. If a server's tools change, the manager creates new tools; callers
// that hold the old ones can still use them. Close leaves no process or goroutine behind.
//
// It does not decide whether a tool may be called, does not read configuration files, and does not
// expand variables in them: a Launch is already resolved.
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

// Launch describes how to reach a server, with all variables expanded. Either Command or URL is set.
type Launch struct {
	Command string
	Args    []string
	Env     []string // NAME=value, added to eca's environment
	Dir     string   // the working directory of the command

	URL     string
	Headers map[string]string // of requests to the URL's host
	Login   Login             // provides the tokens for requests to the URL's host; nil means none

	// Clean removes the server's secrets from texts that are shown or logged; nil removes nothing.
	Clean func(string) string
}

// Login is the user's login to one server (mcp/login).
type Login interface {
	// Token returns the access token to send; it is empty without a login. Its error can be shown to
	// the user.
	Token(ctx context.Context) (string, error)
	// Refused is called when a request was answered with status 401 or 403. It gets the
	// WWW-Authenticate headers of the answer and the token that was sent. It returns another token to
	// try. An empty token without an error means that no token helps. An error with the method Needed
	// means that the user has to log in.
	Refused(ctx context.Context, status int, headers []string, sent string) (token string, err error)
}

// Settings apply to all servers, from their next start on.
type Settings struct {
	Start     time.Duration // limit of a start, including its lists; 0 means no limit
	KeepAlive time.Duration // interval between pings of remote servers; 0 means no pings
}

// Deps are the dependencies of the package.
type Deps struct {
	// Resolve prepares a server for its start. Its error is the reason why the server cannot start;
	// in that case it is not restarted.
	Resolve func(ctx context.Context, name string, c config.MCPServer) (Launch, error)
	// Roots returns the workspace folders; nil means that servers do not get them.
	Roots func() []string
	// Asker shows questions to the user. If it is nil or returns nil, no user can be asked.
	Asker func() Asker
	// OpenURL opens an address in the browser after the user agreed; nil means that there is no
	// browser.
	OpenURL func(ctx context.Context, url string) error
	// Sample sends a request that the user allowed to a model that it chooses, and adds the cost to a
	// chat. Nil means that servers cannot use models.
	Sample func(ctx context.Context, chatID, model string, r llm.Request) (Sampled, error)
	// Agreed compares the descriptions of a server's tools with those that the user agreed to. It
	// returns the old descriptions of the tools that differ, by name; tools that were never seen count
	// as agreed to. Nil means that all are agreed to. It may read and write files.
	Agreed func(server string, list []Described) map[string]AgreedTool
	// LastVersion returns the protocol version that a server used last time; empty means unknown.
	// SaveVersion stores it. If they are nil, the manager remembers versions in memory. They may
	// read and write files.
	LastVersion func(server string, c config.MCPServer) string
	SaveVersion func(server string, c config.MCPServer, version string)
	// Agree records that the user agreed to a tool.
	Agree func(server string, t Described)
	// HTTP returns the client for remote servers.
	HTTP func() *http.Client
	// Changed is called after each status change. It must not wait.
	Changed func()
	// Handlers answer server requests, by method. eca announces only capabilities that have a
	// handler. Pings need no handler.
	Handlers map[string]Handler

	Children *proc.Pool // starts servers; nil means without supervising processes
	Version  string     // of eca, sent to servers
	Log      *slog.Logger
	Now      func() time.Time
	// After returns a channel that signals after a delay, and a function that cancels it. It delays
	// restarts. Nil means a real timer.
	After func(time.Duration) (<-chan time.Time, func())
}

// Status is the status of a server, as an immutable value.
type Status struct {
	Name   string
	State  State
	Reason string // why it failed, or what it needs; contains no secrets
	// Offer is what the server offers; nil unless it is running or restarting.
	Offer *Offer

	conn *connection // while running
}

// Offer is everything that a server offers.
type Offer struct {
	Server       string // the server's own name and version
	Protocol     string // the negotiated version
	Instructions string
	Tools        []*Tool
	LeftOut      []string // reasons why listed tools are not in Tools

	// The lists below are fetched while the server is already running.
	Prompts   []Prompt
	Resources []Resource
}

// Limits of what servers may send and do.
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

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"github.com/seed-dec29ce4/eca/daemon/settings"
	"github.com/seed-dec29ce4/eca/e2a/a2a"
	"github.com/seed-dec29ce4/eca/e2a/gateway"
	"github.com/seed-dec29ce4/eca/e2a/turn"
	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/agent"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const serveHelp = `Lets other agents call eca over HTTP, in this directory: A2A (JSON-RPC at /a2a, the card at
/.well-known/agent-card.json; docs/a2a.md), E2A over WebSocket at /e2a (docs/e2a.md), and the
Evaluation Context Protocol at /ecp (docs/ecp.md). The configuration and the chat of
/ecp are separate from those of /a2a and /e2a.

With a token in ECA_SERVE_TOKEN, every request except the card's needs it as a bearer token.
Without one, only this machine can call. Tool calls that need approval wait for the caller's
decision. A caller cannot trust a workspace: a workspace has only the trust that you gave it with
eca trust.`

// serveTokenVariable is the environment variable with the bearer token of eca serve. The token is not
// an argument, because other users can read the arguments of a process.
const serveTokenVariable = "ECA_SERVE_TOKEN"

// maxConnections bounds concurrent connections; further callers wait.
const maxConnections = 256

type serveFlags struct {
	listen, url    string
	origins, hosts []string
}

func serveCommand(sf *serverFlags, stderr io.Writer) *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve other agents over HTTP",
		Long:  serveHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := logger(sf.logLevel, stderr)
			if err != nil {
				return err
			}
			token := os.Getenv(serveTokenVariable)
			address, err := httpguard.ListenAddress(f.listen, token, serveTokenVariable)
			if err != nil {
				return usage.Errorf("--listen: %w", err)
			}
			cwd, err := workingDir()
			if err != nil {
				return fmt.Errorf("the workspace is unknown: %w", err)
			}
			if err := f.check(); err != nil {
				return err
			}
			listener, err := listen("--listen", address)
			if err != nil {
				return err
			}
			defer listener.Close()
			d, err := newDaemon(*sf, log)
			if err != nil {
				return err
			}
			defer d.Close()
			address = listener.Addr().String() // has the actual port if the flag has port 0
			turns := turn.New(turn.Options{Host: d, Workspace: cwd})
			defer turns.Close()
			g := gateway.New(gateway.Options{Turns: turns, Log: log.Logger})
			s := a2a.New(a2a.Options{
				Turns: turns, Version: version, URL: f.url, Secured: token != "", Notifier: d, Log: log.Logger,
				Records:    a2a.RecordsIn(settings.StateDir(os.Getenv), cwd),
				ChatExists: func(id string) (bool, error) { return d.Engine().Exists(cmd.Context(), id) },
			})
			defer s.Close()
			ecpDaemon, err := newDaemon(*sf, log) // initialize configures it independently of other callers
			if err != nil {
				return err
			}
			defer ecpDaemon.Close()
			limit, err := rpcLimit(os.Getenv(ecp.TimeoutVariable))
			if err != nil {
				log.Error("ignoring ECP_RPC_TIMEOUT", "err", err)
			}
			a := agent.New(agent.Options{Host: ecpDaemon, Version: version, Workspace: cwd, Limit: limit, Log: log.Logger})
			defer a.Close()
			mux := http.NewServeMux()
			mux.Handle("/", s.Handler())
			mux.Handle("/e2a", g.Socket())
			guardOptions := httpguard.Options{Address: address, Origins: f.origins, Hosts: f.hosts, Token: token}
			mux.Handle(ecp.Endpoint, a.Handler(guardOptions))
			stopWork := func() { // Close answers the running calls
				s.Close()
				a.Close()
				turns.Close()
			}
			fmt.Fprintf(stderr, "eca serve: serving http://%s\n", address)
			return serveUntil(cmd.Context(), listener, a2a.Guard(guardOptions, mux), stopWork)
		},
	}
	cmd.Flags().StringVar(&f.listen, "listen", "127.0.0.1:8766", "address to serve at, host:port")
	cmd.Flags().StringVar(&f.url, "url", "", "URL under which others reach /a2a, for the card; needed behind a proxy")
	cmd.Flags().StringSliceVar(&f.origins, "allow-origin", nil, "origin of web pages that may call, besides those of this machine")
	cmd.Flags().StringSliceVar(&f.hosts, "allow-host", nil, "name under which eca is reached, besides this machine's")
	return cmd
}

// check refuses addresses that no caller could use.
func (f serveFlags) check() error {
	web := func(address string) (*url.URL, bool) {
		u, err := url.Parse(address)
		return u, err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	}
	if _, ok := web(f.url); f.url != "" && !ok {
		return usage.Errorf("--url must be a URL like https://example.com/a2a, not %q", f.url)
	}
	for _, origin := range f.origins {
		if u, ok := web(origin); !ok || strings.TrimPrefix(origin, u.Scheme+"://") != u.Host {
			return usage.Errorf("--allow-origin must be a page's origin like https://example.com, not %q", origin)
		}
	}
	for _, host := range f.hosts {
		if strings.ContainsAny(host, "/ ") || host == "" {
			return usage.Errorf("--allow-host must be a name without scheme and path, like eca.example.com, not %q", host)
		}
	}
	return nil
}

// listen listens at the address of a flag. flag is the name for error messages.
func listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s: %s is in use, perhaps by another eca; choose another port, or 0 for any that is free", flag, address)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: cannot listen at %s: %s", flag, address, explainListenError(err))
	}
	return listener, nil
}

// explainListenError explains an error of net.Listen.
func explainListenError(err error) string {
	var address *net.AddrError
	var unknown *net.DNSError
	switch {
	case errors.As(err, &address):
		return address.Err + "; a port is a number up to 65535"
	case errors.As(err, &unknown):
		return "unknown port or host"
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return "this machine does not have that address"
	case errors.Is(err, syscall.EACCES):
		return "permission denied; choose a port above 1023"
	}
	return err.Error()
}

// serveUntil serves until ctx ends. Then it calls stopWork to stop running work, and lets open
// requests get their answers.
func serveUntil(ctx context.Context, listener net.Listener, handler http.Handler, stopWork func()) error {
	const gracePeriod = 2 * time.Second
	return httpguard.ServeUntil(ctx, netutil.LimitListener(listener, maxConnections), handler, gracePeriod, stopWork)
}

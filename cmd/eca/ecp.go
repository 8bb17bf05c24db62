package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/agent"
	"github.com/seed-dec29ce4/eca/internal/httpguard"
	"github.com/seed-dec29ce4/eca/internal/usage"
)

const ecpHelp = `Lets an evaluation runtime drive eca with the Evaluation Context Protocol: over stdin and stdout,
one JSON object per line, or over HTTP with --http. The runtime sets the model, the agent, the
workspace, the tools, approval and budgets in the config of agent/initialize (docs/ecp.md).

eca approves only what that config allows. A runtime cannot trust a workspace: a workspace has only
the trust that you gave it with eca trust. eca answers each step within the seconds in
ECP_RPC_TIMEOUT. Over HTTP, calls need the bearer token in ECA_ECP_TOKEN if it is set; it must be
set for an address that other machines can reach.`

// tokenVariable is the environment variable with the bearer token of calls over HTTP. The token is
// not an argument, because other users can read the arguments of a process.
const tokenVariable = "ECA_ECP_TOKEN"

// ecpFlags are the flags of `eca ecp`.
type ecpFlags struct {
	http           string
	origins, hosts []string
}

func ecpCommand(sf *serverFlags, stdin io.Reader, stdout, stderr io.Writer) *cobra.Command {
	var f ecpFlags
	cmd := &cobra.Command{
		Use:   "ecp",
		Short: "Be evaluated: answer a runtime of the Evaluation Context Protocol",
		Long:  ecpHelp,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			level := sf.logLevel
			if !cmd.Flags().Changed("log-level") {
				level = "error"
			}
			// Runtimes may never read stderr, and a full pipe would block eca.
			log, err := logger(level, &boundedWriter{w: stderr, remaining: maxStderr})
			if err != nil {
				return err
			}
			limit, err := rpcLimit(os.Getenv(ecp.TimeoutVariable))
			if err != nil {
				log.Error("ignoring ECP_RPC_TIMEOUT", "err", err)
			}
			d, err := newDaemon(*sf, log)
			if err != nil {
				return err
			}
			defer d.Close()
			cwd, err := workingDir()
			if err != nil {
				return err
			}
			a := agent.New(agent.Options{Host: d, Version: version, Workspace: cwd, Limit: limit, Log: log.Logger})
			defer a.Close()
			if f.http != "" {
				return serveHTTP(cmd.Context(), a, f, os.Getenv(tokenVariable), stderr)
			}
			return a.Serve(cmd.Context(), stdin, usage.Raw(stdout))
		},
	}
	cmd.Flags().StringVar(&f.http, "http", "", "serve HTTP at this address, like 127.0.0.1:8765, instead of stdin and stdout")
	cmd.Flags().StringSliceVar(&f.origins, "allow-origin", nil, "origin of web pages that may call over HTTP, besides this machine's")
	cmd.Flags().StringSliceVar(&f.hosts, "allow-host", nil, "name under which the agent is reached over HTTP, besides this machine's")
	return cmd
}

// serveHTTP serves until ctx ends. Then it stops the running steps.
func serveHTTP(ctx context.Context, a *agent.Agent, f ecpFlags, token string, stderr io.Writer) error {
	address, err := httpguard.ListenAddress(f.http, token, tokenVariable)
	if err != nil {
		return usage.Errorf("--http: %w", err)
	}
	listener, err := listen("--http", address)
	if err != nil {
		return err
	}
	address = listener.Addr().String() // has the actual port if the flag has port 0
	fmt.Fprintf(stderr, "eca ecp: serving http://%s%s\n", address, ecp.Endpoint)
	handler := a.Handler(httpguard.Options{Address: address, Origins: f.origins, Hosts: f.hosts, Token: token})
	return serveUntil(ctx, listener, handler, a.Close) // Close answers the running calls
}

// rpcLimit parses the value of ECP_RPC_TIMEOUT: seconds, finite and above zero
// (docs/contracts/ecp.md 1.5). It returns 0 for an empty value.
func rpcLimit(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	const maxSeconds = float64(math.MaxInt64 / int64(time.Second))
	if err != nil || !(seconds > 0 && seconds < maxSeconds) {
		return 0, fmt.Errorf("%s must be a number of seconds above 0, not %.40q", ecp.TimeoutVariable, text)
	}
	return time.Duration(seconds * float64(time.Second)), nil
}

// maxStderr bounds the output to stderr; pipes hold 64 KiB.
const maxStderr = 32 << 10

// boundedWriter is a writer that drops the first write beyond its limit and all later output.
type boundedWriter struct {
	mu        sync.Mutex // guards the fields below
	w         io.Writer
	remaining int
}

func (b *boundedWriter) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(p) > b.remaining {
		b.remaining = 0
		return len(p), nil
	}
	b.remaining -= len(p)
	return b.w.Write(p)
}

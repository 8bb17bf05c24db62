package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/internal/testkit"
	"github.com/seed-dec29ce4/eca/tools"
)

// newRealRig returns a manager with one server, whose configuration is used without resolving.
func newRealRig(t *testing.T, c config.MCPServer) *rig {
	t.Helper()
	r := newRig(t, nil)
	r.m.deps.Resolve = func(_ context.Context, _ string, c config.MCPServer) (Launch, error) {
		return Launch{Command: c.Command, Args: c.Args, URL: c.URL}, nil
	}
	r.m.Apply(Settings{}, map[string]config.MCPServer{"s": c})
	r.await("s", Running)
	return r
}

// Uses the reference server "everything" over each transport: progress reports, a cancelled call,
// parallel calls, a changing list.
func TestRealEverything(t *testing.T) {
	node, modules := testkit.NodeTools(t, os.Getenv)
	for _, way := range []string{"stdio", "streamableHttp", "sse"} {
		t.Run(way, func(t *testing.T) {
			c := config.MCPServer{Command: node, Args: []string{testkit.NodeServer(modules, "everything"), "stdio"}}
			if way != "stdio" {
				c = config.MCPServer{URL: testkit.Everything(t, node, modules, way)}
			}
			r := newRealRig(t, c)
			defer r.m.Close()
			if s, _ := r.m.Status("s"); s.Offer.Protocol != "2025-11-25" || !strings.HasPrefix(s.Offer.Server, "mcp-servers/everything") {
				t.Errorf("offer: %+v", s.Offer)
			}
			long := r.tool("s", "trigger-long-running-operation")
			var mu sync.Mutex
			var steps []string
			res, err := long.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{"duration":0.2,"steps":3}`)}, func(text string) {
				mu.Lock()
				defer mu.Unlock()
				steps = append(steps, text)
			})
			mu.Lock()
			if err != nil || !strings.Contains(res.Outputs[0], "completed") || strings.Join(steps, "") != "1 of 3\n2 of 3\n3 of 3\n" {
				t.Errorf("%v %v; progress: %q", res, err, steps)
			}
			mu.Unlock()

			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() {
				_, err := long.Run(ctx, tools.Call{Arguments: json.RawMessage(`{"duration":3600,"steps":2}`)}, nil)
				ended <- err
			}()
			conn, err := r.m.servers["s"].connection(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for len(conn.activeCalls()) == 0 {
				runtime.Gosched()
			}
			if got := r.text("s", "get-sum", `{"a":20,"b":22}`); !strings.Contains(got, "42") {
				t.Errorf("beside a call that runs: %s", got)
			}
			cancel()
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			if got := r.text("s", "echo", `{"message":"still there"}`); !strings.Contains(got, "still there") {
				t.Error(got)
			}
		})
	}
}

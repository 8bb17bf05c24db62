package agent_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/daemon"
	"github.com/seed-dec29ce4/eca/ecp"
	"github.com/seed-dec29ce4/eca/ecp/agent"
)

// slowHost is a Host whose MCP servers start slowly.
type slowHost struct {
	*daemon.Daemon
	waits chan struct{} // one element for each call that begins to wait
	ready chan struct{} // closed when the MCP servers run
}

func (h slowHost) StartMCPServers(ctx context.Context) {
	h.waits <- struct{}{}
	select {
	case <-h.ready:
	case <-ctx.Done():
	}
}

// If a step is stopped while MCP servers start, the next step still waits for them, so that the model
// gets their tools. Once they run, no step waits.
func TestWaitForMCPServers(t *testing.T) {
	r := newRig(t, options{model: "turns: []\ndefault: {steps: [{text: hello}]}"})
	host := slowHost{r.host, make(chan struct{}, 10), make(chan struct{})}
	now := time.Now()
	r.agent = agent.New(agent.Options{Host: host, Version: "test", Workspace: r.root, Now: func() time.Time { return now }})
	t.Cleanup(r.agent.Close)
	c := r.connect()
	c.initialize(nil)
	first := c.begin(ecp.MethodStep, map[string]any{"input": "hi"})
	await(t, host.waits)
	reset := c.begin(ecp.MethodReset, map[string]any{})
	if stopped, err := ecp.ParseStepResult(c.answer(first).Result); err != nil || stopped.StopReason != ecp.StopCancelled {
		t.Errorf("%+v, %v", stopped, err)
	}
	c.answer(reset)
	second := c.begin(ecp.MethodStep, map[string]any{"input": "hi"})
	await(t, host.waits)
	if n := r.requestCount(); n != 0 {
		t.Errorf("the model was asked %d times before the tools were there", n)
	}
	close(host.ready)
	if out := *c.result(c.answer(second)).PublicOutput; out != "hello" {
		t.Errorf("%q", out)
	}
	c.step("again")
	if n := len(host.waits); n != 0 {
		t.Errorf("%d more steps waited", n)
	}
}

func await(t testing.TB, ch <-chan struct{}) {
	t.Helper()
	select {
	case <-ch:
	case <-time.After(time.Minute):
		t.Fatal("it does not happen")
	}
}

package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/config"
	"github.com/seed-dec29ce4/eca/tools"
)

// Apply starts, stops or restarts the servers that changed in the configuration, and touches no
// other server.
func TestApply(t *testing.T) {
	r := newRig(t, map[string]string{"stays": "good", "goes": "good", "changes": "good"})
	for _, name := range []string{"stays", "goes", "changes"} {
		r.await(name, Running)
	}
	changed := config.MCPServer{Command: "good", Args: []string{"x"}}
	now := map[string]config.MCPServer{"stays": {Command: "good"}, "changes": changed, "comes": {Command: "good"}, "off": {Command: "good", Disabled: true}}
	r.m.Apply(Settings{}, now)
	r.await("comes", Running)
	r.until("the restart", func() bool { s, _ := r.m.Status("changes"); return r.startCount("changes") == 2 && s.State == Running })
	if _, ok := r.m.Status("goes"); ok {
		t.Error("a removed server is still there")
	}
	r.await("off", Disabled)
	for name, want := range map[string]int{"stays": 1, "goes": 1, "changes": 2, "comes": 1, "off": 0} {
		if got := r.startCount(name); got != want {
			t.Errorf("%s was started %d times, want %d", name, got, want)
		}
	}
	// The same configuration again changes nothing.
	r.m.Apply(Settings{}, now)
	// Disabled and enabled.
	now["stays"] = config.MCPServer{Command: "good", Disabled: true}
	r.m.Apply(Settings{}, now)
	r.await("stays", Disabled)
	for _, tool := range r.m.Tools() {
		if tool.Spec().Server == "stays" {
			t.Error("a disabled server has tools")
		}
	}
	r.m.Start("stays") // even though it is disabled
	r.await("stays", Running)
	now["stays"] = config.MCPServer{Command: "good"}
	r.m.Apply(Settings{}, now) // enabled while running: it keeps running
	r.m.Stop("comes")
	r.await("comes", Stopped)
	r.m.Apply(Settings{}, now) // a stopped server stays stopped
	r.m.Start("nobody")
	r.m.Stop("nobody")
	if got := r.startCount("stays"); got != 2 {
		t.Errorf("stays was started %d times", got)
	}
	if s, _ := r.m.Status("comes"); s.State != Stopped {
		t.Errorf("comes: %+v", s)
	}
	r.m.Restart("stays")
	r.until("the restart", func() bool { s, _ := r.m.Status("stays"); return r.startCount("stays") == 3 && s.State == Running })
}

// A call of an unavailable server says so, and does not wait.
func TestUnreachable(t *testing.T) {
	r := newRig(t, map[string]string{"s": "good"})
	r.await("s", Running)
	tool := r.tool("s", "echo")
	run := func() error {
		_, err := tool.Run(t.Context(), tools.Call{Arguments: json.RawMessage(`{}`)}, nil)
		return err
	}
	r.m.Stop("s")
	r.await("s", Stopped)
	if err := run(); err == nil || !strings.Contains(err.Error(), "stopped") {
		t.Errorf("stopped: %v", err)
	}
	ended := r.m.servers["s"].done
	r.m.Apply(Settings{}, nil)
	<-ended
	if err := run(); err == nil || !strings.Contains(err.Error(), "no longer configured") {
		t.Errorf("removed: %v", err)
	}
}

// A server can be stopped while it starts, and started while it stops.
func TestStopAndStart(t *testing.T) {
	r := newRig(t, map[string]string{"s": "silent"})
	r.until("a start", func() bool { return r.startCount("s") == 1 })
	r.m.Stop("s")
	r.await("s", Stopped)
	r.m.Start("s")
	r.m.Stop("s")
	r.m.Start("s")
	r.await("s", Starting)
	r.m.Close() // even during a start
	if _, err := r.m.servers["s"].connection(t.Context()); err == nil {
		t.Error("a connection after the end")
	}
}

// Of twenty servers five are faulty. The good ones are usable while the bad ones fail or hang, each
// bad one gives a reason, and no process is left.
func TestTwentyServers(t *testing.T) {
	modes := map[string]string{}
	for i := range 15 {
		modes[fmt.Sprint("good-", i)] = "good"
	}
	bad := map[string]string{"exit": "exit code 3", "missing": "/does/not/exist", "silent": "", "http://127.0.0.1:1/mcp": "refused", "stubborn-silent": ""}
	for mode := range bad {
		modes["bad-"+mode] = strings.TrimPrefix(mode, "stubborn-")
	}
	r := newRig(t, modes, withStartTimeout(10*time.Minute))
	for i := range 15 {
		name := fmt.Sprint("good-", i)
		r.await(name, Running)
		if got := r.text(name, "echo", `{"text":"`+name+`"}`); got != name {
			t.Errorf("%s: %s", name, got)
		}
	}
	for mode, why := range bad {
		if why == "" {
			r.await("bad-"+mode, Starting) // its time limit is far away
			continue
		}
		if s := r.await("bad-"+mode, Failed); !strings.Contains(s.Reason, why) {
			t.Errorf("%s: %q does not say %q", mode, s.Reason, why)
		}
	}
}

package main

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/report"
	"github.com/seed-dec29ce4/eca/ecp/runtime"
)

// If the first scenario takes long, the run shows once what it waits for.
func TestWaitingForTheAgentIsReported(t *testing.T) {
	for _, c := range []struct {
		want    string
		seconds int
		ready   bool
	}{
		{"ecp: waiting for python agent.py, which may take 2m0s to start (scenario a)\n", 75, false},
		{"ecp: waiting for python agent.py (scenario a)\n", 75, true},
		{"", 1, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, false, "python agent.py", ", which may take 2m0s to start")
			p.event(runtime.Event{Running: "a"})
			if c.ready {
				p.event(runtime.Event{Ready: true})
			}
			time.Sleep(time.Duration(c.seconds) * time.Second)
			synctest.Wait()
			p.event(runtime.Event{Scenario: &report.Scenario{}})
			p.event(runtime.Event{Running: "b"})
			time.Sleep(time.Hour)
			p.end()
			if out.String() != c.want {
				t.Errorf("after %d s: %q, want %q", c.seconds, out.String(), c.want)
			}
		})
	}
}

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
func TestWaitingForTheAgentIsSaid(t *testing.T) {
	for want, seconds := range map[string]int{
		"ecp: waiting for python agent.py, which may take 2m0s to start (scenario a)\n": 75,
		"": 1,
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			p := newProgress(&out, false, "python agent.py, which may take 2m0s to start")
			p.event(runtime.Event{Running: "a"})
			time.Sleep(time.Duration(seconds) * time.Second)
			synctest.Wait()
			p.event(runtime.Event{Scenario: &report.Scenario{}})
			p.event(runtime.Event{Running: "b"})
			time.Sleep(time.Hour)
			p.end()
			if out.String() != want {
				t.Errorf("after %d s: %q, want %q", seconds, out.String(), want)
			}
		})
	}
}

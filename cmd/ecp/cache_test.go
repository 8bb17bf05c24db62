package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// With a cache, a second run calls no agent for the same input. Its report marks the results of the
// first run, without time and cost. Changed scenarios and errors are run again, and so is
// everything with --no-cache.
func TestCache(t *testing.T) {
	isolateEnvironment(t)
	asked := filepath.Join(t.TempDir(), "asked")
	t.Setenv("ASKED", asked) // if the command line named the file, its contents would be part of the agent
	m := manifest(t, agentTarget(t, "log")+` "$ASKED"`, scenario("a", has("x"), "x")+scenario("b", has("other"), "y"))
	t.Setenv("ECP_CACHE", t.TempDir())
	calls := func() int {
		raw, err := os.ReadFile(asked)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(raw), "\n")
	}
	run := func(cached, made int, args ...string) *report.Report {
		t.Helper()
		before := 0
		if _, err := os.Stat(asked); err == nil {
			before = calls()
		}
		_, r := evaluateManifest(t, m, args...)
		if r.Cached() != cached || calls()-before != made || r.Counts.Passed != 1 {
			t.Errorf("%d attempts are cached, want %d; %d were made, want %d; %+v", r.Cached(), cached, calls()-before, made, r.Counts)
		}
		return r
	}
	run(0, 2)
	r := run(2, 0)
	if r.CostUSD != nil && *r.CostUSD != 0 || r.Usage.InputTokens != 0 || r.Summary.P95MS != 0 || r.Scenarios[0].DurationMS != 0 || len(r.Scenarios[0].Notes) == 0 {
		t.Errorf("%v, %+v, %+v", r.CostUSD, r.Usage, r.Scenarios[0])
	}
	run(0, 2, "--no-cache")
	run(2, 2, "--repeat", "2") // the second attempts are new
	write(t, m, strings.Replace(string(must(os.ReadFile(m))), `"y"`, `"z"`, 1))
	run(1, 1)
	failing := manifest(t, agentTarget(t, "fail:x"), scenario("a", has("x"), "x"))
	for range 2 {
		if _, r := evaluateManifest(t, failing); r.Cached() != 0 || r.Counts.Error != 1 {
			t.Errorf("an error is cached: %+v", r.Counts)
		}
	}
}

func must(raw []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return raw
}

package main

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/editors/fake"
)

// twentyServers is a configuration with 15 good MCP servers and five faulty ones: two never answer
// and ignore signals, one does not read, one ends, one does not exist.
func twentyServers(t testing.TB) string {
	t.Helper()
	servers := map[string]any{}
	for i := range 15 {
		servers[fmt.Sprint("good", i)] = map[string]any{"command": "sh", "args": []any{"-c", mcpScript}}
	}
	for i, script := range []string{deafScript, deafScript, deafScript, "echo nonsense; exit 1", "exec no-such-program"} {
		servers[fmt.Sprint("bad", i)] = map[string]any{"command": "sh", "args": []any{"-c", script}}
	}
	raw, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// BenchmarkMCPServers measures with twenty MCP servers, five of them faulty: from process start to
// the answer of `initialize`, compared with no servers; from the start until all good ones run; and
// from `shutdown` to the end of the process and of all servers.
func BenchmarkMCPServers(b *testing.B) {
	eca, none, with := build(b, "."), newPlace(b), newPlace(b, "ECA_CONFIG="+twentyServers(b))
	var initialized, floor, running, ended []time.Duration
	for b.Loop() {
		floor = append(floor, firstByte(b, none, eca, initialize, "server"))
		initialized = append(initialized, firstByte(b, with, eca, initialize, "server"))

		cmd := exec.Command(eca, "server", "--log-level", "error")
		cmd.Dir, cmd.Env = with.root, with.env
		start := time.Now()
		p := connect(b, cmd)
		p.Open(with.root, nil)
		for i := range 15 {
			p.Await(0, "a good server", fake.Contains("tool/serverUpdated", fmt.Sprintf(`"name":"good%d","status":"running"`, i)))
		}
		running = append(running, time.Since(start))
		start = time.Now()
		shutDown(b, p)
		ended = append(ended, time.Since(start))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(initialized).Seconds()*1000, "initialize-ms")
	b.ReportMetric(median(floor).Seconds()*1000, "initialize-without-ms")
	b.ReportMetric(median(running).Seconds()*1000, "all-good-run-ms")
	b.ReportMetric(median(ended).Seconds()*1000, "shutdown-ms")
	b.ReportMetric(slices.Max(ended).Seconds()*1000, "shutdown-max-ms")
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// BenchmarkScenarios runs 1,000 scenarios of a fast agent, each with one step, two at a time. It
// shows the cost of a step above the floor: the same agent, run in the same way by a program that
// does nothing else, in the same run.
func BenchmarkScenarios(b *testing.B) {
	const scenarios, lanes = 1000, 2
	// The agent is a shell script that starts no other program, so that its start is cheap.
	agent := filepath.Join(b.TempDir(), "agent.sh")
	if err := os.WriteFile(agent, []byte(`while IFS= read -r line; do
id=${line##*\"id\":}; id=${id%\}*}
case $line in
*initialize*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"name\":\"a\",\"capabilities\":{}}}";;
*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"status\":\"done\",\"public_output\":\"x\"}}";;
esac
done
`), 0o644); err != nil {
		b.Fatal(err)
	}
	manifest := filepath.Join(b.TempDir(), "m.yaml")
	var text strings.Builder
	fmt.Fprintf(&text, "manifest_version: v1\nname: bench\ntarget: sh %s\nscenarios:\n", agent)
	for i := range scenarios {
		fmt.Fprintf(&text, "  - {name: s%d, steps: [{input: x, graders: [{type: text_match, condition: contains, value: x}]}]}\n", i)
	}
	if err := os.WriteFile(manifest, []byte(text.String()), 0o644); err != nil {
		b.Fatal(err)
	}
	var floor, ours float64
	for b.Loop() {
		start := b.Elapsed()
		var all sync.WaitGroup
		for range lanes {
			all.Go(func() {
				for range scenarios / lanes {
					runAgentDirectly(b, "sh "+agent)
				}
			})
		}
		all.Wait()
		floor += (b.Elapsed() - start).Seconds()
		start = b.Elapsed()
		if code := run(context.Background(), []string{"run", "--manifest", manifest, "-j", fmt.Sprint(lanes)}, streams{io.Discard, io.Discard}); code != 0 {
			b.Fatalf("exit %d", code)
		}
		ours += (b.Elapsed() - start).Seconds()
	}
	n := float64(b.N) * scenarios
	b.ReportMetric(1000*floor/n, "floor-ms/step")
	b.ReportMetric(1000*(ours-floor)/n, "overhead-ms/step")
}

// runAgentDirectly sends the messages of one scenario to an agent, without the runtime.
func runAgentDirectly(b *testing.B, target string) {
	cmd := exec.Command("/bin/sh", "-c", target)
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Error(err)
		return
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		b.Error(err)
		return
	}
	lines := bufio.NewReader(out)
	for id, method := range []string{"agent/initialize", "agent/step"} {
		fmt.Fprintf(in, `{"jsonrpc":"2.0","method":%q,"params":{"input":"x"},"id":%d}`+"\n", method, id)
		if _, err := lines.ReadString('\n'); err != nil {
			b.Error(err)
		}
	}
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		b.Error(err)
	}
}

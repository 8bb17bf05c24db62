//go:build !race

package service

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/esrp"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// An output of 64 MiB that a worker elsewhere uploaded is served by a third node, which holds only a
// part of it at a time. (The race detector needs several times as much memory.)
func TestThirdNodeServesAnOutput(t *testing.T) {
	needs.Long(t)
	address, nodes := nodesOf(t, 1, time.Minute)
	conn, err := Dial(t.Context(), Access{URL: address, Token: token}, discardLogger())
	if err != nil {
		t.Fatal(err)
	}
	data := bytes.Repeat([]byte("0123456789abcdef"), maxBlob/16)
	worker := NewWorker(conn, WorkerOptions{Operations: constantOutput{newEcho(), data}, Jobs: 1, Log: discardLogger()})
	defer worker.Close()
	j, err := accept(t, nodes[0], request("echo", "x", asyncMode, ""))
	if err != nil {
		t.Fatal(err)
	}
	if j, err = nodes[0].waitForEnd(t.Context(), j.id); err != nil || j.jobState() != esrp.JobSucceeded {
		t.Fatalf("%s, %v", j.jobState(), err)
	}
	t.Setenv("GOGC", "20") // of the child process, so that most of its memory is memory that it still uses
	third, out := startProcess(t, "node "+address)
	base, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, base: strings.TrimSpace(base)}
	_, answer := r.respond("GET", "/v1/jobs/"+j.id, "")
	if len(answer.Artifacts) != 1 || answer.Artifacts[0].SizeBytes != maxBlob {
		t.Fatalf("%+v", answer.Artifacts)
	}
	before := testkit.PeakMemory(third.Process.Pid)
	_, text, _ := r.do("GET", "/v1/artifacts/"+strings.TrimPrefix(answer.Artifacts[0].URI, esrp.Scheme), "")
	if text != string(data) {
		t.Errorf("%d bytes that differ", len(text))
	}
	more := testkit.PeakMemory(third.Process.Pid) - before
	t.Logf("%d MiB before, %d MiB more", before>>20, more>>20)
	if more > 32<<20 {
		t.Errorf("the third node took %d MiB more", more>>20)
	}
}

// constantOutput has the same output for each job.
type constantOutput struct {
	*echo
	data []byte
}

func (c constantOutput) Run(context.Context, Call) (Result, error) {
	return Result{Outputs: []Output{{Name: "out", ContentType: "text/plain", Data: c.data}}}, nil
}

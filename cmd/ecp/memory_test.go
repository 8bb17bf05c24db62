//go:build !race

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/runfile"
	"github.com/seed-dec29ce4/eca/internal/needs"
	"github.com/seed-dec29ce4/eca/internal/testkit"
)

// Two million planned attempts take no more memory than the finished ones, and not longer to begin
// than fewer. (The race detector needs several times as much memory.)
func TestLargePlanStaysSmall(t *testing.T) {
	needs.Long(t)
	isolateEnvironment(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const records, models = 100000, 20
	m, axis := largeManifest(t, records, models)
	file := filepath.Join(t.TempDir(), "x"+runfile.Extension)
	execute := func(models, limit, value string) (busy time.Duration, used int64) {
		cmd := exec.Command(self, "ecp", "run", "--manifest", m, "--matrix", "model="+models, limit, value, "--run-file", file)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		peak := watchMemory(cmd.Process.Pid)
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitError {
			t.Fatalf("%v: %s", err, out.String())
		}
		return cmd.ProcessState.UserTime(), peak()
	}
	one, _ := execute("m0", "--max-tokens", "100")
	all, used := execute(axis, "--max-tokens", "100")
	// The first attempt does not wait until all cases were looked at.
	if all > 4*one {
		t.Errorf("%s of processor time with %d models, and %s with one", all, models, one)
	}
	check := func() {
		f, err := runfile.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if r := f.Report(); r.Counts.Passed == 0 || r.NotRun == 0 || r.Counts.Passed+r.Counts.Failed+r.Counts.Error+r.NotRun != records*models || info.Size() > 50<<20 {
			t.Errorf("%+v, %d not run, %d bytes", r.Counts, r.NotRun, info.Size())
		}
	}
	check()
	t.Logf("%d MB, processor %s", used>>20, all)
	if used > 150<<20 {
		t.Errorf("it took %d MB", used>>20)
	}
	start := time.Now()
	if _, used = execute(axis, "--max-time", "1"); used > 150<<20 {
		t.Errorf("it took %d MB with a time limit", used>>20)
	}
	t.Logf("with a limit of a second: %s, %d MB", time.Since(start).Round(time.Millisecond), used>>20)
	check()
}

// watchMemory returns a function that returns the peak memory of a process in bytes, once the
// process has ended; 0 if the system does not report it. The system's figure for an ended child
// includes its parent's memory.
func watchMemory(pid int) (peak func() int64) {
	most := make(chan int64, 1)
	go func() {
		var last int64
		for used := testkit.PeakMemory(pid); used > 0; used = testkit.PeakMemory(pid) {
			last = used
			time.Sleep(10 * time.Millisecond)
		}
		most <- last
	}()
	return func() int64 { return <-most }
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// gone checks that the processes whose ids are in a file have ended.
func gone(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ids := strings.Fields(string(data))
	if len(ids) == 0 {
		t.Error("no process was started")
	}
	if len(proc.Gaps("x")) > 0 {
		t.Skip("NOT TESTED: this system does not find processes that left their group; run it on Linux")
	}
	for _, id := range ids {
		pid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(30 * time.Second); proc.Alive(pid); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Errorf("process %d lives on", pid)
				break
			}
		}
	}
}

// Whatever an agent does ends as an error of its scenario that says why; the next scenario
// runs.
func TestHostile(t *testing.T) {
	quiet(t)
	for mode, want := range map[string]struct{ kind, say string }{
		"hang":         {"timeout", "no answer within the time limit"},
		"wrong-id":     {"timeout", "another id"},
		"unterminated": {"timeout", "no answer within the time limit"},
		"flood":        {"", ""}, // one of two limits is first
		"long":         {"exit", "64 MiB"},
		"crash":        {"exit", "exit code 9: out of memory"},
		"kill":         {"exit", "the agent"},
		"status:x":     {"protocol", "status"},
	} {
		t.Run(mode, func(t *testing.T) {
			limit := "60"
			if want.kind == "timeout" || mode == "flood" {
				limit = "2"
			}
			out, r := evaluated(t, manifest(t, agentTarget(t, mode), scenario("bad", has("x"), "x")), "--timeout", limit)
			if out.code != exitError || len(r.Errors) != 1 || (want.kind != "" && r.Errors[0].Kind != want.kind) || !strings.Contains(r.Errors[0].Message, want.say) {
				t.Errorf("exit %d: %+v", out.code, r.Errors)
			}
			if len(out.out) > 1<<20 {
				t.Errorf("a report of %d bytes", len(out.out))
			}
		})
	}
	t.Run("noise", func(t *testing.T) {
		if _, r := evaluated(t, manifest(t, agentTarget(t, "noise"), scenario("a", has("x"), "x"))); r.Passed != 1 || !strings.Contains(r.Scenarios[0].Notes[0], "20000") {
			t.Errorf("%+v", r.Scenarios[0])
		}
	})
	t.Run("exit", func(t *testing.T) {
		_, r := evaluated(t, manifest(t, agentTarget(t, "exit"), scenario("a", has("x"), "x")))
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "exit code 3: no config found") {
			t.Errorf("%+v", r.Errors)
		}
	})
	t.Run("missing", func(t *testing.T) {
		_, r := evaluated(t, manifest(t, "/does/not/exist", scenario("a", has("x"), "x")))
		if len(r.Errors) != 1 || !strings.Contains(r.Errors[0].Message, "exit code 127") {
			t.Errorf("%+v", r.Errors)
		}
	})
	t.Run("fork", func(t *testing.T) {
		pids := filepath.Join(t.TempDir(), "pids")
		if _, r := evaluated(t, manifest(t, agentTarget(t, "fork", pids), scenario("a", has("x"), "x"))); r.Passed != 1 {
			t.Errorf("%+v", r.Errors)
		}
		gone(t, pids)
	})
}

// A run that is killed, however, leaves no agent.
func TestKilled(t *testing.T) {
	quiet(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	pids := filepath.Join(t.TempDir(), "pids")
	cmd := exec.Command(self, "ecp", "run", "--manifest", manifest(t, agentTarget(t, "deaf", pids)+" & "+agentTarget(t, "hang"), scenario("a", has("x"), "x")))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if data, err := os.ReadFile(pids); err == nil && len(data) > 0 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the agent did not start")
		}
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	gone(t, pids)
}

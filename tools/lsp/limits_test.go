package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/needs"
)

// readyServer returns the ready server of a file.
func (r *rig) readyServer(name string) *server {
	r.Helper()
	s, err := r.use().runningFor(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	if err := s.awaitReady(r.Context()); err != nil {
		r.Fatal(err)
	}
	return s
}

func (r *rig) awaitEnd(s *server) {
	r.Helper()
	select {
	case <-s.ended:
	case <-time.After(20 * time.Second):
		r.Fatal("the server still runs")
	}
}

// A server that no edit has used for idleTime is stopped. This does not count as a failure, and the
// next edit starts the server again.
func TestIdleServersAreStopped(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "", map[string]string{"a.toy": "DEF a\n"})
	r.servers.checkInterval = 10 * time.Millisecond
	r.want(r.write("a.toy", "ERR x\n"), "a.toy:1:5: error: x [toy 7]")
	s := r.readyServer("a.toy")
	time.Sleep(10 * r.servers.checkInterval)
	if s.endError() != nil {
		t.Fatalf("it was stopped while in use: %v", s.endError())
	}
	setUsed := func(at time.Time) {
		r.servers.mu.Lock()
		defer r.servers.mu.Unlock()
		s.used = at
	}
	setUsed(time.Now().Add(time.Minute - idleTime))
	time.Sleep(10 * r.servers.checkInterval)
	if s.endError() != nil {
		t.Fatalf("it was stopped before %s without use: %v", idleTime, s.endError())
	}
	setUsed(time.Now().Add(-idleTime - time.Minute))
	r.awaitEnd(s)
	r.servers.work.Wait()
	r.want(r.write("a.toy", "ERR x\nERR y\n"), "a.toy:2:5: error: y [toy 7]")
	if list := r.servers.Failures(); len(list) != 0 {
		t.Errorf("%q", list)
	}
}

// A server that uses too much memory is ended and listed as failed. Edits work without it.
func TestServersThatUseTooMuchMemory(t *testing.T) {
	needs.POSIX(t)
	if runtime.GOOS != "linux" {
		t.Skip("memory is limited on Linux only")
	}
	r := newRig(t, "", map[string]string{"a.toy": "DEF a\n"})
	r.servers.maxMemory, r.servers.checkInterval = 1<<20, 10*time.Millisecond
	s, err := r.use().runningFor(filepath.Join(r.dir, "a.toy"))
	if err != nil {
		t.Fatal(err)
	}
	r.awaitEnd(s)
	r.servers.work.Wait()
	if list := r.servers.Failures(); len(list) != 1 || !strings.Contains(list[0], "it used more than 1 MiB of memory") {
		t.Errorf("%q", list)
	}
	r.want(r.write("a.toy", "ERR x\n"), "") // within the pause after a failure
}

// If too many servers run, the one that was used least recently is stopped to start another.
func TestRunningServersAreLimited(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "", nil)
	toy := r.settings.Config.Servers["toy"]
	toy.RootMarkers = []string{"top"}
	r.settings.Config.Servers["toy"] = toy
	var all []*server
	for i := range maxRunning + 1 {
		dir := filepath.Join(r.dir, fmt.Sprint("p", i))
		if err := os.MkdirAll(filepath.Join(dir, "top"), 0o700); err != nil {
			t.Fatal(err)
		}
		if i == maxRunning {
			r.readyServer("p0/a.toy")
		}
		all = append(all, r.readyServer(fmt.Sprintf("p%d/a.toy", i)))
	}
	r.awaitEnd(all[1])
	if ended := slices.IndexFunc(all, func(s *server) bool { return s != all[1] && s.endError() != nil }); ended >= 0 {
		t.Errorf("server %d has ended: %v", ended, all[ended].endError())
	}
	if list := r.servers.Failures(); len(list) != 0 {
		t.Errorf("%q", list)
	}
}

// Files that do not concern the server do not count for the number of watched files.
func TestOtherFilesAreNotCounted(t *testing.T) {
	needs.POSIX(t)
	r := newRig(t, "", map[string]string{"z.toy": "DEF a\n"})
	for i := range maxWatched {
		if err := os.WriteFile(filepath.Join(r.dir, fmt.Sprint(i, ".txt")), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := r.readyServer("z.toy")
	if err := s.lock(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.unlock()
	s.changesIn(r.dir)
	if err := os.Remove(filepath.Join(r.dir, "z.toy")); err != nil {
		t.Fatal(err)
	}
	if got := s.changesIn(r.dir); len(got) != 1 || got[0].Type != fileDeleted {
		t.Errorf("%v", got)
	}
}

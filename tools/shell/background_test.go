package shell

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/tools"
)

// If there are too many ended jobs, those that ended first are forgotten and their files removed. A
// job that began first but has just ended is kept, because its chat does not know of the end yet.
func TestEndedJobs(t *testing.T) {
	jobs := NewJobs(t.TempDir(), time.Now)
	began := time.Now()
	add := func(n int) *job {
		b := &job{lines: &outputLines{}, log: filepath.Join(jobs.dir, fmt.Sprintf(logName, 0, n)), ended: make(chan struct{})}
		b.Job = tools.Job{ID: fmt.Sprint("job-", n), ChatID: "a", Status: tools.JobRunning, Started: began}
		if err := os.WriteFile(b.log, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		jobs.jobs = append(jobs.jobs, b)
		return b
	}
	server := add(0)
	tick := began
	jobs.now = func() time.Time { tick = tick.Add(time.Second); return tick }
	for n := range maxEnded {
		jobs.finish(add(n+1), proc.Exit{})
	}
	jobs.News("a")
	jobs.finish(server, proc.Exit{Code: 1})
	if _, ok := jobs.find("job-0"); !ok || len(jobs.News("a")) != 1 {
		t.Error("the job that ended last was forgotten before its chat received the news")
	}
	for n, want := range map[int]bool{0: true, 1: false, 2: true} {
		_, listed := jobs.find(fmt.Sprint("job-", n))
		_, err := os.Stat(filepath.Join(jobs.dir, fmt.Sprintf(logName, 0, n)))
		if listed != want || (err == nil) != want {
			t.Errorf("job-%d: listed: %v, want %v; its output: %v", n, listed, want, err)
		}
	}
}

// Files of killed daemons are removed in time, and nothing else.
func TestClearLogs(t *testing.T) {
	dir := t.TempDir()
	const nobody = 1 << 30
	now := time.Now()
	for name, c := range map[string]struct {
		age  time.Duration
		left bool
	}{
		fmt.Sprintf(logName, nobody, 1):      {8 * 24 * time.Hour, false},
		fmt.Sprintf(logName, nobody, 2):      {time.Hour, true},
		fmt.Sprintf(logName, os.Getpid(), 1): {8 * 24 * time.Hour, true},
		"other.log":                          {8 * 24 * time.Hour, true},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-c.age), now.Add(-c.age)); err != nil {
			t.Fatal(err)
		}
		removeStaleLogs(dir, now)
		if _, err := os.Stat(path); (err == nil) != c.left {
			t.Errorf("%s: %v", name, err)
		}
	}
}

package daemon

import (
	"os"
	"sync"
	"time"
)

// absenceGrace is how long a file of the configuration may be missing until it counts as removed:
// some editors remove a file before they write it again.
const absenceGrace = time.Second

// absences remembers since when files are missing that were in use.
type absences struct {
	now func() time.Time

	mu    sync.Mutex // guards since
	since map[string]time.Time
}

func newAbsences(now func() time.Time) *absences {
	return &absences{now: now, since: map[string]time.Time{}}
}

// gone says whether a file that is missing has been so for long enough. It is asked again
// after absenceGrace if pending says so.
func (a *absences) gone(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, known := a.since[path]
	if !known {
		since = a.now()
		a.since[path] = since
	}
	return a.now().Sub(since) >= absenceGrace
}

// pending says whether a file is missing of which it is not clear yet whether it stays away.
// It forgets the others.
func (a *absences) pending() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for path, since := range a.since {
		if _, err := os.Stat(path); err == nil || a.now().Sub(since) >= absenceGrace {
			delete(a.since, path)
		}
	}
	return len(a.since) > 0
}

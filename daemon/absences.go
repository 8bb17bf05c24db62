package daemon

import (
	"os"
	"sync"
	"time"
)

// absenceGrace is how long a file of the configuration may be missing until it counts as removed:
// some editors remove a file before they write it again.
const absenceGrace = time.Second

// absences remembers when files that were in use were first found missing.
type absences struct {
	now func() time.Time

	mu    sync.Mutex // guards since
	since map[string]time.Time
}

func newAbsences(now func() time.Time) *absences {
	return &absences{now: now, since: map[string]time.Time{}}
}

// removed reports whether a missing file has been missing long enough to count as removed. If not,
// the caller asks again after absenceGrace (see pending).
func (a *absences) removed(path string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	since, known := a.since[path]
	if !known {
		since = a.now()
		a.since[path] = since
	}
	return a.now().Sub(since) >= absenceGrace
}

// pending reports whether any file has been missing for less than absenceGrace. It forgets all
// other files.
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

package a2a

import (
	"cmp"
	"slices"
	"sync"
)

const (
	maxRunning    = 64       // tasks that have not ended
	maxEnded      = 1000     // ended tasks; the oldest are removed first
	maxEndedBytes = 64 << 20 // all ended tasks together, as JSON
	maxHistory    = 100      // messages of a task: the first one and the latest
)

// store contains the tasks of a server in memory.
type store struct {
	mu     sync.Mutex // guards the fields below
	jobs   map[string]*job
	order  []*job // oldest first
	closed bool
}

// add adds a new task and calls begin under the lock, so that no task begins after close. It fails
// if another task of the context is running, because a chat has one turn at a time. It returns the
// ended tasks that it removed to stay within the limits.
func (st *store) add(j *job, begin func()) (removed []*job, err error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return nil, failure(codeInternal, "eca is shutting down")
	}
	running := 0
	for _, other := range st.order {
		if other.isDone() {
			continue
		}
		running++
		if other.contextID == j.contextID {
			return nil, failure(codeUnsupported, "context %q is busy with task %q: answer that one, wait for its end, or cancel it", j.contextID, other.id)
		}
	}
	if running >= maxRunning {
		return nil, failure(codeInternal, "%d tasks are running already; try again when one has ended", maxRunning)
	}
	begin()
	return st.putLocked(j), nil
}

// addEnded adds an ended task. It returns the ended tasks that it removed to stay within the limits.
func (st *store) addEnded(j *job) (removed []*job) {
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.putLocked(j)
}

func (st *store) putLocked(j *job) (removed []*job) {
	if st.jobs == nil {
		st.jobs = map[string]*job{}
	}
	st.jobs[j.id] = j
	st.order = append(st.order, j)
	ended, bytes := 0, 0
	for _, other := range slices.Backward(st.order) {
		if !other.isDone() {
			continue
		}
		ended, bytes = ended+1, bytes+other.size
		if ended > maxEnded || bytes > maxEndedBytes && ended > 1 {
			removed = append(removed, other)
			delete(st.jobs, other.id)
		}
	}
	st.order = slices.DeleteFunc(st.order, func(other *job) bool { return st.jobs[other.id] == nil })
	return removed
}

func (j *job) isDone() bool {
	select {
	case <-j.done:
		return true
	default:
		return false
	}
}

// discard stops all work for a task that was removed from the store.
func (j *job) discard() {
	j.cancel()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.removed = true
	for _, h := range j.hooks {
		h.cancel()
	}
}

// find returns a task, or an error for the caller.
func (st *store) find(id string) (*job, error) {
	if id == "" {
		return nil, failure(codeParams, "params: the id of a task is missing")
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if j := st.jobs[id]; j != nil {
		return j, nil
	}
	return nil, failure(codeNotFound, "there is no task %q", id)
}

// list returns the tasks, the last changed ones first.
func (st *store) list() []*task {
	st.mu.Lock()
	jobs := slices.Clone(st.order)
	st.mu.Unlock()
	tasks := make([]*task, len(jobs))
	for i, j := range jobs {
		tasks[i] = j.snapshot(nil)
	}
	slices.SortStableFunc(tasks, func(a, b *task) int {
		return cmp.Or(cmp.Compare(b.Status.Timestamp, a.Status.Timestamp), cmp.Compare(a.ID, b.ID))
	})
	return tasks
}

func (st *store) close() {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.closed = true
}

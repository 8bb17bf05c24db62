package a2a

import (
	"context"
	"slices"
	"time"
)

// save stores the current task before anyone is notified. The caller holds the job's lock. For an
// ended task it stores only the hooks with pending notifications, so that no unused credentials
// stay on disk.
func (j *job) save() {
	if j.s.records == nil || j.removed {
		return
	}
	rec := record{Task: j.task, Chat: j.chat}
	for _, h := range j.hooks {
		if !j.task.Status.State.ended() || len(h.waiting) > 0 {
			rec.Hooks = append(rec.Hooks, recordHook{Config: h.config, Legacy: h.legacy})
		}
	}
	j.s.records.save(rec)
}

// cutShort is the message of a task that eca ended.
const cutShort = "eca ended before the task did. Its output until then is in the context."

// restore loads the tasks of the previous server. Tasks that were running have failed. Receivers
// are notified, also of ends that the previous server did not deliver. Tasks of deleted chats are
// removed.
func (s *Server) restore(knows func(contextID string) (bool, error)) {
	recs := slices.DeleteFunc(s.records.load(), func(rec record) bool {
		removed := rec.Chat && knows != nil && s.chatDeleted(rec.Task, knows)
		if removed {
			s.records.remove(rec.Task.ID)
		}
		return removed
	})
	s.dropLate(recs)
	for _, rec := range recs {
		j := &job{id: rec.Task.ID, contextID: rec.Task.ContextID, s: s, done: make(chan struct{}), task: rec.Task, chat: rec.Chat}
		j.size = jsonSize(j.task)
		j.ctx, j.cancel = context.WithCancel(s.ctx)
		j.cancel()
		for _, h := range rec.Hooks {
			hook := &hook{config: h.Config, legacy: h.Legacy}
			hook.ctx, hook.cancel = context.WithCancel(s.posting)
			j.hooks = append(j.hooks, hook)
		}
		j.resume()
		s.drop(s.tasks.addEnded(j))
	}
}

// chatDeleted reports whether a task's chat was certainly deleted. If that is unknown, because the store
// cannot be read at the moment, the task stays.
func (s *Server) chatDeleted(t task, knows func(contextID string) (bool, error)) bool {
	known, err := knows(t.ContextID)
	if err != nil {
		s.log.Warn("whether a task's chat was deleted is not known; the task is kept", "task", t.ID, "err", err)
		return false
	}
	return !known
}

// resume notifies the receivers of a task's end; a task that was running has failed.
func (j *job) resume() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.task.Status.State.ended() {
		j.setLocked(failed, cutShort)
		return
	}
	close(j.done)
	j.tellHooks()
}

// dropLate drops notifications that should no longer be sent: of ends too long ago, and those
// beyond a limit, the oldest first; all of them if notifications are off. Records are in the order
// of their changes.
func (s *Server) dropLate(recs []record) {
	room := maxLate
	for i := range slices.Backward(recs) {
		rec := &recs[i]
		switch at, err := time.Parse(time.RFC3339Nano, rec.Task.Status.Timestamp); {
		case len(rec.Hooks) == 0:
			continue
		case !s.pushes():
			s.log.Warn("push notifications of a task are given up: they are off", "task", rec.Task.ID)
		case !rec.Task.Status.State.ended():
			continue
		case err == nil && s.now().Sub(at) <= lateAge && len(rec.Hooks) <= room:
			room -= len(rec.Hooks)
			continue
		default:
			s.log.Warn("push notifications of a task's end are given up", "task", rec.Task.ID, "ended", rec.Task.Status.Timestamp)
		}
		rec.Hooks = nil
		s.records.save(*rec)
	}
}

// drop ends all remaining work for tasks that no caller can request any more.
func (s *Server) drop(removed []*job) {
	for _, j := range removed {
		j.forget()
		s.records.remove(j.id)
	}
}

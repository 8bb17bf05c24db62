package a2a

import (
	"context"
	"slices"
	"time"
)

// save stores the current task with its hooks. The caller holds the job's lock. Of an ended task's
// hooks, it stores only those with pending notifications, so that no unused credentials stay on disk.
func (j *job) save() {
	if j.server.records == nil || j.removed {
		return
	}
	rec := record{Task: j.task, Chat: j.hasChat}
	for _, h := range j.hooks {
		if !j.task.Status.State.ended() || len(h.pending) > 0 {
			rec.Hooks = append(rec.Hooks, recordHook{Config: h.config, Legacy: h.legacy})
		}
	}
	j.server.records.save(rec)
}

// serverEnded is the message of a task that was running when eca stopped.
const serverEnded = "eca stopped before the task ended. Its output until then is in the context."

// restore loads the tasks of an earlier process. It marks tasks that were still running as failed,
// sends the notifications that the earlier process did not deliver, and removes tasks whose chats
// were deleted. See Options.ChatExists for chatExists.
func (s *Server) restore(chatExists func(contextID string) (bool, error)) {
	recs := slices.DeleteFunc(s.records.load(), func(rec record) bool {
		removed := rec.Chat && chatExists != nil && s.chatDeleted(rec.Task, chatExists)
		if removed {
			s.records.remove(rec.Task.ID)
		}
		return removed
	})
	s.dropStale(recs)
	for _, rec := range recs {
		j := &job{id: rec.Task.ID, contextID: rec.Task.ContextID, server: s, done: make(chan struct{}), task: rec.Task, hasChat: rec.Chat}
		j.size = jsonSize(j.task)
		j.ctx, j.cancel = context.WithCancel(s.ctx)
		j.cancel()
		for _, h := range rec.Hooks {
			hook := &hook{config: h.Config, legacy: h.Legacy}
			hook.ctx, hook.cancel = context.WithCancel(s.postCtx)
			j.hooks = append(j.hooks, hook)
		}
		j.settleRestored()
		s.dropTasks(s.tasks.addEnded(j))
	}
}

// chatDeleted reports whether a task's chat was deleted. It returns false if the chats cannot be
// read, so that the task is kept.
func (s *Server) chatDeleted(t task, chatExists func(contextID string) (bool, error)) bool {
	exists, err := chatExists(t.ContextID)
	if err != nil {
		s.opts.Log.Warn("cannot find out whether a task's chat was deleted; keeping the task", "task", t.ID, "err", err)
		return false
	}
	return !exists
}

// settleRestored fails a restored task that was still running, and queues its pending notifications.
func (j *job) settleRestored() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.task.Status.State.ended() {
		j.setLocked(failed, serverEnded)
		return
	}
	close(j.done)
	j.queueNotifications()
}

// dropStale removes the hooks of ended tasks whose notifications should no longer be sent: of tasks
// that ended more than staleAge ago, and, counted from the newest task, of those whose hooks exceed
// maxRestored. If notifications are off, it removes all hooks. recs must be sorted by time of change.
func (s *Server) dropStale(recs []record) {
	remaining := maxRestored
	for i := range slices.Backward(recs) {
		rec := &recs[i]
		switch at, err := time.Parse(time.RFC3339Nano, rec.Task.Status.Timestamp); {
		case len(rec.Hooks) == 0:
			continue
		case !s.pushEnabled():
			s.opts.Log.Warn("dropping the push notifications of a task: they are off", "task", rec.Task.ID)
		case !rec.Task.Status.State.ended():
			continue
		case err == nil && s.opts.Now().Sub(at) <= staleAge && len(rec.Hooks) <= remaining:
			remaining -= len(rec.Hooks)
			continue
		default:
			s.opts.Log.Warn("dropping old or surplus push notifications of an ended task", "task", rec.Task.ID, "ended", rec.Task.Status.Timestamp)
		}
		rec.Hooks = nil
		s.records.save(*rec)
	}
}

// dropTasks stops all work for tasks that were removed from s.tasks, and deletes their records on disk.
func (s *Server) dropTasks(removed []*job) {
	for _, j := range removed {
		j.discard()
		s.records.remove(j.id)
	}
}

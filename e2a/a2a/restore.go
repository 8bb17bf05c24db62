package a2a

import "context"

// keep writes down how the task is, under the job's lock: before somebody is told.
func (j *job) keep() {
	if j.s.records == nil {
		return
	}
	rec := record{Task: j.task, Chat: j.chat}
	for _, h := range j.hooks {
		if j.task.Status.State.ended() {
			break // nothing more will be told: credentials need not lie around
		}
		rec.Hooks = append(rec.Hooks, recordHook{Config: h.config, Legacy: h.legacy})
	}
	j.s.records.save(rec)
}

// cutShort is why a task has no end of its own.
const cutShort = "eca ended before the task did. What it had said until then is in the context."

// restore takes in the tasks of the server before this one. Those that ran then have
// failed, and who wanted to be told is told. Tasks whose chats were deleted are gone.
func (s *Server) restore(knows func(contextID string) bool) {
	for _, rec := range s.records.load() {
		if rec.Chat && knows != nil && !knows(rec.Task.ContextID) {
			s.records.remove(rec.Task.ID)
			continue
		}
		j := &job{id: rec.Task.ID, contextID: rec.Task.ContextID, s: s, done: make(chan struct{}), task: rec.Task, chat: rec.Chat}
		j.ctx, j.cancel = context.WithCancel(s.ctx)
		for _, h := range rec.Hooks {
			hook := &hook{config: h.Config, legacy: h.Legacy}
			hook.ctx, hook.cancel = context.WithCancel(s.posting)
			j.hooks = append(j.hooks, hook)
		}
		if j.task.Status.State.ended() {
			close(j.done)
		} else {
			j.set(failed, cutShort)
		}
		j.cancel()
		j.size = jsonSize(j.task)
		s.drop(s.tasks.put(j))
	}
}

// drop ends what still is done for tasks that nobody can ask for any more.
func (s *Server) drop(gone []*job) {
	for _, j := range gone {
		j.forget()
		s.records.remove(j.id)
	}
}

package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/tools"
)

// backgroundJobs are the background commands of all chats.
type backgroundJobs struct{ *services }

// Jobs lists the background commands of all chats.
func (b *backgroundJobs) Jobs() []tools.Job {
	list := b.jobs.List()
	for i := range list {
		list[i] = b.cleanJob(list[i])
	}
	return list
}

// KillJob ends a background command.
func (b *backgroundJobs) KillJob(id string) bool { return b.jobs.Kill(id) }

// JobOutput returns the tail of a background command's output, without secrets.
func (b *backgroundJobs) JobOutput(id string) (job tools.Job, list []tools.JobLine, ok bool) {
	job, list, ok = b.jobs.Output(id)
	for i := range list {
		list[i].Text = b.cleanOutput(list[i].Text)
	}
	return b.cleanJob(job), list, ok
}

// WatchJobs calls changed after each change of a background command, until ctx is done.
func (b *backgroundJobs) WatchJobs(ctx context.Context, changed func()) { b.jobs.Watch(ctx, changed) }

func (b *backgroundJobs) cleanJob(j tools.Job) tools.Job {
	j.Summary, j.Command, j.Label = b.cleanOutput(j.Summary), b.cleanOutput(j.Command), b.cleanOutput(j.Label)
	return j
}

// withJobReports adds a report on finished background commands to the chat's next prompt.
type withJobReports struct {
	contexts.Source
	d *Daemon
}

// Resolve implements contexts.Source.
func (n withJobReports) Resolve(ctx context.Context, q contexts.Query) (blocks []contexts.Block, problems []string) {
	blocks, problems = n.Source.Resolve(ctx, q)
	if q.ChatID == "" {
		return blocks, problems
	}
	for _, text := range n.d.jobs.News(q.ChatID) {
		blocks = append(blocks, contexts.Block{Label: "background job", Text: n.d.cleanOutput(text)})
	}
	return blocks, problems
}

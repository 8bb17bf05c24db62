package daemon

import (
	"context"

	"github.com/seed-dec29ce4/eca/contexts"
	"github.com/seed-dec29ce4/eca/tools"
)

// Jobs lists the background commands of all chats.
func (d *Daemon) Jobs() []tools.Job {
	list := d.jobs.List()
	for i := range list {
		list[i] = d.cleanJob(list[i])
	}
	return list
}

// KillJob ends a background command.
func (d *Daemon) KillJob(id string) bool { return d.jobs.Kill(id) }

// JobOutput returns the end of what a background command has printed, without secrets.
func (d *Daemon) JobOutput(id string) (job tools.Job, list []tools.JobLine, ok bool) {
	job, list, ok = d.jobs.Output(id)
	for i := range list {
		list[i].Text = d.cleanOutput(list[i].Text)
	}
	return d.cleanJob(job), list, ok
}

// WatchJobs calls changed after each change of a background command, until ctx ends.
func (d *Daemon) WatchJobs(ctx context.Context, changed func()) { d.jobs.Watch(ctx, changed) }

func (d *Daemon) cleanJob(j tools.Job) tools.Job {
	j.Summary, j.Command, j.Label = d.cleanOutput(j.Summary), d.cleanOutput(j.Command), d.cleanOutput(j.Label)
	return j
}

// jobNews tells a chat with its next prompt which of its background commands have ended.
type jobNews struct {
	contexts.Source
	d *Daemon
}

// Resolve implements contexts.Source.
func (n jobNews) Resolve(ctx context.Context, q contexts.Query) (blocks []contexts.Block, problems []string) {
	blocks, problems = n.Source.Resolve(ctx, q)
	if q.ChatID == "" {
		return blocks, problems
	}
	for _, text := range n.d.jobs.News(q.ChatID) {
		blocks = append(blocks, contexts.Block{Label: "background job", Text: n.d.cleanOutput(text)})
	}
	return blocks, problems
}

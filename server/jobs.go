package server

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// Background jobs (eca-protocol.md 4.12).

// Jobs gives access to the background commands.
type Jobs interface {
	// Jobs lists them, the oldest first. KillJob ends one; it returns false if the job has ended
	// already or does not exist. JobOutput returns the end of its output.
	Jobs() []tools.Job
	KillJob(id string) bool
	JobOutput(id string) (job tools.Job, list []tools.JobLine, ok bool)
	// WatchJobs calls changed after each change of a job, until ctx ends.
	WatchJobs(ctx context.Context, changed func())
}

// jobs implement the methods about background commands.
type jobs struct {
	*connection
	host interface {
		Jobs
		Engine() *chat.Engine
	}
}

// JobsList implements protocol.Server.
func (j *jobs) JobsList(context.Context, protocol.Request[protocol.None]) (protocol.AsyncResult[protocol.JobsListResult], error) {
	return protocol.Immediate(j.list()), nil
}

// JobsKill implements protocol.Server.
func (j *jobs) JobsKill(_ context.Context, r protocol.Request[protocol.JobParams]) (protocol.AsyncResult[protocol.JobKillResult], error) {
	return func(context.Context) (protocol.JobKillResult, error) {
		return protocol.JobKillResult{Killed: j.host.KillJob(string(r.Params.JobID))}, nil
	}, nil
}

// JobsReadOutput implements protocol.Server.
func (j *jobs) JobsReadOutput(_ context.Context, r protocol.Request[protocol.JobParams]) (protocol.AsyncResult[protocol.JobOutputResult], error) {
	res := protocol.JobOutputResult{Lines: []protocol.JobLine{}}
	job, list, ok := j.host.JobOutput(string(r.Params.JobID))
	if !ok {
		return protocol.Immediate(res), nil
	}
	status := string(job.Status)
	res.Status, res.ExitCode = &status, exitCode(job)
	for _, l := range list {
		stream := "stdout"
		if l.Stderr {
			stream = "stderr"
		}
		res.Lines = append(res.Lines, protocol.JobLine{Text: l.Text, Stream: stream})
	}
	return protocol.Immediate(res), nil
}

// watch notifies the client of each change of a job while it is connected, from its initialization.
func (j *jobs) watch(initialized <-chan struct{}) {
	select {
	case <-initialized:
	case <-j.ctx.Done():
		return
	}
	j.host.WatchJobs(j.ctx, func() { j.notify(j.ctx, "jobs/updated", j.list()) })
}

// list lists the jobs as the client is shown them.
func (j *jobs) list() protocol.JobsListResult {
	res := protocol.JobsListResult{Jobs: []protocol.Job{}}
	now := time.Now()
	for _, job := range j.host.Jobs() {
		out := protocol.Job{
			ID: job.ID, Type: "shell", Status: string(job.Status), Label: job.Command, StartedAt: job.Started.UTC().Format(time.RFC3339),
			Elapsed: job.Elapsed(now).String(), ExitCode: exitCode(job), ChatID: job.ChatID, ToolCallID: job.CallID,
		}
		if job.Label != "" {
			out.Summary = &job.Label
		}
		if session, ok := j.host.Engine().Lookup(job.ChatID); ok {
			out.ChatLabel = session.Meta().Title
		}
		res.Jobs = append(res.Jobs, out)
	}
	return res
}

// exitCode returns nil for a job that has no exit code.
func exitCode(j tools.Job) *int {
	if code, ok := j.Exit(); ok {
		return &code
	}
	return nil
}

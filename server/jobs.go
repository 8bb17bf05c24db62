package server

import (
	"context"
	"time"

	"github.com/seed-dec29ce4/eca/server/protocol"
	"github.com/seed-dec29ce4/eca/tools"
)

// Background jobs (eca-protocol 4.12).

// JobsList implements protocol.Server.
func (s *Server) JobsList(context.Context, protocol.Request[protocol.None]) (protocol.AsyncResult[protocol.JobsListResult], error) {
	return protocol.Immediate(s.jobs()), nil
}

// JobsKill implements protocol.Server.
func (s *Server) JobsKill(_ context.Context, r protocol.Request[protocol.JobParams]) (protocol.AsyncResult[protocol.JobKillResult], error) {
	return func(context.Context) (protocol.JobKillResult, error) {
		return protocol.JobKillResult{Killed: s.host.KillJob(string(r.Params.JobID))}, nil
	}, nil
}

// JobsReadOutput implements protocol.Server.
func (s *Server) JobsReadOutput(_ context.Context, r protocol.Request[protocol.JobParams]) (protocol.AsyncResult[protocol.JobOutputResult], error) {
	res := protocol.JobOutputResult{Lines: []protocol.JobLine{}}
	job, list, ok := s.host.JobOutput(string(r.Params.JobID))
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

// watchJobs notifies the client of each change of a job while it is connected.
func (s *Server) watchJobs() {
	select {
	case <-s.configPush.begun: // it is initialized
	case <-s.ctx.Done():
		return
	}
	s.host.WatchJobs(s.ctx, func() { s.notify(s.ctx, "jobs/updated", s.jobs()) })
}

// jobs lists the jobs as the client is shown them.
func (s *Server) jobs() protocol.JobsListResult {
	res := protocol.JobsListResult{Jobs: []protocol.Job{}}
	now := time.Now()
	for _, j := range s.host.Jobs() {
		out := protocol.Job{
			ID: j.ID, Type: "shell", Status: string(j.Status), Label: j.Command, StartedAt: j.Started.UTC().Format(time.RFC3339),
			Elapsed: j.Elapsed(now).String(), ExitCode: exitCode(j), ChatID: j.ChatID, ToolCallID: j.CallID,
		}
		if j.Label != "" {
			out.Summary = &j.Label
		}
		if session, ok := s.host.Engine().Lookup(j.ChatID); ok {
			out.ChatLabel = session.Meta().Title
		}
		res.Jobs = append(res.Jobs, out)
	}
	return res
}

// exitCode is nil for a job that has no exit code.
func exitCode(j tools.Job) *int {
	if code, ok := j.Exit(); ok {
		return &code
	}
	return nil
}

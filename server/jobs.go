package server

import (
	"context"

	"github.com/seed-dec29ce4/eca/server/protocol"
)

// This version has no jobs: the commands its shell tool leaves running are known to the
// model alone. So the list is empty, and every job is unknown (eca-protocol 4.12).

// JobsList implements protocol.Server.
func (s *Server) JobsList(context.Context, protocol.Request[protocol.None]) (protocol.Later[protocol.JobsListResult], error) {
	return protocol.Now(protocol.JobsListResult{Jobs: []protocol.Job{}}), nil
}

// JobsKill implements protocol.Server.
func (s *Server) JobsKill(context.Context, protocol.Request[protocol.JobParams]) (protocol.Later[protocol.JobKillResult], error) {
	return protocol.Now(protocol.JobKillResult{}), nil
}

// JobsReadOutput implements protocol.Server.
func (s *Server) JobsReadOutput(context.Context, protocol.Request[protocol.JobParams]) (protocol.Later[protocol.JobOutputResult], error) {
	return protocol.Now(protocol.JobOutputResult{Lines: []protocol.JobLine{}}), nil
}

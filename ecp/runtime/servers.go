package runtime

import (
	"context"
	"sync"

	"github.com/seed-dec29ce4/eca/ecp/report"
)

// servers is a pool of the URLs of one agent. Each URL serves one conversation at a time.
type servers struct {
	free chan string

	mu        sync.Mutex // guards available
	available int        // number of servers that were not removed
}

func newServers(urls []string) *servers {
	s := &servers{free: make(chan string, len(urls)), available: len(urls)}
	for _, u := range urls {
		s.free <- u
	}
	return s
}

// tryRemove counts a server as removed, unless it is the last one, and reports whether it did.
func (s *servers) tryRemove() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.available == 1 {
		return false
	}
	s.available--
	return true
}

// newServersFor returns the servers of a target: its URL and, if it is the manifest's target,
// Options.Servers.
func (r *run) newServersFor(target, manifest string) *servers {
	urls := []string{target}
	if target == manifest {
		urls = append(urls, r.opts.Servers...)
	}
	return newServers(urls)
}

// attemptOnServer makes an attempt with a free server. A server that cannot be reached is not used again,
// unless it is the only one left.
func (r *run) attemptOnServer(ctx context.Context, s *servers, c Case) report.Attempt {
	for {
		select {
		case c.server = <-s.free:
		case <-ctx.Done():
			return r.notRunAttempt(ctx, c, &CallError{Kind: stopKind(ctx)}, "not run: "+context.Cause(ctx).Error())
		}
		a := r.attemptCase(ctx, c)
		if ctx.Err() == nil && unreachable(a) && s.tryRemove() {
			r.warn("agent " + c.server + " is not used any more: " + a.Errors[0].Message)
			continue
		}
		s.free <- c.server
		return a
	}
}

// unreachable reports whether an attempt failed before the first step with an HTTP error or a timeout.
func unreachable(a report.Attempt) bool {
	return len(a.Errors) > 0 && a.Errors[0].Step == 0 && (a.Errors[0].Kind == kindHTTP || a.Errors[0].Kind == kindTimeout)
}

package daemon

import (
	"context"
	"sync"

	"github.com/seed-dec29ce4/eca/chat"
	"github.com/seed-dec29ce4/eca/internal/doctor"
)

// RemoteFace is the server for clients on other machines.
type RemoteFace interface {
	// Run serves until ctx ends. It calls started when it listens, or when it has failed to.
	Run(ctx context.Context, started func())
	// Status returns how to connect, as Markdown.
	Status() string
	// Notice returns what the user should know of the start; empty for nothing.
	Notice() string
	// Check reports which addresses can be reached from where.
	Check(context.Context) []doctor.Finding
}

// remoteRun is the remote face and its work.
type remoteRun struct {
	face RemoteFace
	work *background
}

// AttachRemote makes the daemon run a remote face if the configuration enables it. It must be
// called before Configure.
func (d *Daemon) AttachRemote(f RemoteFace) { d.remote.face = f }

// tasks returns the task that starts the remote face, if it is enabled.
func (r *remoteRun) tasks(enabled bool) []chat.StartupTask {
	if r.face == nil || !enabled {
		return nil
	}
	return []chat.StartupTask{{ID: "remote-server", Title: "Starting remote server", Run: func(ctx context.Context) {
		started := make(chan struct{})
		r.work.begin(func(ctx context.Context) { r.face.Run(ctx, sync.OnceFunc(func() { close(started) })) })
		select {
		case <-started:
		case <-ctx.Done():
		}
	}}}
}

// status returns how to connect from other machines.
func (r *remoteRun) status() string {
	if r.face == nil {
		return "This process has no remote server. One runs in `eca server`, which editors start, if remote.enabled is set."
	}
	return r.face.Status()
}

func (r *remoteRun) notices() []string {
	if r.face == nil || r.face.Notice() == "" {
		return nil
	}
	return []string{r.face.Notice()}
}

func (r *remoteRun) check(ctx context.Context) []doctor.Finding {
	if r.face == nil {
		return nil
	}
	return r.face.Check(ctx)
}

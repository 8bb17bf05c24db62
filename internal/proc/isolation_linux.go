package proc

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// Isolation starts a few processes to determine which namespaces and overlays children of the pool can
// have. A feature whose test fails or takes too long counts as missing.
func (p *Pool) Isolation() sandbox.Isolation {
	if why := whyUnbounded(p != nil && p.supervisor != ""); why != "" {
		return sandbox.Isolation{Without: why}
	}
	dir, err := os.MkdirTemp("", "eca-")
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return sandbox.Isolation{Without: err.Error()}
	}
	defer func() { _ = removeTemp(dir) }()
	overlay := sandbox.Overlay{Dir: filepath.Join(dir, "lower"), Layers: filepath.Join(dir, "layers")}
	if err := os.Mkdir(overlay.Dir, 0o700); err != nil {
		return sandbox.Isolation{Without: err.Error()}
	}
	try := func(i sandbox.Isolation) (why string) {
		policy := sandbox.Policy{Level: sandbox.Workspace, Required: true, Write: []string{dir}, Isolate: true, OwnProcesses: i.Processes, Loopback: i.Network}
		if i.Overlay {
			policy.Overlays = []sandbox.Overlay{overlay}
		}
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		var out bytes.Buffer
		exit, err := p.Run(ctx, Spec{Path: p.supervisor, Args: []string{nothingArg}, Dir: dir, Stdout: &out, Stderr: &out, Sandbox: policy})
		switch {
		case err != nil:
			return err.Error()
		case exit.Code != 0:
			return strings.TrimSpace("cannot run a process in new namespaces: " + out.String())
		}
		return ""
	}
	all := sandbox.Isolation{Mounts: true, Processes: true, Network: true, Overlay: true}
	why := try(all)
	if why == "" {
		return all
	}
	found := sandbox.Isolation{Without: why}
	if why := try(sandbox.Isolation{Mounts: true}); why != "" {
		found.Without = why
		return found
	}
	found.Mounts = true
	found.Processes = try(sandbox.Isolation{Mounts: true, Processes: true}) == ""
	found.Network = try(sandbox.Isolation{Mounts: true, Network: true}) == ""
	found.Overlay = try(sandbox.Isolation{Mounts: true, Overlay: true}) == ""
	return found
}

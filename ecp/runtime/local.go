package runtime

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"

	"github.com/seed-dec29ce4/eca/internal/proc"
	"github.com/seed-dec29ce4/eca/internal/sandbox"
)

// localPlace confines programs on this machine with internal/sandbox. The agent, and each command
// of a grader, has its own home and temporary folder. It can write there and to the workspace. It
// can read these folders, the system's programs, and the granted files.
type localPlace struct {
	a   *attempt
	env Environment
	dir string
	own privateDirs // the agent's
}

func (a *attempt) newLocalPlace(e Environment, dir string) (place, error) {
	if s := a.pool.Bounds(); !s.Holds {
		return nil, fmt.Errorf("local needs a sandbox, but this system has none: %s; use docker or podman, or leave the environment out", s.Without)
	}
	if goruntime.GOOS != "linux" {
		a.warn("environment local: on this system the agent and graders read what you can read, hidden tests and keys in files included")
	}
	for _, gap := range a.pool.Gaps() {
		a.warn("environment local: " + gap)
	}
	own, err := newPrivateDirs("ecp-agent-")
	if err != nil {
		return nil, err
	}
	return &localPlace{a: a, env: e, dir: dir, own: own}, nil
}

func (p *localPlace) workspace() string { return p.dir }

func (p *localPlace) layTests(_ context.Context, folder string) error { return overlay(folder, p.dir) }

func (p *localPlace) agent(target string, env []string) proc.Spec {
	spec := shell(target)
	spec.Environ = append(p.a.cleanEnviron(p.own, p.env.Agent.Env), env...)
	spec.Sandbox = p.policy(p.env.Agent, p.own, targetFiles(target, p.a.programPath()))
	p.addGoCache(&spec, p.env.Agent, p.own)
	return spec
}

func (p *localPlace) command(ctx context.Context, line string) (int, string, error) {
	own, err := newPrivateDirs("ecp-grader-")
	if err != nil {
		return 0, "", err
	}
	defer own.remove()
	spec := shell(line)
	spec.Dir = p.dir
	spec.Environ = append(p.a.cleanEnviron(own, p.env.Graders.Env), WorkspaceVariable+"="+p.dir)
	spec.Sandbox = p.policy(p.env.Graders, own, nil)
	p.addGoCache(&spec, p.env.Graders, own)
	return captured(ctx, spec, p.a.pool)
}

// addGoCache lets a program use the user's Go build cache. Its own results go to a separate layer
// that is removed with it, so attempts leave nothing for each other. Without support for overlays,
// its cache begins empty.
func (p *localPlace) addGoCache(spec *proc.Spec, g Grants, own privateDirs) {
	if len(g.BuildCaches) == 0 || !spec.Sandbox.Isolate || !p.a.isolation().Overlay {
		return
	}
	dir := p.a.getenv("GOCACHE")
	if dir == "" {
		caches, err := os.UserCacheDir()
		if err != nil {
			return
		}
		dir = filepath.Join(caches, "go-build")
	}
	dirs := resolvedPaths([]string{dir})
	if len(dirs) == 0 {
		return
	}
	spec.Sandbox.Overlays = []sandbox.Overlay{{Dir: dirs[0], Layers: filepath.Join(own.base, "layers")}}
	spec.Environ = append(spec.Environ, "GOCACHE="+dirs[0])
}

// networkFiles are the files that programs read to find hosts and to trust them.
func networkFiles() []string {
	return []string{"/etc/hosts", "/etc/resolv.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"}
}

// policy confines a program. Systems without namespaces only restrict reading and writing, with
// Landlock.
func (p *localPlace) policy(g Grants, own privateDirs, files []string) sandbox.Policy {
	read := []string{own.base, p.dir}
	for _, path := range g.Read {
		read = append(read, inFolder(p.a.dir, path))
	}
	for _, file := range files {
		if isFile(file) {
			read = append(read, file)
		}
	}
	if g.Network {
		read = append(read, networkFiles()...)
	}
	getenv := func(name string) string {
		return map[string]string{"PATH": p.a.programPath(), "HOME": own.home}[name]
	}
	spaces := p.a.isolation()
	return sandbox.Policy{
		Level: sandbox.Workspace, Required: true, Network: g.Network, UnixSockets: g.Network,
		Write: []string{p.dir, own.home, own.temp}, Read: append(sandbox.Reads(nil, getenv), resolvedPaths(read)...),
		Isolate: spaces.Mounts, OwnProcesses: spaces.Mounts && spaces.Processes, Loopback: spaces.Mounts && spaces.Network && !g.Network,
	}
}

// resolvedPaths returns the paths that exist, absolute and with links resolved.
func resolvedPaths(paths []string) (out []string) {
	for _, path := range paths {
		abs, err := filepath.Abs(path)
		if err != nil {
			continue
		}
		if real, err := filepath.EvalSymlinks(abs); err == nil {
			out = append(out, real)
		}
	}
	return out
}

// freeze implements place. The agent's processes have ended with its supervisor.
func (*localPlace) freeze(context.Context) error { return nil }

func (p *localPlace) close() []string {
	p.own.remove()
	return nil
}

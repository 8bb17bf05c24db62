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

// localExecutor runs programs on this machine, confined by internal/sandbox. The agent and each
// command of a grader have their own home and temporary folder. They can write to these folders and
// the workspace, and also read the system's programs and the granted files.
type localExecutor struct {
	folderExecutor
	env Environment
	own privateDirs // of the agent
}

func (a *attempt) newLocalExecutor(e Environment, dir string) (executor, error) {
	if s := a.pool.Bounds(); !s.Holds {
		return nil, fmt.Errorf("local needs a sandbox, which this system does not have: %s; use docker or podman, or leave the environment out", s.Without)
	}
	if goruntime.GOOS != "linux" {
		a.warn("environment local: on this system the agent and graders can read all files that you can read, including hidden tests and keys")
	}
	for _, gap := range a.pool.Gaps() {
		a.warn("environment local: " + gap)
	}
	own, err := newPrivateDirs("ecp-agent-")
	if err != nil {
		return nil, err
	}
	return &localExecutor{folderExecutor{a, dir}, e, own}, nil
}

func (p *localExecutor) agent(target string, env []string) proc.Spec {
	spec := shell(target)
	spec.Environ = append(p.a.cleanEnviron(p.own, p.env.Agent.Env), env...)
	spec.Sandbox = p.policy(p.env.Agent, p.own, targetFiles(target, p.a.programPath()))
	p.addGoCache(&spec, p.env.Agent, p.own)
	return spec
}

func (p *localExecutor) command(ctx context.Context, line string) (int, string, error) {
	return p.runGrader(ctx, line, func(spec *proc.Spec, own privateDirs) {
		spec.Environ = append(p.a.cleanEnviron(own, p.env.Graders.Env), WorkspaceVariable+"="+p.dir)
		spec.Sandbox = p.policy(p.env.Graders, own, nil)
		p.addGoCache(spec, p.env.Graders, own)
	})
}

// addGoCache lets a program use the user's Go build cache. The program writes to a separate layer that
// is removed afterwards, so that attempts do not influence each other. Without support for overlays,
// the cache is empty.
func (p *localExecutor) addGoCache(spec *proc.Spec, g Grants, own privateDirs) {
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

// networkFiles returns the files that programs need for the network: host names and certificates.
func networkFiles() []string {
	return []string{"/etc/hosts", "/etc/resolv.conf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates"}
}

// policy returns the sandbox policy for a program. Without namespaces, Landlock restricts only reading
// and writing.
func (p *localExecutor) policy(g Grants, own privateDirs, files []string) sandbox.Policy {
	read := []string{own.base, p.dir}
	for _, path := range g.Read {
		read = append(read, resolveIn(p.a.dir, path))
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

func (p *localExecutor) close() []string {
	p.own.remove()
	return nil
}

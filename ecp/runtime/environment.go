package runtime

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

// Environment is where the programs of a scenario run, and what they may access.
type Environment struct {
	Kind       string  // KindLocal, KindDocker or KindPodman
	Image      string  // of a container
	Dockerfile string  // relative to the manifest; its folder is the build context
	CPUs       float64 // of a container; 0 is unlimited
	MemoryMB   int64   // of a container; 0 is unlimited
	InImage    bool    `json:",omitempty"` // agent and graders work on the files of the image, in one container
	Workdir    string  `json:",omitempty"` // the directory to use with InImage; empty is the image's own
	Agent      Grants
	Graders    Grants
}

// Kinds of environments.
const (
	KindLocal  = "local"
	KindDocker = "docker"
	KindPodman = "podman"
)

// Grants are what a program may access besides the workspace and the system's programs.
type Grants struct {
	Env     []string // names of the user's variables
	Network bool
	Read    []string // files and folders, relative to the manifest

	BuildCaches []string // tools whose build caches it may use, without changing them; only for KindLocal
}

// executor runs the programs of one attempt in an environment.
type executor interface {
	// workspace returns the path of the workspace as programs see it.
	workspace() string
	// agent returns the command that starts the agent, with additional variables.
	agent(target string, env []string) proc.Spec
	// command runs a grader's command in the workspace.
	command(ctx context.Context, line string) (code int, output string, err error)
	// copyTests copies the hidden tests to the folder where graders expect them.
	copyTests(ctx context.Context, folder string) error
	// stopAgent ends all processes of the agent.
	stopAgent(ctx context.Context) error
	// close removes everything that the executor created, and describes what it could not remove.
	close() (notes []string)
}

// newExecutor returns the executor of an attempt. dir is its workspace, or empty.
func (a *attempt) newExecutor(ctx context.Context, dir string) (executor, error) {
	e := a.c.Scenario.Setup.Environment
	switch {
	case e == nil:
		return newHostExecutor(a, dir), nil
	case e.Kind == KindLocal:
		return a.newLocalExecutor(*e, dir)
	}
	return a.newContainerExecutor(ctx, *e, dir)
}

// command runs a grader's command. Before that, it restores hidden tests that an earlier command
// may have changed.
func (a *attempt) command(ctx context.Context, _, line string) (code int, output string, err error) {
	if a.snapshot != nil && a.snapshot.testsCopied {
		if err := a.copyTests(ctx); err != nil {
			return 0, "", fmt.Errorf("hidden tests: %w", err)
		}
	}
	return a.executor.command(ctx, line)
}

// folderExecutor is the part of an executor whose programs see the workspace itself. The agent's
// processes end with its supervisor.
type folderExecutor struct {
	a   *attempt
	dir string
}

func (p folderExecutor) workspace() string { return p.dir }

func (p folderExecutor) copyTests(_ context.Context, folder string) error {
	return overlay(folder, p.dir)
}

func (folderExecutor) stopAgent(context.Context) error { return nil }

func (folderExecutor) close() []string { return nil }

// runGrader runs a command line that prepare completes, with a home of its own.
func (p folderExecutor) runGrader(ctx context.Context, line string, prepare func(*proc.Spec, privateDirs)) (int, string, error) {
	own, err := newPrivateDirs("ecp-grader-")
	if err != nil {
		return 0, "", err
	}
	defer own.remove()
	spec := shell(line)
	spec.Dir = p.dir
	prepare(&spec, own)
	return runCaptured(ctx, spec, p.a.pool)
}

// hostExecutor runs programs without confinement. The agent has the user's environment variables.
// Graders have none of them, and their own home.
type hostExecutor struct{ folderExecutor }

func newHostExecutor(a *attempt, dir string) *hostExecutor {
	return &hostExecutor{folderExecutor{a, dir}}
}

func (p *hostExecutor) agent(target string, env []string) proc.Spec {
	spec := shell(target)
	spec.Env = env
	return spec
}

func (p *hostExecutor) command(ctx context.Context, line string) (int, string, error) {
	return p.runGrader(ctx, line, func(spec *proc.Spec, own privateDirs) { spec.Environ = p.a.cleanEnviron(own, nil) })
}

// privateDirs are the home and temporary folder of one program.
type privateDirs struct{ base, home, temp string }

func newPrivateDirs(prefix string) (privateDirs, error) {
	base, err := os.MkdirTemp("", prefix)
	if err == nil {
		base, err = filepath.EvalSymlinks(base)
	}
	if err != nil {
		return privateDirs{}, fmt.Errorf("make a private home: %w", err)
	}
	d := privateDirs{base, filepath.Join(base, "home"), filepath.Join(base, "tmp")}
	return d, errors.Join(os.Mkdir(d.home, 0o700), os.Mkdir(d.temp, 0o700))
}

func (d privateDirs) remove() { (&workspace{dir: d.base}).remove() }

// cleanEnviron returns environment variables that include only the named ones of the user.
func (r *run) cleanEnviron(own privateDirs, names []string) []string {
	env := []string{"PATH=" + r.programPath(), "HOME=" + own.home, "TMPDIR=" + own.temp, "LANG=C.UTF-8", "TZ=UTC"}
	if goruntime.GOOS == "windows" { // programs do not start without these
		env = append(env, "USERPROFILE="+own.home, "TEMP="+own.temp, "TMP="+own.temp)
		names = append([]string{"SystemRoot", "ComSpec", "PATHEXT"}, names...)
	}
	for _, name := range names {
		if value := r.getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	return env
}

func (r *run) getenv(name string) string {
	if r.opts.Getenv == nil {
		return ""
	}
	return r.opts.Getenv(name)
}

// programPath returns the PATH for programs whose home is not the user's. It leaves out relative
// folders, folders that contain the user's home, and the shims of version managers, which depend on
// the user's home.
func (r *run) programPath() string {
	home := r.getenv("HOME")
	dirs := slices.DeleteFunc(filepath.SplitList(r.opts.Path), func(dir string) bool {
		return !filepath.IsAbs(dir) || home != "" && isWithin(dir, home) || filepath.Base(dir) == "shims"
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// isWithin reports whether path is the folder itself or in it.
func isWithin(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// check returns errors in the workspace, the environment and the hidden tests that can be detected
// before the scenario runs. isServer means that the agent is a server.
func (s Setup) check(dir string, isServer bool) error {
	if s.Workspace != nil && s.Workspace.Copy != "" {
		info, err := os.Stat(resolveIn(dir, s.Workspace.Copy))
		if err != nil {
			return fmt.Errorf("workspace: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("workspace: %s is not a folder", s.Workspace.Copy)
		}
	}
	if e := s.Environment; e != nil {
		if isServer {
			return errors.New("environment: the agent is a server, which runs elsewhere; name a command line as target, or leave the environment out")
		}
		if e.Dockerfile != "" {
			if _, err := os.Stat(resolveIn(dir, e.Dockerfile)); err != nil {
				return fmt.Errorf("environment: dockerfile: %w", err)
			}
		}
		for _, path := range slices.Concat(e.Agent.Read, e.Graders.Read) {
			if _, err := os.Stat(resolveIn(dir, path)); err != nil {
				return fmt.Errorf("environment: read: %w", err)
			}
		}
	}
	if s.Tests == "" {
		return nil
	}
	tests, err := filepath.EvalSymlinks(resolveIn(dir, s.Tests))
	if err != nil {
		return fmt.Errorf("tests: %w", err)
	}
	if info, err := os.Stat(tests); err != nil || !info.IsDir() {
		return fmt.Errorf("tests: %s is not a folder", s.Tests)
	}
	for what, path := range s.agentReadable() {
		real, err := filepath.EvalSymlinks(resolveIn(dir, path))
		if err == nil && (isWithin(real, tests) || isWithin(tests, real)) {
			return fmt.Errorf("tests: the agent would see %s, because %s has %s; keep the tests in a folder of their own", s.Tests, what, path)
		}
	}
	return nil
}

// agentReadable returns the paths that the agent can read, by the setting that makes them readable.
func (s Setup) agentReadable() map[string]string {
	out := map[string]string{}
	if s.Workspace != nil && s.Workspace.Copy != "" {
		out["workspace"] = s.Workspace.Copy
	}
	if e := s.Environment; e != nil {
		if e.Dockerfile != "" {
			out["the image"] = filepath.Dir(e.Dockerfile)
		}
		for i, path := range e.Agent.Read {
			out[fmt.Sprintf("environment.agent.read.%d", i)] = path
		}
	}
	return out
}

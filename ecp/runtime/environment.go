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

// Environment says where the programs of a scenario run, and what each of them may use.
type Environment struct {
	Kind       string  // KindLocal, KindDocker or KindPodman
	Image      string  // of a container
	Dockerfile string  // relative to the manifest; its folder is the build context
	CPUs       float64 // of a container; 0 is unlimited
	MemoryMB   int64   // of a container; 0 is unlimited
	InImage    bool    `json:",omitempty"` // agent and graders work in the image's own files, in one container
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

// Grants are what a program gets besides the workspace and the system's programs.
type Grants struct {
	Env     []string // names of the user's variables
	Network bool
	Read    []string // files and folders, relative to the manifest

	BuildCaches []string // of tools; the program writes to its own layer above them; only KindLocal
}

// place is the environment in which the programs of one attempt run.
type place interface {
	// workspace is the path of the workspace as programs there see it.
	workspace() string
	// agent returns the command that starts the agent, with additional variables.
	agent(target string, env []string) proc.Spec
	// command runs a grader's command in the workspace.
	command(ctx context.Context, line string) (code int, output string, err error)
	// layTests puts the hidden tests where graders find them.
	layTests(ctx context.Context, folder string) error
	// freeze ends everything that the agent may have left running.
	freeze(ctx context.Context) error
	// close removes everything that the place made, and reports what could not be removed.
	close() (notes []string)
}

// enter makes the place of an attempt; dir is its workspace, empty if it has none.
func (a *attempt) enter(ctx context.Context, dir string) (place, error) {
	e := a.c.Scenario.Setup.Environment
	switch {
	case e == nil:
		return newHostPlace(a, dir), nil
	case e.Kind == KindLocal:
		return a.newLocalPlace(*e, dir)
	}
	return a.newContainerPlace(ctx, *e, dir)
}

// command runs a grader's command. Before that, it restores hidden tests that an earlier command
// may have changed.
func (a *attempt) command(ctx context.Context, _, line string) (code int, output string, err error) {
	if a.frozen != nil && a.frozen.tested {
		if err := a.layTests(ctx); err != nil {
			return 0, "", fmt.Errorf("hidden tests: %w", err)
		}
	}
	return a.place.command(ctx, line)
}

// hostPlace is the environment of ecp itself. The agent gets the user's environment. Graders get
// none of the user's variables, and their own home.
type hostPlace struct {
	a   *attempt
	dir string
}

func newHostPlace(a *attempt, dir string) *hostPlace { return &hostPlace{a, dir} }

func (p *hostPlace) workspace() string { return p.dir }

func (p *hostPlace) agent(target string, env []string) proc.Spec {
	spec := shell(target)
	spec.Env = env
	return spec
}

func (p *hostPlace) command(ctx context.Context, line string) (int, string, error) {
	own, err := newPrivateDirs("ecp-grader-")
	if err != nil {
		return 0, "", err
	}
	defer own.remove()
	spec := shell(line)
	spec.Dir, spec.Environ = p.dir, p.a.cleanEnviron(own, nil)
	return captured(ctx, spec, p.a.pool)
}

func (p *hostPlace) layTests(_ context.Context, folder string) error { return overlay(folder, p.dir) }

func (*hostPlace) freeze(context.Context) error { return nil }

func (*hostPlace) close() []string { return nil }

// privateDirs are the own home and temporary folder of one program.
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

// cleanEnviron is an environment that has only the named variables of the user.
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

// programPath is the PATH of programs whose home is not the user's. It leaves out folders that
// contain the user's home, and the shims of version managers, which look for the program in the
// user's home.
func (r *run) programPath() string {
	home := r.getenv("HOME")
	dirs := slices.DeleteFunc(filepath.SplitList(r.opts.Path), func(dir string) bool {
		return !filepath.IsAbs(dir) || home != "" && contains(dir, home) || filepath.Base(dir) == "shims"
	})
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// contains reports whether a path is a folder or something in it.
func contains(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// check reports errors in the environment and the hidden tests of a scenario that can be detected
// before it runs.
func (s Setup) check(dir string, servers bool) error {
	if e := s.Environment; e != nil {
		if servers {
			return errors.New("environment: the agent is a server, which runs elsewhere; name a command line as target, or leave the environment out")
		}
		for _, path := range slices.Concat(e.Agent.Read, e.Graders.Read) {
			if _, err := os.Stat(inFolder(dir, path)); err != nil {
				return fmt.Errorf("environment: read: %w", err)
			}
		}
	}
	if s.Tests == "" {
		return nil
	}
	tests, err := filepath.EvalSymlinks(inFolder(dir, s.Tests))
	if err != nil {
		return fmt.Errorf("tests: %w", err)
	}
	if info, err := os.Stat(tests); err != nil || !info.IsDir() {
		return fmt.Errorf("tests: %s is not a folder", s.Tests)
	}
	for what, path := range s.visible() {
		real, err := filepath.EvalSymlinks(inFolder(dir, path))
		if err == nil && (contains(real, tests) || contains(tests, real)) {
			return fmt.Errorf("tests: the agent would see %s, because %s has %s; keep the tests in a folder of their own", s.Tests, what, path)
		}
	}
	return nil
}

// visible lists the files that the agent can see, by the setting that makes them visible.
func (s Setup) visible() map[string]string {
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

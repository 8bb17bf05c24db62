package runtime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// imageExecutor runs the agent and the graders of an attempt in one container, on the files of the
// image. Graders see what the agent installed. The hidden tests are copied to /tests when all
// processes of the agent have ended.
type imageExecutor struct {
	*containerExecutor
	name    string     // of the container
	dir     string     // working directory of programs
	starter proc.Child // the docker or podman command that keeps the container running

	freshGraders bool   // graders run in a new container, to which only the agent's changes are copied
	patch        string // the agent's changes, if fresh
}

// imageTests is the folder for the hidden tests in a container.
const imageTests = "/tests"

// readyLine is printed by a container when programs can be started in it.
const readyLine = "ecp: the container is up"

// idleScript keeps a container running, and reaps orphaned processes. It creates folders that the
// tests of imported tasks write to.
const idleScript = "mkdir -p " + grade.RewardFolder + " /logs/agent /logs/artifacts && echo '" + readyLine + "' && while :; do sleep 3600 & wait; done"

// newImageExecutor starts the container.
func (a *attempt) newImageExecutor(ctx context.Context, e Environment, outer *containerExecutor) (executor, error) {
	p := &imageExecutor{containerExecutor: outer, freshGraders: a.c.Scenario.appliesPatch()}
	grants := e.Agent
	for _, path := range e.Graders.Read {
		if !p.freshGraders && !slices.Contains(grants.Read, path) {
			grants.Read = append(slices.Clone(grants.Read), path)
		}
	}
	if err := p.start(ctx, grants); err != nil {
		return nil, errors.Join(err, p.removeContainer(ctx))
	}
	code, dir, err := runCaptured(ctx, proc.Spec{Path: e.Kind, Args: p.execArgs(nil, nil, "pwd")}, a.pool)
	if p.dir = strings.TrimSpace(dir); err != nil || code != 0 || !strings.HasPrefix(p.dir, "/") {
		return nil, errors.Join(fmt.Errorf("%s exec: %s", e.Kind, clip(dir, maxShown)), err, p.removeContainer(ctx))
	}
	return p, nil
}

// start starts a container.
func (p *imageExecutor) start(ctx context.Context, grants Grants) error {
	args, name := p.runArgs(grants)
	p.name = name
	return p.runStarter(ctx, append(args, "--entrypoint", "sh", p.image, "-c", idleScript))
}

// runStarter runs the docker or podman command that keeps the container running, and waits until it is
// up. A podman container ends with the command that started it, even with --detach, because the
// processes that a command leaves behind are ended.
func (p *imageExecutor) runStarter(ctx context.Context, args []string) error {
	out := &readinessOutput{readyLine: readyLine, ready: make(chan struct{})}
	var err error
	p.starter, err = p.a.pool.Start(proc.Spec{Path: p.env.Kind, Args: args, Stdout: out, Stderr: out})
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.env.Kind, args[0], err)
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case <-out.ready:
		return nil
	case <-p.starter.Done():
		return fmt.Errorf("%s %s: %s", p.env.Kind, args[0], clip(out.String(), maxShown))
	case <-limited.Done():
		p.interrupted = true
		return fmt.Errorf("%s %s: the container did not start in time: %w", p.env.Kind, args[0], limited.Err())
	}
}

// startTime limits how long the start of a container may take.
const startTime = 2 * time.Minute

// readinessOutput stores the end of the output, and closes seen when the output contains needle.
type readinessOutput struct {
	lineproc.Tail
	readyLine string
	once      sync.Once
	ready     chan struct{}
}

func (s *readinessOutput) Write(p []byte) (int, error) {
	n, err := s.Tail.Write(p)
	if strings.Contains(s.String(), s.readyLine) {
		s.once.Do(func() { close(s.ready) })
	}
	return n, err
}

// removeContainer removes the container, and ends the command that kept it running.
func (p *imageExecutor) removeContainer(ctx context.Context) error {
	err := p.containerExecutor.stopAgent(ctx)
	if p.starter != nil {
		p.starter.Kill()
		p.starter.Wait()
		p.starter = nil
	}
	return err
}

func (p *imageExecutor) close() []string {
	if err := p.removeContainer(context.Background()); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// runEngine runs a command of docker or podman.
func (p *imageExecutor) runEngine(ctx context.Context, args ...string) error {
	code, output, err := runCaptured(ctx, proc.Spec{Path: p.env.Kind, Args: args}, p.a.pool)
	if err == nil && code != 0 {
		err = errors.New(clip(output, maxShown))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.env.Kind, args[0], err)
	}
	return nil
}

// execArgs returns the arguments that run a command line in the container.
func (p *imageExecutor) execArgs(flags, env []string, line string) []string {
	args := append([]string{"exec"}, flags...)
	if p.env.Workdir != "" {
		args = append(args, "--workdir", p.env.Workdir)
	}
	for _, pair := range env {
		args = append(args, "--env", pair)
	}
	return append(args, p.name, "sh", "-c", line)
}

func (p *imageExecutor) workspace() string { return p.dir }

func (p *imageExecutor) agent(target string, env []string) proc.Spec {
	return proc.Spec{Path: p.env.Kind, Args: p.execArgs([]string{"--interactive"}, append(env, p.env.Agent.Env...), target)}
}

func (p *imageExecutor) command(ctx context.Context, line string) (int, string, error) {
	env := append([]string{WorkspaceVariable + "=" + p.dir}, p.env.Graders.Env...)
	code, output, err := runCapturedUpTo(ctx, maxTestLog, proc.Spec{Path: p.env.Kind, Args: p.execArgs(nil, env, line)}, p.a.pool)
	if err == nil && code == engineFailed {
		err = fmt.Errorf("%s: %s", p.env.Kind, clip(output, maxShown))
	}
	return code, output, err
}

// maxTestLog limits the output of a grader's command, in bytes; only the end is kept.
const maxTestLog = 8 << 20

// stopAgent stops the container, which ends all of its processes. It then restarts the container, or,
// if fresh is set, starts a new one with the agent's changes as a patch.
func (p *imageExecutor) stopAgent(ctx context.Context) error {
	if err := p.runEngine(ctx, "stop", "-t", "0", p.name); err != nil {
		return err
	}
	p.starter.Kill()
	p.starter.Wait()
	if p.freshGraders {
		return p.startGraderContainer(ctx)
	}
	return p.runStarter(ctx, []string{"start", "--attach", p.name})
}

// copyTests replaces the tests folder of the image with the hidden tests.
func (p *imageExecutor) copyTests(ctx context.Context, folder string) error {
	code, output, err := runCaptured(ctx, proc.Spec{Path: p.env.Kind, Args: []string{"exec", "--user", "0", p.name, "sh", "-c", "rm -rf " + imageTests + " && mkdir " + imageTests}}, p.a.pool)
	if err == nil && code != 0 {
		err = errors.New(clip(output, maxShown))
	}
	if err != nil {
		return err
	}
	return p.runEngine(ctx, "cp", folder+"/.", p.name+":"+imageTests)
}

// checkImage returns an error for settings of a scenario that exclude each other when programs work
// on the files of the image (in_image).
func (s Scenario) checkImage() error {
	e := s.Setup.Environment
	if e == nil || !e.InImage {
		if s.appliesPatch() {
			return errors.New("the grader swebench needs an environment with in_image: true")
		}
		return nil
	}
	if s.Setup.Workspace != nil {
		return errors.New("workspace: with in_image, the workspace is in the image; leave one of them out")
	}
	if e.Agent.Network != e.Graders.Network && !s.appliesPatch() {
		return errors.New("environment: with in_image there is one container, so agent and graders must have the same network")
	}
	for i, st := range s.Steps {
		if i > 0 && s.appliesPatch() {
			return errors.New("the grader swebench judges one step; leave the others out")
		}
		for _, g := range st.Constraints.Checks {
			if g.Type == grade.File || g.Type == grade.Changes {
				return fmt.Errorf("the grader %s cannot read the workspace, which with in_image is in the container; use command or reward", g.Type)
			}
			if s.appliesPatch() && (g.Type == grade.Command || g.Type == grade.Reward) {
				return fmt.Errorf("the grader %s runs in the agent's container, but swebench in a new one; use one of them", g.Type)
			}
		}
	}
	return nil
}

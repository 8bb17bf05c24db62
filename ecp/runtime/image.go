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

// imagePlace runs the agent and the graders of an attempt in one container, in the image's own
// files. The graders see what the agent installed. The hidden tests are copied to /tests when
// everything that the agent started has ended.
type imagePlace struct {
	*containerPlace
	name string     // of the container
	dir  string     // the directory in which programs start
	held proc.Child // the engine's command that keeps the container running

	fresh bool   // graders run in a new container, which gets only the agent's changes
	patch string // the agent's changes, if fresh
}

// imageTests is the folder of the hidden tests in a container.
const imageTests = "/tests"

// isUp is what a container prints once programs can be started in it.
const isUp = "ecp: the container is up"

// idle keeps a container alive, and reaps orphaned processes. The tests of imported tasks write to
// the folders that it makes.
const idle = "mkdir -p " + grade.RewardFolder + " /logs/agent /logs/artifacts && echo '" + isUp + "' && while :; do sleep 3600 & wait; done"

// newImagePlace starts the container.
func (a *attempt) newImagePlace(ctx context.Context, e Environment, outer *containerPlace) (place, error) {
	p := &imagePlace{containerPlace: outer, fresh: a.c.Scenario.appliesPatch()}
	grants := e.Agent
	for _, path := range e.Graders.Read {
		if !p.fresh && !slices.Contains(grants.Read, path) {
			grants.Read = append(slices.Clone(grants.Read), path)
		}
	}
	if err := p.start(ctx, grants); err != nil {
		return nil, errors.Join(err, p.end(ctx))
	}
	code, dir, err := captured(ctx, proc.Spec{Path: e.Kind, Args: p.exec(nil, nil, "pwd")}, a.pool)
	if p.dir = strings.TrimSpace(dir); err != nil || code != 0 || !strings.HasPrefix(p.dir, "/") {
		return nil, errors.Join(fmt.Errorf("%s exec: %s", e.Kind, clip(dir, maxShown)), err, p.end(ctx))
	}
	return p, nil
}

// start starts a container.
func (p *imagePlace) start(ctx context.Context, grants Grants) error {
	args, name := p.create(grants)
	p.name = name
	return p.hold(ctx, append(args, "--entrypoint", "sh", p.image, "-c", idle))
}

// hold runs the engine's command that keeps the container running, and waits until the container is
// up. A podman container ends with the command that started it, even with --detach, because
// processes that our commands leave behind are ended.
func (p *imagePlace) hold(ctx context.Context, args []string) error {
	out := &signalled{needle: isUp, seen: make(chan struct{})}
	var err error
	p.held, err = p.a.pool.Start(proc.Spec{Path: p.env.Kind, Args: args, Stdout: out, Stderr: out})
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.env.Kind, args[0], err)
	}
	limited, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case <-out.seen:
		return nil
	case <-p.held.Done():
		return fmt.Errorf("%s %s: %s", p.env.Kind, args[0], clip(out.String(), maxShown))
	case <-limited.Done():
		return fmt.Errorf("%s %s: the container does not come up: %w", p.env.Kind, args[0], limited.Err())
	}
}

// startTime bounds the start of a container.
const startTime = 2 * time.Minute

// signalled keeps the end of the output, and signals when it contained a text.
type signalled struct {
	lineproc.Tail
	needle string
	once   sync.Once
	seen   chan struct{}
}

func (s *signalled) Write(p []byte) (int, error) {
	n, err := s.Tail.Write(p)
	if strings.Contains(s.String(), s.needle) {
		s.once.Do(func() { close(s.seen) })
	}
	return n, err
}

// end removes the container, and ends the command that kept it running.
func (p *imagePlace) end(ctx context.Context) error {
	err := p.containerPlace.freeze(context.WithoutCancel(ctx))
	if p.held != nil {
		p.held.Kill()
		p.held.Wait()
		p.held = nil
	}
	return err
}

func (p *imagePlace) close() []string {
	if err := p.end(context.Background()); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// engine runs a command of the engine.
func (p *imagePlace) engine(ctx context.Context, args ...string) error {
	code, output, err := captured(ctx, proc.Spec{Path: p.env.Kind, Args: args}, p.a.pool)
	if err == nil && code != 0 {
		err = errors.New(clip(output, maxShown))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", p.env.Kind, args[0], err)
	}
	return nil
}

// exec is the command line that runs another one in the container.
func (p *imagePlace) exec(flags, env []string, line string) []string {
	args := append([]string{"exec"}, flags...)
	if p.env.Workdir != "" {
		args = append(args, "--workdir", p.env.Workdir)
	}
	for _, pair := range env {
		args = append(args, "--env", pair)
	}
	return append(args, p.name, "sh", "-c", line)
}

func (p *imagePlace) workspace() string { return p.dir }

func (p *imagePlace) agent(target string, env []string) proc.Spec {
	return proc.Spec{Path: p.env.Kind, Args: p.exec([]string{"--interactive"}, append(env, p.env.Agent.Env...), target)}
}

func (p *imagePlace) command(ctx context.Context, line string) (int, string, error) {
	env := append([]string{WorkspaceVariable + "=" + p.dir}, p.env.Graders.Env...)
	code, output, err := capturedUpTo(ctx, maxTestLog, proc.Spec{Path: p.env.Kind, Args: p.exec(nil, env, line)}, p.a.pool)
	if err == nil && code == engineFailed {
		err = fmt.Errorf("%s: %s", p.env.Kind, clip(output, maxShown))
	}
	return code, output, err
}

// maxTestLog bounds what a grader's command prints, in bytes; earlier output is cut.
const maxTestLog = 8 << 20

// freeze ends everything in the container by stopping it, and restarts it with its files, or starts
// a fresh one with the agent's changes beside them.
func (p *imagePlace) freeze(ctx context.Context) error {
	if err := p.engine(ctx, "stop", "-t", "0", p.name); err != nil {
		return err
	}
	p.held.Kill()
	p.held.Wait()
	if p.fresh {
		return p.renew(ctx)
	}
	return p.hold(ctx, []string{"start", "--attach", p.name})
}

// layTests replaces the tests folder of the image by the hidden tests.
func (p *imagePlace) layTests(ctx context.Context, folder string) error {
	code, output, err := captured(ctx, proc.Spec{Path: p.env.Kind, Args: []string{"exec", "--user", "0", p.name, "sh", "-c", "rm -rf " + imageTests + " && mkdir " + imageTests}}, p.a.pool)
	if err == nil && code != 0 {
		err = errors.New(clip(output, maxShown))
	}
	if err != nil {
		return err
	}
	return p.engine(ctx, "cp", folder+"/.", p.name+":"+imageTests)
}

// checkImage reports settings of a scenario that are not possible in the image's own files.
func (s Scenario) checkImage() error {
	e := s.Setup.Environment
	if e == nil || !e.InImage {
		if s.appliesPatch() {
			return errors.New("the grader swebench needs an environment with in_image: true")
		}
		return nil
	}
	if s.Setup.Workspace != nil {
		return errors.New("workspace: with in_image the workspace is what the image has; leave one of them out")
	}
	if e.Agent.Network != e.Graders.Network && !s.appliesPatch() {
		return errors.New("environment: with in_image there is one container, so that agent and graders have the same network")
	}
	for i, st := range s.Steps {
		if i > 0 && s.appliesPatch() {
			return errors.New("the grader swebench judges one step; leave the others out")
		}
		for _, g := range st.Constraints.Checks {
			if g.Type == grade.File || g.Type == grade.Changes {
				return fmt.Errorf("the grader %s looks at a workspace, and with in_image that is in the container; use command or reward", g.Type)
			}
			if s.appliesPatch() && (g.Type == grade.Command || g.Type == grade.Reward) {
				return fmt.Errorf("the grader %s runs in the agent's container, and swebench in a new one; use one of them", g.Type)
			}
		}
	}
	return nil
}

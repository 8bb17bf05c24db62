package runtime

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-dec29ce4/eca/internal/proc"
)

const (
	// containerWorkspace is the path of the workspace in containers. containerReads is the folder in
	// containers where the files of Grants.Read are mounted.
	containerWorkspace = "/workspace"
	containerReads     = "/ecp"
	// imageTime is the time limit for fetching or building an image, removeTime that for removing a
	// container.
	imageTime  = 30 * time.Minute
	removeTime = time.Minute
	// creationTime is how long an engine may need to finish the creation of a container whose command
	// was killed.
	creationTime = 3 * time.Second
	// engineFailed is the exit code of docker and podman for their own errors.
	engineFailed = 125
)

// containerExecutor runs the agent, and each command of a grader, in its own container. It uses the
// command line of docker or podman. The containers share the mounted workspace.
type containerExecutor struct {
	a     *attempt
	env   Environment
	image string
	dir   string
	names []string // names of the containers that were started

	// interrupted means that a command that creates a container was killed, perhaps before the
	// container existed. The engine may still create it.
	interrupted bool
}

func (a *attempt) newContainerExecutor(ctx context.Context, e Environment, dir string) (executor, error) {
	image, err := a.images.get(ctx, a.run, e)
	if err != nil {
		return nil, err
	}
	p := &containerExecutor{a: a, env: e, image: image, dir: dir}
	if e.InImage {
		return a.newImageExecutor(ctx, e, p)
	}
	return p, nil
}

func (*containerExecutor) workspace() string { return containerWorkspace }

func (p *containerExecutor) copyTests(_ context.Context, folder string) error {
	return overlay(folder, p.dir)
}

func (p *containerExecutor) agent(target string, env []string) proc.Spec {
	return p.spec(p.env.Agent, env, target, "--interactive")
}

func (p *containerExecutor) command(ctx context.Context, line string) (int, string, error) {
	spec := p.spec(p.env.Graders, []string{WorkspaceVariable + "=" + containerWorkspace}, line)
	code, output, err := runCaptured(ctx, spec, p.a.pool)
	p.interrupted = ctx.Err() != nil
	if removeErr := p.stopAgent(ctx); err == nil {
		err = removeErr
	}
	if err == nil && code == engineFailed {
		err = fmt.Errorf("%s: %s", p.env.Kind, clip(output, maxShown))
	}
	return code, output, err
}

// runArgs returns the first arguments of the command that creates a container (its name, limits and
// read-only files), and its name.
func (p *containerExecutor) runArgs(g Grants) (args []string, name string) {
	name = "ecp-" + strings.ToLower(rand.Text())
	p.names = append(p.names, name)
	args = []string{"run", "--name", name, "--label", "ecp.run=" + p.a.id}
	args = append(args, "--stop-timeout", "0") // otherwise podman rm --force waits ten seconds for a shell that ignores SIGTERM
	args = append(args, "--pids-limit", "1024", "--security-opt", "no-new-privileges", "--cap-drop", "NET_RAW", "--pull", "never")
	if !g.Network {
		args = append(args, "--network", "none")
	}
	if p.env.CPUs > 0 {
		args = append(args, "--cpus", strconv.FormatFloat(p.env.CPUs, 'f', -1, 64))
	}
	if p.env.MemoryMB > 0 {
		limit := strconv.FormatInt(p.env.MemoryMB, 10) + "m"
		args = append(args, "--memory", limit, "--memory-swap", limit)
	}
	for _, path := range g.Read {
		args = append(args, "--mount", "type=bind,readonly,source="+resolveIn(p.a.dir, path)+",target="+containerReads+"/"+filepath.Base(path))
	}
	for _, name := range []string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy"} { // docker's own configuration may set these, with passwords
		args = append(args, "--env", name+"=", "--env", strings.ToUpper(name)+"=")
	}
	return args, name
}

// spec returns the command that runs a command line in a new container.
func (p *containerExecutor) spec(g Grants, env []string, line string, flags ...string) proc.Spec {
	args, _ := p.runArgs(g)
	args = append(append(args, "--rm", "--init"), flags...)
	switch { // files in the workspace must belong to the user
	case p.env.Kind == KindPodman && os.Getuid() != 0: // for root, podman refuses keep-id
		args = append(args, "--userns", "keep-id")
	case goruntime.GOOS != "windows":
		args = append(args, "--user", fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid()))
	}
	args = append(args, "--mount", "type=bind,source="+p.dir+",target="+containerWorkspace, "--workdir", containerWorkspace)
	for _, pair := range append([]string{"HOME=/tmp", "LANG=C.UTF-8", "TZ=UTC"}, env...) {
		args = append(args, "--env", pair)
	}
	for _, name := range g.Env { // the value must not show up in the list of processes
		args = append(args, "--env", name)
	}
	return proc.Spec{Path: p.env.Kind, Args: append(args, p.image, "sh", "-c", line)}
}

// stopAgent implements executor: it removes the containers, also if ctx has ended. It keeps the names
// of those that it could not remove, so that close tries again.
func (p *containerExecutor) stopAgent(ctx context.Context) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	var errs []error
	names := p.names
	p.names = nil
	for _, name := range names {
		if err := p.remove(limited, name); err != nil {
			p.names = append(p.names, name)
			errs = append(errs, fmt.Errorf("%s: cannot remove the container %s: %w", p.env.Kind, name, err))
		}
	}
	p.interrupted = false
	return errors.Join(errs...)
}

// remove removes a container. A container that does not exist counts as removed, except that remove
// waits for creationTime for a container whose creation was interrupted.
func (p *containerExecutor) remove(ctx context.Context, name string) error {
	deadline := time.Now().Add(creationTime)
	for {
		code, output, err := runCaptured(ctx, proc.Spec{Path: p.env.Kind, Args: []string{"rm", "--force", name}}, p.a.pool)
		lower := strings.ToLower(output)
		missing := strings.Contains(lower, "no such container")
		busy := strings.Contains(lower, "already in progress") // the engine is removing it because of --rm
		switch {
		case err != nil:
			return err
		case (busy || missing && p.interrupted) && time.Now().Before(deadline):
			time.Sleep(removePause)
		case code != 0 && !missing && !busy:
			return errors.New(clip(output, maxShown))
		default:
			return nil
		}
	}
}

// removePause is the pause before remove tries again.
const removePause = 200 * time.Millisecond

func (p *containerExecutor) close() []string {
	p.interrupted = p.a.killedAtStart
	if err := p.stopAgent(context.Background()); err != nil {
		return []string{err.Error()}
	}
	return nil
}

// images contains the images that a run has fetched or built, each once.
type images struct {
	mu    sync.Mutex // guards known
	known map[string]*preparedImage
}

// preparedImage is an image. name and err are set when done is closed.
type preparedImage struct {
	done chan struct{}
	name string
	err  error
}

// get returns the image of an environment. It fetches or builds the image unless another attempt has
// done that, or waits for that attempt.
func (i *images) get(ctx context.Context, r *run, e Environment) (string, error) {
	key := strings.Join([]string{e.Kind, e.Image, e.Dockerfile}, "\x00")
	i.mu.Lock()
	made := i.known[key]
	if made == nil {
		made = &preparedImage{done: make(chan struct{})}
		if i.known == nil {
			i.known = map[string]*preparedImage{}
		}
		i.known[key] = made
		i.mu.Unlock()
		made.name, made.err = r.prepareImage(context.WithoutCancel(ctx), e)
		close(made.done)
	} else {
		i.mu.Unlock()
	}
	select {
	case <-made.done:
		return made.name, made.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// prepareImage returns the name of an environment's image, and fetches or builds the image if necessary.
func (r *run) prepareImage(ctx context.Context, e Environment) (name string, err error) {
	ctx, cancel := context.WithTimeout(ctx, imageTime)
	defer cancel()
	args := []string{"pull", "--quiet", e.Image}
	if name = e.Image; e.Dockerfile != "" {
		file := resolveIn(r.dir, e.Dockerfile)
		if _, err := os.Stat(file); err != nil {
			return "", fmt.Errorf("dockerfile: %w", err)
		}
		sum := newIdentifier(&Manifest{Path: file}, r.opts).treeDigest(filepath.Dir(file))
		name = "ecp/" + shortHash(26, "ecp-image-1", filepath.Base(file), sum)
		args = []string{"build", "--quiet", "--tag", name, "--file", file, filepath.Dir(file)}
	}
	code, _, err := runCaptured(ctx, proc.Spec{Path: e.Kind, Args: []string{"image", "inspect", "--format", "{{.Id}}", name}}, r.pool)
	if err != nil {
		return "", fmt.Errorf("%s cannot be run: %w; install it, or use another environment", e.Kind, err)
	}
	if code == 0 {
		return name, nil
	}
	code, output, err := runCaptured(ctx, proc.Spec{Path: e.Kind, Args: args}, r.pool)
	if err != nil || code != 0 {
		return "", fmt.Errorf("%s %s: %w", e.Kind, args[0], errors.Join(err, errors.New(clipEnd(output, maxShown))))
	}
	return name, nil
}

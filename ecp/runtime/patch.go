package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/seed-dec29ce4/eca/ecp/grade"
	"github.com/seed-dec29ce4/eca/internal/lineproc"
	"github.com/seed-dec29ce4/eca/internal/proc"
)

// agentFiles is the folder in the new container for a copy of the agent's working directory.
const agentFiles = "/ecp-agent"

// appliesPatch reports whether a scenario is graded in a new container, to which the agent's changes
// are copied as a patch.
func (s Scenario) appliesPatch() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool {
		return slices.ContainsFunc(st.Constraints.Checks, func(g grade.Spec) bool { return g.Type == grade.SWEBench })
	})
}

// startGraderContainer replaces the stopped container of the agent with a new one, and writes the agent's changes
// there as a patch. It computes them with the repository and the git of the new container, because
// the agent may have manipulated its own.
func (p *imageExecutor) startGraderContainer(ctx context.Context) error {
	old := p.name
	p.starter = nil
	if err := p.start(ctx, p.env.Graders); err != nil {
		return err
	}
	if err := p.runAsRoot(ctx, "mkdir "+agentFiles); err != nil {
		return err
	}
	if err := p.copyFrom(ctx, old); err != nil {
		return err
	}
	if err := p.runAsRoot(ctx, changesScript(p.dir)); err != nil {
		return fmt.Errorf("find the agent's changes: %w", err)
	}
	var err error
	if p.patch, err = p.changes(ctx); err != nil {
		return err
	}
	return p.runEngine(ctx, "rm", "--force", old)
}

// runAsRoot runs a command of eca in the container, as root.
func (p *imageExecutor) runAsRoot(ctx context.Context, line string) error {
	return p.runEngine(ctx, "exec", "--user", "0", p.name, "sh", "-c", line)
}

// copyFrom copies the working directory of another container to agentFiles.
func (p *imageExecutor) copyFrom(ctx context.Context, old string) error {
	from, to := io.Pipe()
	errs := make(chan error, 1)
	go func() {
		_, err := p.pipe(ctx, proc.Spec{Args: []string{"cp", old + ":" + p.dir, "-"}, Stdout: to})
		to.CloseWithError(err)
		errs <- err
	}()
	_, err := p.pipe(ctx, proc.Spec{Args: []string{"cp", "-", p.name + ":" + agentFiles}, Stdin: from})
	from.CloseWithError(errors.New("the copy has ended"))
	return errors.Join(err, <-errs)
}

// pipe runs a command of docker or podman with the streams of spec.
func (p *imageExecutor) pipe(ctx context.Context, spec proc.Spec) (proc.Exit, error) {
	var tail lineproc.Tail
	spec.Path, spec.Stderr = p.env.Kind, &tail
	exit, err := p.a.pool.Run(ctx, spec)
	if err == nil && exit.Code != 0 {
		err = errors.New(clip(tail.String(), maxShown))
	}
	if err != nil {
		err = fmt.Errorf("%s %s: %w", p.env.Kind, spec.Args[0], err)
	}
	return exit, err
}

// changesScript returns a script that writes the agent's changes to grade.ChangesFile: the difference
// between the files of the image and those of the agent, without ignored files. It uses a separate
// index, and does not change the files of the container.
func changesScript(dir string) string {
	return "set -e\ncd " + shellQuote(dir) + `
g() { git -c safe.directory='*' -c core.fileMode=false -c core.hooksPath=/dev/null "$@"; }
index=$(g rev-parse --git-path index)
export GIT_INDEX_FILE=/tmp/ecp-changes-index
cp "$index" "$GIT_INDEX_FILE"
g add -A
tree=$(g write-tree)
dir=$(g rev-parse --absolute-git-dir)
g --git-dir="$dir" --work-tree=` + shellQuote(agentFiles+"/"+path.Base(dir)) + ` add -A
g diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames "$tree" > ` + grade.ChangesFile + `
rm -rf ` + agentFiles + ` "$GIT_INDEX_FILE"`
}

// changes reads the patch that changesScript wrote.
func (p *imageExecutor) changes(ctx context.Context) (string, error) {
	var out strings.Builder
	args := []string{"exec", p.name, "sh", "-c", fmt.Sprintf("head -c %d %s", maxDiff+1, grade.ChangesFile)}
	_, err := p.pipe(ctx, proc.Spec{Args: args, Stdout: &out})
	return cutAtLine(out.String(), maxDiff, "diffs are limited"), err
}

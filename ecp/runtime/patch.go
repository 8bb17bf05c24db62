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

// agentFiles is the folder in a fresh container that gets a copy of the agent's working directory.
const agentFiles = "/ecp-agent"

// appliesPatch reports whether a scenario is graded in a fresh container, to which only the agent's
// changes come, as a patch.
func (s Scenario) appliesPatch() bool {
	return slices.ContainsFunc(s.Steps, func(st Step) bool {
		return slices.ContainsFunc(st.Constraints.Checks, func(g grade.Spec) bool { return g.Type == grade.SWEBench })
	})
}

// renew replaces the stopped container of the agent by a fresh one, and writes the agent's changes
// there as a patch. The repository and the git of the fresh container say what has changed, so that
// what the agent did to its own does not matter.
func (p *imagePlace) renew(ctx context.Context) error {
	old := p.name
	p.held = nil
	if err := p.start(ctx, p.env.Graders); err != nil {
		return err
	}
	if err := p.root(ctx, "mkdir "+agentFiles); err != nil {
		return err
	}
	if err := p.copyFrom(ctx, old); err != nil {
		return err
	}
	if err := p.root(ctx, changesScript(p.dir)); err != nil {
		return fmt.Errorf("find the agent's changes: %w", err)
	}
	var err error
	if p.patch, err = p.changes(ctx); err != nil {
		return err
	}
	return p.engine(ctx, "rm", "--force", old)
}

// root runs our own command in the container, as root.
func (p *imagePlace) root(ctx context.Context, line string) error {
	return p.engine(ctx, "exec", "--user", "0", p.name, "sh", "-c", line)
}

// copyFrom copies the working directory of another container to agentFiles.
func (p *imagePlace) copyFrom(ctx context.Context, old string) error {
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

// pipe runs a command of the engine whose input or output is a stream.
func (p *imagePlace) pipe(ctx context.Context, spec proc.Spec) (proc.Exit, error) {
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

// changesScript writes what the agent changed to grade.ChangesFile: the difference between the
// image's files and the agent's, without ignored ones. It has an index of its own and leaves the
// files of the container as they are.
func changesScript(dir string) string {
	return "set -e\ncd " + quoted(dir) + `
g() { git -c safe.directory='*' -c core.fileMode=false -c core.hooksPath=/dev/null "$@"; }
index=$(g rev-parse --git-path index)
export GIT_INDEX_FILE=/tmp/ecp-changes-index
cp "$index" "$GIT_INDEX_FILE"
g add -A
tree=$(g write-tree)
dir=$(g rev-parse --absolute-git-dir)
g --git-dir="$dir" --work-tree=` + quoted(agentFiles+"/"+path.Base(dir)) + ` add -A
g diff --cached --binary --no-color --no-ext-diff --no-textconv --no-renames "$tree" > ` + grade.ChangesFile + `
rm -rf ` + agentFiles + ` "$GIT_INDEX_FILE"`
}

// changes reads the patch that changesScript wrote.
func (p *imagePlace) changes(ctx context.Context) (string, error) {
	var out strings.Builder
	args := []string{"exec", p.name, "sh", "-c", fmt.Sprintf("head -c %d %s", maxDiff+1, grade.ChangesFile)}
	_, err := p.pipe(ctx, proc.Spec{Args: args, Stdout: &out})
	return cut(out.String(), maxDiff, "a diff has no more"), err
}

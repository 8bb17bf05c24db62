package grade

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// maxFile limits the size of a graded file, in bytes.
const maxFile = 16 << 20

var errNoWorkspace = errors.New("the scenario has no workspace: give its first step constraints.scenario.workspace")

// gradeFile checks a file of the workspace. It does not follow symlinks out of the workspace.
func (s Spec) gradeFile(subject Subject) Check {
	field := "file:" + s.Path
	if subject.Workspace == "" {
		return Check{Field: field, Err: errNoWorkspace}
	}
	root, err := os.OpenRoot(subject.Workspace)
	if err != nil {
		return Check{Field: field, Err: fmt.Errorf("workspace: %w", err)}
	}
	defer root.Close()
	info, err := root.Stat(s.Path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch {
	case err != nil && !missing:
		return Check{Field: field, Reasoning: fmt.Sprintf("cannot read %s: %v", s.Path, err)}
	case s.Exists != nil && !*s.Exists:
		return verdict(missing, field, s.Path+" does not exist", s.Path+" exists")
	case missing:
		return Check{Field: field, Reasoning: s.Path + " does not exist"}
	case s.Condition == "":
		return Check{Field: field, Passed: true, Reasoning: s.Path + " exists"}
	case !info.Mode().IsRegular():
		return Check{Field: field, Reasoning: s.Path + " is not a file"}
	case info.Size() > maxFile:
		return Check{Field: field, Reasoning: fmt.Sprintf("%s is larger than %d bytes", s.Path, maxFile)}
	}
	data, err := root.ReadFile(s.Path)
	if err != nil {
		return Check{Field: field, Reasoning: fmt.Sprintf("cannot read %s: %v", s.Path, err)}
	}
	c := s.gradeText(string(data), false)
	c.Field = field
	return c
}

// gradeChanges matches the changed files with the globs.
func (s Spec) gradeChanges(subject Subject) Check {
	const field = "workspace"
	if subject.Workspace == "" || subject.Changed == nil {
		return Check{Field: field, Err: errNoWorkspace}
	}
	changed, err := subject.Changed()
	if err != nil {
		return Check{Field: field, Err: fmt.Errorf("compare the workspace: %w", err)}
	}
	var stray, list []string
	for _, c := range changed {
		list = append(list, c.Path+" ("+c.Kind+")")
		if s.Only != nil && !anyGlob(s.Only, c.Path) {
			stray = append(stray, c.Path)
		}
	}
	if len(stray) > 0 {
		return Check{Field: field, Reasoning: fmt.Sprintf("Changed outside of [%s]: %s", strings.Join(s.Only, ", "), summarizeList(stray))}
	}
	for _, glob := range s.Includes {
		if !slices.ContainsFunc(changed, func(c Change) bool { return anyGlob([]string{glob}, c.Path) }) {
			return Check{Field: field, Reasoning: fmt.Sprintf("Nothing changed in %s; changed: %s", glob, summarizeList(list))}
		}
	}
	return Check{Field: field, Passed: true, Reasoning: "Changed: " + summarizeList(list)}
}

func anyGlob(globs []string, path string) bool {
	return slices.ContainsFunc(globs, func(g string) bool { return doublestar.MatchUnvalidated(g, path) })
}

// summarizeList joins the first items of a list, and adds the number of the others.
func summarizeList(list []string) string {
	const most = 20
	if len(list) == 0 {
		return "nothing"
	}
	if len(list) > most {
		return strings.Join(list[:most], ", ") + fmt.Sprintf(" and %d more", len(list)-most)
	}
	return strings.Join(list, ", ")
}

// commandTime is the default time limit of a command.
const commandTime = 60 * time.Second

// timeLimit returns the time limit of a grader's command, or fallback if it has none.
func (s Spec) timeLimit(fallback time.Duration) time.Duration {
	if s.TimeoutS > 0 {
		return time.Duration(min(s.TimeoutS*float64(time.Second), math.MaxInt64/2)) // no overflow
	}
	return fallback
}

// gradeCommand runs a command in the workspace and checks its exit code, and its output if there is a
// condition.
func (s Spec) gradeCommand(ctx context.Context, subject Subject, t Tools) Check {
	const field = "command"
	switch {
	case subject.Workspace == "":
		return Check{Field: field, Err: errNoWorkspace}
	case t.Command == nil:
		return Check{Field: field, Err: errors.New("commands are not available here")}
	}
	limit := s.timeLimit(commandTime)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	code, output, err := t.Command(limited, subject.Workspace, s.Run)
	switch {
	case err != nil:
		return Check{Field: field, Err: fmt.Errorf("run %q: %w", s.Run, err)}
	case ctx.Err() != nil:
		return Check{Field: field, Err: ctx.Err()}
	case limited.Err() != nil:
		return Check{Field: field, Reasoning: fmt.Sprintf("%q took longer than %s. %s", s.Run, limit, quoteShort(output))}
	case int64(code) != s.ExitCode:
		return Check{Field: field, Reasoning: fmt.Sprintf("%q exited with %d, expected %d. It printed %s", s.Run, code, s.ExitCode, quoteShort(output))}
	case s.Condition != "":
		c := s.gradeText(output, false)
		c.Field = field
		return c
	}
	return Check{Field: field, Passed: true, Reasoning: fmt.Sprintf("%q exited with %d", s.Run, code)}
}

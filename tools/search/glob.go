package search

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-dec29ce4/eca/internal/visible"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed glob.md
var globDoc string

const (
	maxListedFiles = 1000    // files shown
	maxFound       = 100_000 // files considered to find the newest
	maxPattern     = 1000    // bytes of a pattern

	// maxAlternatives limits the combinations of a glob's braces. Each is matched against every
	// file, so a line of braces could take forever.
	maxAlternatives = 200
)

type globArgs struct {
	Pattern string `json:"pattern" jsonschema:"The glob, for example *.go or cmd/**/*_test.go."`
	Path    string `json:"path,omitempty" jsonschema:"The absolute path of the directory to look in (default: all workspace folders)."`
}

func glob() tools.Tool {
	return tools.Definition[globArgs]{
		ReadOnly: true, Name: "glob", Description: globDoc, Preparing: "Finding files",
		Plan: func(_ context.Context, call tools.Call, a globArgs) (tools.Plan, error) {
			if err := validPattern(a.Pattern); err != nil {
				return tools.Plan{}, err
			}
			dirs, err := globDirs(call, a)
			return tools.Plan{Summary: "Finding: " + a.Pattern, Paths: dirs}, err
		},
		Run: func(ctx context.Context, call tools.Call, a globArgs, _ tools.Sink) (tools.Result, error) {
			if err := validPattern(a.Pattern); err != nil {
				return tools.Result{}, err
			}
			dirs, err := globDirs(call, a)
			if err != nil {
				return tools.Result{}, err
			}
			for i, dir := range dirs {
				if _, err := call.Place(i, dir); err != nil {
					return tools.Result{}, err
				}
			}
			return runGlob(ctx, dirs, a.Pattern)
		},
	}.Build()
}

// validGlob rejects invalid globs, and those that would take too long. name is the name of the
// argument.
func validGlob(name, pattern string) error {
	switch {
	case len(pattern) > maxPattern:
		return fmt.Errorf("INVALID_ARGS: %s is longer than %d bytes", name, maxPattern)
	case !doublestar.ValidatePattern(pattern):
		return fmt.Errorf("INVALID_ARGS: %s %q is not a valid glob", name, pattern)
	case alternatives(pattern) > maxAlternatives:
		return fmt.Errorf("INVALID_ARGS: the braces of %s have more than %d combinations: use several patterns", name, maxAlternatives)
	}
	return nil
}

// alternatives returns an upper bound of the number of patterns that a glob expands to; it is
// reached if the commas are evenly distributed over the groups.
func alternatives(pattern string) float64 {
	groups, commas := float64(strings.Count(pattern, "{")), float64(strings.Count(pattern, ","))
	if groups == 0 {
		return 1
	}
	return math.Pow(1+commas/groups, groups)
}

// validPattern rejects patterns that lead out of the directory. They would match nothing, and an
// empty result would suggest that there are no such files.
func validPattern(pattern string) error {
	if err := validGlob("pattern", pattern); err != nil {
		return err
	}
	if path.IsAbs(pattern) || filepath.IsAbs(pattern) || slices.Contains(strings.Split(pattern, "/"), "..") {
		return fmt.Errorf("INVALID_ARGS: pattern %q leads out of the directory: give the directory in path, and the pattern relative to it", pattern)
	}
	return nil
}

func globDirs(call tools.Call, a globArgs) ([]string, error) {
	if a.Path != "" {
		return []string{workspace.Abs(call.Roots, a.Path)}, nil
	}
	if len(call.Roots) == 0 {
		return nil, errors.New("INVALID_ARGS: there is no workspace folder: set path")
	}
	return slices.Clone(call.Roots), nil
}

// hit is a matching file.
type hit struct {
	path     string
	modified time.Time
}

func runGlob(ctx context.Context, dirs []string, pattern string) (tools.Result, error) {
	pattern = strings.TrimPrefix(pattern, "./")
	var hits []hit
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil {
			return tools.Result{}, fmt.Errorf("%s does not exist", dir)
		} else if !info.IsDir() {
			return tools.Result{}, fmt.Errorf("%s is not a directory", dir)
		}
		err := workspace.Walk(ctx, dir, func(f workspace.File) error {
			if f.Dir || !included(pattern, f.Rel) {
				return nil
			}
			if len(hits) == maxFound {
				return filepath.SkipAll
			}
			h := hit{path: f.Path}
			if info, err := os.Lstat(f.Path); err == nil {
				h.modified = info.ModTime()
			}
			hits = append(hits, h)
			return nil
		})
		if err != nil {
			return tools.Result{}, err
		}
	}
	if len(hits) == 0 {
		return tools.Text("No files match " + pattern), nil
	}
	slices.SortFunc(hits, func(a, b hit) int { return cmp.Or(b.modified.Compare(a.modified), cmp.Compare(a.path, b.path)) })
	all := len(hits)
	var out strings.Builder
	for _, h := range hits[:min(all, maxListedFiles)] {
		out.WriteString(visible.Name(h.path) + "\n")
	}
	if all > maxListedFiles {
		fmt.Fprintf(&out, "\n[%d of %d files are shown; narrow the pattern to see others]\n", maxListedFiles, all)
	}
	return tools.Text(strings.TrimSuffix(out.String(), "\n")), nil
}

// Package search has the native tools grep and glob. They need no external program, respect ignore
// files, and stop when they are cancelled or have enough results. grep skips binary files. The package
// does not decide where a call may search: the permission policy does.
package search

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/seed-dec29ce4/eca/internal/linesearch"
	"github.com/seed-dec29ce4/eca/tools"
	"github.com/seed-dec29ce4/eca/workspace"
)

//go:embed grep.md
var grepDoc string

// Limits of the results of a search.
const (
	defaultMax        = 1000    // results
	maxAllowedResults = 500_000 // even if the call requests more, since all results are in memory
)

// Output modes.
const (
	modeFiles   = "files_with_matches"
	modeContent = "content"
	modeCount   = "count"
)

type grepArgs struct {
	Path       string `json:"path" jsonschema:"The absolute path of the directory or file to search."`
	Pattern    string `json:"pattern" jsonschema:"The regular expression to search for (RE2 syntax)."`
	Include    string `json:"include,omitempty" jsonschema:"Only search files whose name or path matches this glob, for example *.go or **/*.{ts,tsx}."`
	MaxResults int    `json:"max_results,omitempty" jsonschema:"Stop after this many results (default: 1000, at most 500000)."`
	OutputMode string `json:"output_mode,omitempty" jsonschema:"What to return: the paths of files that match (default), the matching lines, or the number of matches per file."`
}

// Tools returns the tools of this package.
func Tools() []tools.Tool {
	return []tools.Tool{grepTool(), glob()}
}

func grepTool() tools.Tool {
	return tools.Definition[grepArgs]{
		ReadOnly: true, Name: "grep", Description: grepDoc, Preparing: "Searching",
		Enums: map[string][]string{"output_mode": {modeFiles, modeContent, modeCount}},
		Plan: func(_ context.Context, call tools.Call, a grepArgs) (tools.Plan, error) {
			if _, err := regexp.Compile(a.Pattern); err != nil {
				return tools.Plan{}, fmt.Errorf("INVALID_ARGS: pattern: %w", err)
			}
			if err := validGlob("include", a.Include); err != nil {
				return tools.Plan{}, err
			}
			return tools.Plan{
				Summary: "Searching: " + a.Pattern,
				Paths:   []string{workspace.Abs(call.Roots, a.Path)},
			}, nil
		},
		Run: func(ctx context.Context, call tools.Call, a grepArgs, _ tools.Sink) (tools.Result, error) {
			path := workspace.Abs(call.Roots, a.Path)
			if _, err := call.Place(0, path); err != nil {
				return tools.Result{}, err
			}
			if a.MaxResults <= 0 {
				a.MaxResults = defaultMax
			}
			a.MaxResults = min(a.MaxResults, maxAllowedResults)
			return grep(ctx, path, workspace.New(append(slices.Clone(call.Roots), path)...), a)
		},
	}.Build()
}

func grep(ctx context.Context, path string, within *workspace.Workspace, a grepArgs) (tools.Result, error) {
	p, err := linesearch.Compile(a.Pattern)
	if err != nil {
		return tools.Result{}, fmt.Errorf("INVALID_ARGS: pattern: %w", err)
	}
	if a.OutputMode == "" {
		a.OutputMode = modeFiles
	}
	var found string
	var more bool
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return tools.Result{}, fmt.Errorf("%s does not exist", path)
	case info.Mode().IsRegular():
		var all results
		err = newScanner(p, a.OutputMode, a.MaxResults+1).file(ctx, &all, path, true)
		found, more = string(all.first(a.MaxResults)), len(all.ends) > a.MaxResults
	case info.IsDir():
		found, more, err = searchTree(ctx, path, within, p, a)
	default:
		return tools.Result{}, fmt.Errorf("%s is neither a file nor a directory", path)
	}
	if err != nil {
		return tools.Result{}, err
	}
	if found == "" {
		return tools.Text("No matches found for " + a.Pattern), nil
	}
	found = strings.TrimSuffix(found, "\n")
	if more {
		found += "\n\n[stopped after max_results; narrow the search to see the rest]"
	}
	return tools.Text(found), nil
}

// included reports whether a file matches the include glob.
func included(glob, rel string) bool {
	if glob == "" {
		return true
	}
	if !strings.Contains(glob, "/") {
		rel = rel[strings.LastIndexByte(rel, '/')+1:]
	}
	ok, _ := doublestar.Match(glob, rel)
	return ok
}
